package toolsearch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/toolsearch"
)

func TestSearch(t *testing.T) {
	tools := []toolsearch.Tool{
		{Name: "add", Description: "Adds a and b."},
		{Name: "createIssue", Description: "Files a report."},
		{Server: "forge", Name: "create_merge_request"},
		{Name: "folder.remove"},
		{Name: "HTTPProbe2", Title: "Probe a server"},
		{Name: "put-object", Arguments: []toolsearch.Argument{{Name: "bucketName", Description: "Where the object is kept, in s3."}}},
		{Name: "转换时间"},
	}
	x := toolsearch.New(tools)
	for _, c := range []struct{ name, query, want string }{
		{"a synonym", "sum two numbers", "add"},
		{"a stem", "filing reports", "createIssue"},
		{"a name in camel case", "issue", "createIssue"},
		{"a phrase", "open a pull request", "create_merge_request"},
		{"an abbreviation of a phrase", "PR", "create_merge_request"},
		{"a verb and a noun", "delete a directory", "folder.remove"},
		{"the last of several capitals", "http", "HTTPProbe2"},
		{"a word before a digit", "probe", "HTTPProbe2"},
		{"a title", "server", "HTTPProbe2"},
		{"a server", "forge", "create_merge_request"},
		{"the name of an argument", "bucket", "put-object"},
		{"the description of an argument", "kept", "put-object"},
		{"letters and digits", "S3", "put-object"},
		{"a script without spaces", "时间", "转换时间"},
		{"ignored words", "how do I the", ""},
		{"unknown words", "quantum", ""},
		{"no words", "?!", ""},
	} {
		got := ""
		if places := x.Search(c.query, 5); len(places) > 0 {
			got = tools[places[0]].Name
		}
		if got != c.want {
			t.Errorf("%s: the first tool for %q = %q, want %q", c.name, c.query, got, c.want)
		}
	}
}

// A tool for the thing that is asked for comes before one that would only search for it.
func TestThingBeforeSearch(t *testing.T) {
	tools := []toolsearch.Tool{{Name: "search", Description: "Searches the web."}, {Name: "search_files"}}
	for i := range 16 {
		tools = append(tools, toolsearch.Tool{Server: fmt.Sprint("station", i), Name: "forecast", Description: "Tells the weather."})
	}
	for i := range 30 {
		tools = append(tools, toolsearch.Tool{Name: fmt.Sprint("other", i)})
	}
	if got := toolsearch.New(tools).Search("weather", 1); !slices.Equal(got, []int{2}) {
		t.Errorf("got %v, want a tool that tells the weather", got)
	}
}

// Equal tools come in the order in which they were given, and no more than were asked for.
func TestOrder(t *testing.T) {
	var tools []toolsearch.Tool
	for i := range 20 {
		tools = append(tools, toolsearch.Tool{Server: fmt.Sprint("server", i), Name: "send"})
	}
	x := toolsearch.New(tools)
	if got, want := x.Search("send", 3), []int{0, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for limit, want := range map[int]int{-1: 0, 0: 0, 20: 20, 50: 20} {
		if got := len(x.Search("send", limit)); got != want {
			t.Errorf("limit %d: got %d tools, want %d", limit, got, want)
		}
	}
	if got := toolsearch.New(nil).Search("send", 3); len(got) != 0 {
		t.Errorf("without tools: got %v, want none", got)
	}
}

func TestBounds(t *testing.T) {
	var terms strings.Builder
	for i := range 1100 {
		fmt.Fprintf(&terms, "x%s ", letters(i))
	}
	x := toolsearch.New([]toolsearch.Tool{
		{Name: "long", Description: strings.Repeat(". ", 32<<10) + "beyond"},
		{Name: "many", Description: terms.String()},
		{Name: "word", Description: strings.Repeat("z", 33)},
		{Name: "odd", Description: "near \xff\xfe " + strings.Repeat("é", 16)},
	})
	for _, c := range []struct {
		name, query string
		want        []int
	}{
		{"a word within 64 KB", "long", []int{0}},
		{"a word beyond 64 KB", "beyond", nil},
		{"a term of the first 1,024", "x" + letters(1000), []int{1}},
		{"a later term", "x" + letters(1050), nil},
		{"a word of 33 bytes", strings.Repeat("z", 33), nil},
		{"a word of 32 bytes", strings.Repeat("é", 16), []int{3}},
		{"a word beside bytes that are not UTF-8", "near", []int{3}},
		{"the 32nd term of a query", manyTerms(31) + "near", []int{3}},
		{"the 33rd term of a query", manyTerms(32) + "near", nil},
	} {
		if got := x.Search(c.query, 5); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// letters returns a number as letters, which stemming leaves alone.
func letters(i int) string {
	const consonants = "bcdfghjklmn"
	return string([]byte{consonants[i/100], consonants[i/10%10], consonants[i%10]})
}

func manyTerms(n int) string {
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "y%s ", letters(i))
	}
	return s.String()
}

// A tool whose texts repeat a query, or have the words of all others, does not displace the tools
// that the query is about. (One that says once, in its name, that it takes screenshots is found:
// no ranking by words knows better.)
func TestStuffedTools(t *testing.T) {
	tools, _ := published(t)
	var all strings.Builder
	for _, tool := range tools {
		all.WriteString(strings.ReplaceAll(tool.Name, "_", " ") + " ")
	}
	for _, c := range []struct {
		name string
		tool toolsearch.Tool
	}{
		{"every name, as a description", toolsearch.Tool{Name: "helper", Description: all.String()}},
		{"every name, as a name", toolsearch.Tool{Name: all.String()}},
		{"the query, often", toolsearch.Tool{Name: "helper", Description: strings.Repeat("take a screenshot of the page. ", 500)}},
		{"the query, as arguments", toolsearch.Tool{Name: "helper", Arguments: slices.Repeat([]toolsearch.Argument{{Name: "take_a_screenshot_of_the_page"}}, 500)}},
	} {
		x := toolsearch.New(append(slices.Clone(tools), c.tool))
		got := x.Search("take a screenshot of the page", 3)
		if slices.Contains(got, len(tools)) {
			t.Errorf("%s: got the stuffed tool among the first three %v", c.name, got)
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("create_issue", "Opens an issue.", "open issues")
	f.Add("HTTPServer2x", "\xff'' s3 ÉÀ", "''s")
	f.Add("转换", "ﬁ İI ß", "pull pull request")
	f.Fuzz(func(t *testing.T, name, text, query string) {
		x := toolsearch.New([]toolsearch.Tool{{Server: text, Name: name, Description: text}, {Name: "other", Arguments: []toolsearch.Argument{{Name: name, Description: query}}}})
		first := x.Search(query, 2)
		if len(first) > x.Len() {
			t.Errorf("got %d tools of %d", len(first), x.Len())
		}
		if again := x.Search(query, 2); !slices.Equal(first, again) {
			t.Errorf("got %v, then %v", first, again)
		}
	})
}

func BenchmarkNew(b *testing.B) {
	tools, _ := published(b)
	b.ReportAllocs()
	for b.Loop() {
		toolsearch.New(tools)
	}
}

func BenchmarkSearch(b *testing.B) {
	tools, _ := published(b)
	// 1,000 tools that all have the words with the most synonyms, in 64 KB of text each.
	const wide = "add get page list create document update user status member query show find project table file start issue message edit remove label build select look server time count link run address team"
	full := make([]toolsearch.Tool, 1000)
	for i := range full {
		full[i] = toolsearch.Tool{Name: fmt.Sprint("tool", i), Description: strings.Repeat(toolsearch.Vocabulary()+" ", 64<<10/len(toolsearch.Vocabulary()))}
	}
	for _, c := range []struct {
		name, query string
		tools       []toolsearch.Tool
	}{
		{"published", "open a pull request", tools},
		{"published, 32 terms", wide, tools},
		{"hostile, 32 terms", wide, full},
	} {
		b.Run(c.name, func(b *testing.B) {
			x := toolsearch.New(c.tools)
			b.ReportAllocs()
			for b.Loop() {
				x.Search(c.query, 10)
			}
		})
	}
}

// BenchmarkByMeaning is a search with a vector of 1,536 dimensions for each tool.
func BenchmarkByMeaning(b *testing.B) {
	tools, _ := published(b)
	x := toolsearch.New(tools)
	m := &fake{more: 1533}
	e := toolsearch.NewEmbeddings(toolsearch.Config{Model: func() toolsearch.Model { return m }, Conceal: strings.Clone})
	defer e.Close()
	if err := e.Fill(b.Context(), x); err != nil {
		b.Fatal(err)
	}
	e.Ask(b.Context(), dry)
	b.ReportAllocs()
	for b.Loop() {
		e.Search(b.Context(), x, dry, 10)
	}
}
