package texts

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// text is a unit that a reader reads at once: a paragraph of a comment, a literal, a line of a
// document. Its white space is single spaces.
type text struct {
	words string
	lines []mark // ascending; where the text's lines begin
}

type mark struct{ offset, line int }

// line returns the line of the file on which the offset lies.
func (t text) line(offset int) int {
	i, exact := slices.BinarySearchFunc(t.lines, offset, func(m mark, o int) int { return m.offset - o })
	if !exact {
		i--
	}
	return t.lines[i].line
}

// gather joins lines to texts. An empty line ends one.
type gather struct {
	texts []text
	open  text
}

func (g *gather) add(line int, words string) {
	words = strings.Join(strings.Fields(words), " ")
	if words == "" {
		g.end()
		return
	}
	if g.open.words != "" {
		g.open.words += " "
	}
	g.open.lines = append(g.open.lines, mark{len(g.open.words), line})
	g.open.words += words
}

func (g *gather) end() {
	if g.open.words != "" {
		g.texts = append(g.texts, g.open)
	}
	g.open = text{}
}

// extract returns the texts of a file, by the kind that its name tells.
func extract(name string, data []byte) ([]text, error) {
	switch {
	case strings.HasSuffix(name, ".go"):
		return fromGo(name, data)
	case strings.HasSuffix(name, ".md"):
		return fromMarkdown(string(data)), nil
	case slices.Contains([]string{".js", ".mjs", ".ts", ".css", ".html"}, path.Ext(name)):
		return fromPage(string(data)), nil
	}
	return fromLines(string(data)), nil
}

// directive are comments to tools.
var directive = regexp.MustCompile(`^//(?:go:|nolint|[a-z]+:[a-z])`)

func fromGo(name string, data []byte) ([]text, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, data, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var g gather
	for _, group := range file.Comments {
		for _, c := range group.List {
			if directive.MatchString(c.Text) {
				continue
			}
			line := set.Position(c.Pos()).Line
			words := strings.TrimSuffix(strings.TrimLeft(c.Text, "/*"), "*/")
			for i, l := range strings.Split(words, "\n") {
				if strings.HasPrefix(strings.TrimSpace(l), "- ") {
					g.end()
				}
				g.add(line+i, l)
			}
		}
		g.end()
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if n.Kind != token.STRING || !strings.Contains(n.Value, " ") {
				return true
			}
			// Lines of a raw literal are texts of their own; the lines of another one's
			// value all stand on its line.
			line, step := set.Position(n.Pos()).Line, 0
			if n.Value[0] == '`' {
				step = 1
			}
			value, err := strconv.Unquote(n.Value)
			if err != nil {
				return true // the parser has accepted it
			}
			for i, l := range strings.Split(value, "\n") {
				g.add(line+i*step, l)
				g.end()
			}
		}
		return true
	})
	return g.texts, nil
}

var code = regexp.MustCompile("`[^`]*`")

// fromMarkdown reads documents, in which a line is a paragraph, an item or a row of a
// table. Code inside a line is not read: it quotes.
func fromMarkdown(data string) []text {
	var g gather
	fenced := false
	for i, l := range strings.Split(data, "\n") {
		if strings.HasPrefix(strings.TrimSpace(l), "```") {
			fenced = !fenced
		}
		if !fenced {
			l = code.ReplaceAllStringFunc(l, func(c string) string { return strings.Repeat("`", len(c)) })
		}
		for _, cell := range strings.Split(l, " | ") {
			g.add(i+1, strings.Trim(cell, "| "))
			g.end()
		}
	}
	return g.texts
}

var comment = regexp.MustCompile(`^(?://+|/\*+|\*(?:[^/]|$)|<!--)`)

// fromPage reads scripts, styles and HTML: comments of several lines are one text, every
// other line is one.
func fromPage(data string) []text {
	var g gather
	commented := false
	for i, l := range strings.Split(data, "\n") {
		l = strings.TrimSpace(l)
		was := commented
		commented = comment.MatchString(l)
		if !was || !commented {
			g.end()
		}
		if commented {
			l = strings.TrimLeft(l, "/*")
		}
		g.add(i+1, strings.TrimSuffix(strings.TrimSpace(l), "*/"))
	}
	g.end()
	return g.texts
}

func fromLines(data string) []text {
	var g gather
	for i, l := range strings.Split(data, "\n") {
		g.add(i+1, strings.TrimLeft(l, "#* "))
		g.end()
	}
	return g.texts
}

func TestExtract(t *testing.T) {
	for _, tc := range []struct {
		name, file, data string
		want             []string // with the line of each
	}{
		{"paragraphs of a comment", "a.go", "// One two\n// three.\n//\n// Four.\n//\n//go:generate x\npackage a", []string{"1 One two three.", "4 Four."}},
		{"items of a comment", "a.go", "package a\n\n// List:\n//   - one\n//   - two", []string{"3 List:", "4 - one", "5 - two"}},
		{"literals", "a.go", "package a\n\nimport _ \"fmt\"\n\nvar x = \"a b\\nc d\" + `e f\ng`\n", []string{"5 a b", "5 c d", "5 e f", "6 g"}},
		{"literals of one word are no texts", "a.go", "package a\n\nvar x = \"anew\"\n", nil},
		{"tags", "a.go", "package a\n\ntype T struct {\n\tA int `doc:\"one two\"`\n}\n", []string{"4 doc:\"one two\""}},
		{"a document", "a.md", "# Head\n\nOne `is no` two.\n| a b | c |\n", []string{"1 Head", "3 One ``````` two.", "4 a b", "4 c"}},
		{"code in a document", "a.md", "```\nrun `x` # one\n```\n", []string{"1 ```", "2 run `x` # one", "3 ```"}},
		{"a module of the page", "a.js", "/** One\n * two. */\nconst a = 'b c';\n// three\n// four\n", []string{"1 One two.", "3 const a = 'b c';", "4 three four"}},
		{"a makefile", "Makefile", "# One\n\nbuild: ## two\n", []string{"1 One", "3 build: ## two"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			texts, err := extract(tc.file, []byte(tc.data))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range texts {
				got = append(got, fmt.Sprint(x.line(0), " ", strings.TrimPrefix(x.words, "# ")))
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("extract(%q) = %q, want %q", tc.data, got, tc.want)
			}
		})
	}
	joined := gather{}
	joined.add(7, "one two")
	joined.add(8, "three")
	joined.end()
	if got := joined.texts[0].line(strings.Index(joined.texts[0].words, "three")); got != 8 {
		t.Errorf("the line of the second line is %d, want 8", got)
	}
}
