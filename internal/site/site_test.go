package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/net/html"
)

const root = "../.."

func loaded(t *testing.T) []*document {
	t.Helper()
	docs, err := load(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

// Every link of a document inside the repository leads somewhere, with its anchor.
func TestLinks(t *testing.T) {
	docs := loaded(t)
	for _, p := range broken(os.DirFS(root), docs) {
		t.Error(p)
	}
	links := 0
	for _, d := range docs {
		links += len(d.links)
	}
	if len(docs) < 100 || links < 300 {
		t.Errorf("got %d documents with %d links, want all", len(docs), links)
	}
	for _, l := range leaving(docs) {
		t.Log("not looked at, because tests have no network:", l)
	}
}

// Every document of docs is a page of the site.
func TestPages(t *testing.T) {
	var pages []string
	for _, d := range loaded(t) {
		if d.section != "" {
			pages = append(pages, d.file)
		}
	}
	err := fs.WalkDir(os.DirFS(root), "docs", func(name string, e fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".md" && !slices.Contains(pages, name) {
			t.Errorf("the site has no page of %s, want it in a section of internal/site/order.go", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"docs/README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"} {
		if !slices.Contains(pages, file) {
			t.Errorf("the site has no page of %s", file)
		}
	}
}

// The site as it is made has no link, image, script or style that is not there, loads nothing
// from elsewhere, and names no anchor twice.
func TestSite(t *testing.T) {
	repo := os.DirFS(root)
	files, err := render(repo, loaded(t))
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	if err := write(out, files); err != nil {
		t.Fatal(err)
	}
	site := os.DirFS(out)
	ids, links := map[string][]string{}, map[string][]string{}
	for name := range files {
		if path.Ext(name) == ".html" {
			ids[name], links[name] = anchors(t, site, name)
		}
	}
	n := 0
	for name, all := range links {
		for _, l := range all {
			if strings.HasPrefix(l, "https://") || strings.HasPrefix(l, "http://127.0.0.1") || l == "data:," {
				continue
			}
			n++
			file, id, _ := strings.Cut(l, "#")
			if file = path.Join(path.Dir(name), file); strings.HasPrefix(l, "#") {
				file = name
			}
			if _, err := fs.Stat(site, file); err != nil {
				t.Errorf("%s: %s is not there", name, l)
			} else if id != "" && !slices.Contains(ids[file], id) {
				t.Errorf("%s: %s has no such anchor", name, l)
			}
		}
	}
	if len(links) < 100 || n < 4000 {
		t.Errorf("got %d links in %d pages, want all", n, len(links))
	}
}

// anchors reads the ids and the links of a page.
func anchors(t *testing.T, site fs.FS, name string) (ids, links []string) {
	t.Helper()
	f, err := site.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := html.Parse(f)
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		for _, a := range n.Attr {
			switch {
			case a.Key == "id":
				if slices.Contains(ids, a.Val) {
					t.Errorf("%s has the id %q twice", name, a.Val)
				}
				ids = append(ids, a.Val)
			case a.Key == "href" || a.Key == "src":
				if elsewhere := strings.Contains(a.Val, "://"); elsewhere && n.Data != "a" {
					t.Errorf("%s loads %s, want nothing from elsewhere", name, a.Val)
				}
				links = append(links, a.Val)
			case strings.HasPrefix(a.Key, "on") || a.Key == "style":
				t.Errorf("%s has %s=%q, which a strict policy forbids", name, a.Key, a.Val)
			}
		}
	}
	return ids, links
}

// A page that a former site had goes, and a file that the site did not write stays.
func TestWriteRemovesFormerPages(t *testing.T) {
	out := t.TempDir()
	if err := os.WriteFile(path.Join(out, "mine.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, files := range []map[string][]byte{{"a/b.html": nil, "c.html": nil}, {"c.html": []byte("new")}} {
		if err := write(out, files); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(path.Join(out, "a/b.html")); err == nil {
		t.Error("a/b.html is still there, want it removed")
	}
	if data, err := os.ReadFile(path.Join(out, "c.html")); err != nil || string(data) != "new" {
		t.Errorf("c.html = %q, %v; want the new one", data, err)
	}
	if _, err := os.Stat(path.Join(out, "mine.txt")); err != nil {
		t.Error("mine.txt is gone, want it untouched")
	}
}

// The ids of headings are those of GitHub.
func TestSlug(t *testing.T) {
	used := map[string]int{}
	for _, tc := range []struct{ words, want string }{
		{"What each error means", "what-each-error-means"},
		{"What each error means", "what-each-error-means-1"},
		{"… a new event", "-a-new-event"},
		{"C.2: default limits", "c2-default-limits"},
		{"yaya mcp add", "yaya-mcp-add"},
		{"GET /v1/sessions/{id}", "get-v1sessionsid"},
		{"Größe, snake_case", "größe-snake_case"},
	} {
		if got := slug(tc.words, used); got != tc.want {
			t.Errorf("slug(%q) = %q, want %q", tc.words, got, tc.want)
		}
	}
}

// Links that lead nowhere are found, and others are left alone.
func TestBroken(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"another page", "[x](OTHER.md)", ""},
		{"a heading of another page", "[x](OTHER.md#the-part)", ""},
		{"a title of another page", "[x](OTHER.md#other)", ""},
		{"a heading of the page", "# Title\n\n## Here `it` is\n\n[x](#here-it-is)", ""},
		{"a folder", "[x](../code)", ""},
		{"a site", "[x](https://example.com/x#y)", ""},
		{"an image", "![x](a.png)", ""},
		{"code", "`[x](NOTHING.md)`", ""},
		{"no page", "[x](NOTHING.md)", "docs/A.md:3: NOTHING.md: the file does not exist"},
		{"no image", "![x](b.png)", "docs/A.md:3: b.png: the file does not exist"},
		{"an image of a site", "![x](https://example.com/a.png)", "docs/A.md:3: https://example.com/a.png: the image is of another site: put it into the repository"},
		{"no heading", "[x](OTHER.md#part)", "docs/A.md:3: OTHER.md#part: docs/OTHER.md has no heading with this anchor"},
		{"no heading of the page", "# Title\n\n[x](#nowhere)", "docs/A.md:5: #nowhere: docs/A.md has no heading with this anchor"},
		{"a heading of a file that the site does not have", "[x](../code/READ.md#x)", "docs/A.md:3: ../code/READ.md#x: the file is not a page of the site, so nobody knows its headings: add it to internal/site/order.go"},
		{"out of the repository", "[x](../../x)", "docs/A.md:3: ../../x: it leads out of the repository"},
		{"in a table", "| a |\n|---|\n| [x](NOTHING.md) |", "docs/A.md:5: NOTHING.md: the file does not exist"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			repo := fstest.MapFS{"docs/A.md": {}, "docs/OTHER.md": {}, "docs/a.png": {}, "code/READ.md": {}}
			a, err := parse("docs/A.md", []byte("# A\n\n"+tc.text))
			if err != nil {
				t.Fatal(err)
			}
			other, err := parse("docs/OTHER.md", []byte("# Other\n\n## The part\n"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(broken(repo, []*document{a, other}), "; "); got != tc.want {
				t.Errorf("broken(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}

// Text of documents is shown as text, and HTML is not passed on.
func TestTextStaysText(t *testing.T) {
	d, err := parse("docs/A.md", []byte("# A <b>\n\n<!-- not shown -->\n\n<script>x</script>\n\nx <i>y</i> `<td>` [z](javascript:alert(1))\n\n```sh\necho \"<table>\" & # `x`\n```\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := d.html()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"<script", "<b>", "<i>", "<td>", "<table>", "not shown", "javascript:"} {
		if strings.Contains(string(got), bad) {
			t.Errorf("html() = %s, want it without %q", got, bad)
		}
	}
	if want := `<pre tabindex="0" data-language="sh"><code>echo &#34;&lt;table&gt;&#34; &amp; # ` + "`x`\n</code></pre>"; !strings.Contains(string(got), want) {
		t.Errorf("html() = %s, want %s in it", got, want)
	}
}

// The index of the search has every heading, and the words of code.
func TestIndex(t *testing.T) {
	d, err := parse("docs/guides/X.md", []byte("# X\n\nFirst.\n\n## The part\n\n```sh\nyaya mcp add\n```\n"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := index([]*document{d})
	if err != nil {
		t.Fatal(err)
	}
	want := `window.searchIndex = [{"p":"X","t":"X","u":"guides/x.html","w":"first"},{"p":"X","t":"The part","u":"guides/x.html#the-part","w":"add mcp part the yaya"}]` + "\n"
	if string(got) != want {
		t.Errorf("index() = %s, want %s", got, want)
	}
}

func Example_address() {
	for _, file := range []string{"docs/README.md", "docs/CONFIG.md", "docs/adr/README.md", "docs/guides/team.md", "SECURITY.md", "docs/asyncapi.json", "examples/README.md"} {
		fmt.Printf("%q\n", address(file))
	}
	// Output:
	// "index.html"
	// "config.html"
	// "adr/index.html"
	// "guides/team.html"
	// "security.html"
	// "asyncapi.json"
	// ""
}
