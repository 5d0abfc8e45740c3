package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Tables of these first columns quote what yaya writes.
var quoting = regexp.MustCompile(`^\| (message|error|log message) \|`)

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	verb     = regexp.MustCompile(`%[-+# 0]*[0-9.]*(\[\d\])?[a-zA-Z]`)
	// placeholder stands for what differs: words in capitals, such as NAME and N, and the sign "…".
	placeholder = regexp.MustCompile(`"?(…|\b[A-Z]{2,}[A-Z0-9]*\b|\b[A-Z]\b)"?`)
)

// Errors that documents quote are those that yaya writes: each part of a text between its
// placeholders is in a text of the code.
func TestQuotedErrors(t *testing.T) {
	code := texts(t)
	quoted := 0
	err := fs.WalkDir(os.DirFS(root), "docs", func(name string, e fs.DirEntry, err error) error {
		if err != nil || path.Ext(name) != ".md" {
			return err
		}
		data, err := os.ReadFile(path.Join(root, name))
		if err != nil {
			return err
		}
		for i, text := range quotes(string(data)) {
			quoted++
			for _, part := range parts(text) {
				if !strings.Contains(code, part) {
					t.Errorf("%s quotes %q (number %d): no text of the code has %q in it", name, text, i+1, part)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if quoted < 60 {
		t.Errorf("got %d quoted errors, want at least 60", quoted)
	}
}

// quotes are the texts in the first cells of tables of errors.
func quotes(doc string) (out []string) {
	inside := false
	for line := range strings.Lines(doc) {
		if !strings.HasPrefix(line, "|") {
			inside = false
		}
		if quoting.MatchString(line) {
			inside = true
			continue
		}
		if cells := strings.Split(line, " | "); inside && !strings.HasPrefix(line, "|--") {
			for _, m := range codeSpan.FindAllStringSubmatch(cells[0], -1) {
				out = append(out, m[1])
			}
		}
	}
	return out
}

// parts splits a quoted text at its placeholders.
func parts(text string) (out []string) {
	for _, p := range strings.Split(placeholder.ReplaceAllString(text, "\x00"), "\x00") {
		if p = strings.Trim(p, ` :;,.()"`); len(p) > 3 {
			out = append(out, p)
		}
	}
	return out
}

// texts returns all texts of the code, with a line for each. A text that is joined of literals and
// constants counts as one as far as they are literals.
func texts(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := path.Base(name); e.IsDir() && name != "." && (strings.HasPrefix(base, ".") || base == "node_modules" || base == "testdata" || base == "site") {
			return fs.SkipDir
		}
		if e.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path.Join(root, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				if text := joined(n); n.Op == token.ADD && strings.Contains(text, " ") {
					b.WriteString(plainText(text))
				}
			case *ast.BasicLit:
				if text := joined(n); strings.Contains(text, " ") {
					b.WriteString(plainText(text))
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func plainText(s string) string {
	return strings.ReplaceAll(verb.ReplaceAllString(s, "\x00"), "%%", "%") + "\n"
}

// joined is the text of literals that are added up; anything else between them is a placeholder.
func joined(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			text, _ := strconv.Unquote(e.Value)
			return text
		}
	case *ast.BinaryExpr:
		return joined(e.X) + joined(e.Y)
	case *ast.ParenExpr:
		return joined(e.X)
	}
	return "\x00"
}

func TestQuotes(t *testing.T) {
	doc := "| message | what to do |\n|---|---|\n| `a … b`, `c` | `d` |\n\n| other | x |\n|---|---|\n| `e` | |\n"
	if got := strings.Join(quotes(doc), "|"); got != "a … b|c" {
		t.Errorf("quotes() = %q, want the first cells of tables of errors", got)
	}
	if got := strings.Join(parts(`the server "NAME" did not answer its last N calls: try …`), "|"); got != "the server|did not answer its last|calls: try" {
		t.Errorf("parts() = %q, want the text between placeholders", got)
	}
}
