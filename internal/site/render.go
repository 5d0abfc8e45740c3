package main

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html"
	"html/template"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

//go:embed assets
var assets embed.FS

// tokens are the colours and sizes of the page, which the site shares.
const tokens = "gateway/dashboard/page/tokens.css"

// entry is a line of the navigation.
type entry struct {
	Title, To string
	Current   bool
}

// group is a section of the navigation.
type group struct {
	Title string
	Pages []entry
}

// page is the data of assets/page.html.
type page struct {
	Title      string
	Up         string // the way to the root of the site, "" or "../"
	Groups     []group
	Body       template.HTML
	Heads      []heading
	Prev, Next *entry
	Source     string
}

// render makes all files of the site, by their paths in it.
func render(repo fs.FS, docs []*document) (map[string][]byte, error) {
	pages := docs[:0:0]
	for _, d := range docs {
		if d.section != "" {
			pages = append(pages, d)
		}
	}
	layout, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for i, d := range pages {
		at := address(d.file)
		d.relink(repo, at)
		body, err := d.html()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.file, err)
		}
		p := page{Title: d.title, Up: strings.Repeat("../", strings.Count(at, "/")), Groups: groups(pages, d), Body: body, Heads: contents(d.heads), Source: repository + "/blob/main/" + d.file}
		if i > 0 {
			p.Prev = &entry{Title: pages[i-1].title, To: p.Up + address(pages[i-1].file)}
		}
		if i+1 < len(pages) {
			p.Next = &entry{Title: pages[i+1].title, To: p.Up + address(pages[i+1].file)}
		}
		var b bytes.Buffer
		if err := layout.Execute(&b, p); err != nil {
			return nil, fmt.Errorf("%s: %w", d.file, err)
		}
		files[at] = b.Bytes()
	}
	if files["search-index.js"], err = index(pages); err != nil {
		return nil, err
	}
	return files, copied(repo, files)
}

// copied adds the files of the site that are not made.
func copied(repo fs.FS, files map[string][]byte) (err error) {
	for _, name := range []string{"site.css", "search.js"} {
		if files[name], err = assets.ReadFile("assets/" + name); err != nil {
			return err
		}
	}
	if files["tokens.css"], err = fs.ReadFile(repo, tokens); err != nil {
		return err
	}
	for _, pattern := range extra {
		names, err := fs.Glob(repo, pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			if files[address(name)], err = fs.ReadFile(repo, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// contents are the headings that the table of contents of a page shows.
func contents(heads []heading) (out []heading) {
	for _, h := range heads {
		if h.Level <= 3 {
			out = append(out, h)
		}
	}
	return out
}

// groups are the navigation as a page shows it.
func groups(pages []*document, current *document) []group {
	up := strings.Repeat("../", strings.Count(address(current.file), "/"))
	var out []group
	for _, s := range sections {
		if folded[s.Title] {
			continue
		}
		g := group{Title: s.Title}
		for _, d := range pages {
			if d.section == s.Title {
				g.Pages = append(g.Pages, entry{d.title, up + address(d.file), d == current})
			}
		}
		out = append(out, g)
	}
	return out
}

// relink has the links of a document lead to pages of the site, and links to other files of the
// repository to where that is published.
func (d *document) relink(repo fs.FS, at string) {
	up := strings.Repeat("../", strings.Count(at, "/"))
	for _, l := range d.links {
		file, id, inside := d.target(l.to)
		if !inside || file == d.file {
			continue
		}
		to := address(file)
		info, err := fs.Stat(repo, file)
		folder := err == nil && info.IsDir()
		switch {
		case folder && file == "docs/adr":
			to = up + "adr/index.html"
		case folder:
			to = repository + "/tree/main/" + file
		case file == "README.md" || to == "" || !isPage(file):
			to = repository + "/blob/main/" + file
		default:
			to = up + to
		}
		if id != "" {
			to += "#" + id
		}
		l.set(to)
	}
}

// isPage reports whether the site has a file of the repository.
func isPage(file string) bool {
	for _, s := range sections {
		for _, pattern := range s.pages {
			if ok, err := path.Match(pattern, file); ok && err == nil {
				return true
			}
		}
	}
	for _, pattern := range extra {
		if ok, err := path.Match(pattern, file); ok && err == nil {
			return true
		}
	}
	return false
}

// html renders a document.
func (d *document) html() (template.HTML, error) {
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, d.source, d.root); err != nil {
		return "", err
	}
	// A wide table scrolls within its page, by keyboard too. A head without words is not one.
	body := strings.NewReplacer("<table>", `<div class="wide" tabindex="0"><table>`, "</table>", "</table></div>", "<th></th>", "<td></td>").Replace(b.String())
	return template.HTML(body), nil //nolint:gosec // goldmark escapes text, and blocks passes no HTML on
}

// blocks renders headings, code and tables with what a page needs beside goldmark's HTML.
type blocks struct{}

func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, renderHeading)
	r.Register(ast.KindFencedCodeBlock, renderCode)
	r.Register(ast.KindCodeBlock, renderCode)
	r.Register(ast.KindHTMLBlock, renderNothing)
	r.Register(ast.KindRawHTML, renderNothing)
}

// renderNothing leaves HTML out: documents have comments for tests, and nothing else in HTML.
func renderNothing(util.BufWriter, []byte, ast.Node, bool) (ast.WalkStatus, error) {
	return ast.WalkSkipChildren, nil
}

func renderHeading(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	h := n.(*ast.Heading)
	value, _ := h.AttributeString("id")
	id, _ := value.([]byte)
	if entering {
		_, err := fmt.Fprintf(w, `<h%d id="%s">`, h.Level, html.EscapeString(string(id)))
		return ast.WalkContinue, err
	}
	if h.Level > 1 {
		fmt.Fprintf(w, ` <a class="anchor" href="#%s" aria-label="Link to: %s">#</a>`, html.EscapeString(string(id)), html.EscapeString(plain(h, source)))
	}
	_, err := fmt.Fprintf(w, "</h%d>\n", h.Level)
	return ast.WalkContinue, err
}

// renderCode gives code the name of its language, and a place in the order of the keyboard: a
// long line is scrolled to with it.
func renderCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	language := ""
	if f, ok := n.(*ast.FencedCodeBlock); ok {
		language = string(f.Language(source))
	}
	var b strings.Builder
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		b.Write(line.Value(source))
	}
	_, err := fmt.Fprintf(w, "<pre tabindex=\"0\" data-language=\"%s\"><code>%s</code></pre>\n", html.EscapeString(language), html.EscapeString(b.String()))
	return ast.WalkSkipChildren, err
}

// tidy removes the files of a former site that this one does not have, and notes those that it has.
func tidy(dir *os.Root, files map[string][]byte) error {
	was, err := dir.ReadFile(listing)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for name := range strings.Lines(string(was)) {
		name = strings.TrimSuffix(name, "\n")
		if _, stays := files[name]; stays {
			continue
		}
		if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return dir.WriteFile(listing, []byte(strings.Join(sortedKeys(files), "\n")+"\n"), 0o644)
}
