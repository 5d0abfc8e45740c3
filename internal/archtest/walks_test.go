package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// guides name files and functions in the order in which they are read. A row of a table
// whose first cell names one file or folder has functions, methods and types of it in its
// second; files of the third, and of all other text, are there.
var guides = map[string]int{"WALKS.md": 70, "WHERE.md": 40} // how many rows at least

var (
	spans    = regexp.MustCompile("`([^`]+)`")
	pathLike = regexp.MustCompile(`^(cmd|daemon|gateway|mcpbridge|auth|control|kernel|feature|plugins|internal|docs|examples)/[\w./*-]*$|^(daemon|gateway|mcpbridge|auth|control|kernel|feature|Makefile|[A-Z]+\.md)$`)
)

func TestWalks(t *testing.T) {
	tests := declaredTests(t)
	for name, atLeast := range guides {
		data, err := os.ReadFile(filepath.Join(root, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		rows := 0
		for _, p := range misguided(t, string(data), tests, &rows) {
			t.Errorf("docs/%s: %s", name, p)
		}
		if rows < atLeast {
			t.Errorf("docs/%s has %d rows with functions, want at least %d", name, rows, atLeast)
		}
	}
}

// misguided names what a guide names and is not there, and counts its rows.
func misguided(t *testing.T, text string, tests map[string]bool, rows *int) (problems []string) {
	t.Helper()
	exists := func(path string) bool {
		found, err := filepath.Glob(filepath.Join(root, path))
		return err == nil && len(found) > 0
	}
	for line := range strings.Lines(text) {
		for _, m := range spans.FindAllStringSubmatch(line, -1) {
			if pathLike.MatchString(m[1]) && !exists(m[1]) {
				problems = append(problems, m[1]+" is not there")
			}
			if strings.HasPrefix(m[1], "Test") && !tests[m[1]] {
				problems = append(problems, m[1]+" is not a test")
			}
		}
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		file := spans.FindStringSubmatch(cells[1])[1]
		if !pathLike.MatchString(file) {
			problems = append(problems, file+" does not begin a row: want a file or a folder")
			continue
		}
		*rows++
		for _, m := range spans.FindAllStringSubmatch(cells[2], -1) {
			if exists(file) && !strings.HasPrefix(m[1], "Test") && !declares(t, filepath.Join(root, file), m[1]) {
				problems = append(problems, file+" has no "+m[1])
			}
		}
	}
	return problems
}

// declares reports whether a file, or one file of a folder, has a function, a method
// (Type.Method) or another name at its top. Modules of the page have no types: a method's
// name is enough.
func declares(t *testing.T, path, name string) bool {
	t.Helper()
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		t.Fatal(err)
	} else if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(path, "*.go")); err != nil {
			t.Fatal(err)
		}
	}
	return slices.ContainsFunc(files, func(file string) bool {
		switch filepath.Ext(file) {
		case ".go":
			return slices.Contains(names(t, file), name)
		case ".js":
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return regexp.MustCompile(`(?m)(function|class|const) ` + name + `\b|^  (async )?` + name + `\(.*\{$`).Match(data)
		}
		data, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(data), name)
	})
}

// names returns what a file declares.
func names(t *testing.T, file string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				typ := d.Recv.List[0].Type
				if star, ok := typ.(*ast.StarExpr); ok {
					typ = star.X
				}
				if index, ok := typ.(*ast.IndexExpr); ok {
					typ = index.X
				}
				if id, ok := typ.(*ast.Ident); ok {
					name = id.Name + "." + name
				}
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						names = append(names, id.Name)
					}
				}
			}
		}
	}
	return names
}

// The checker of the guides finds what is not there.
func TestMisguided(t *testing.T) {
	tests := declaredTests(t)
	for _, tc := range []struct {
		name, text, want string
	}{
		{"all there", "| `internal/archtest/words_test.go` | `TestGlossary`, `words` | of `internal/archtest/*.go` |", ""},
		{"a method", "| `kernel/tool/dispatcher.go` | `Dispatcher.Call` | runs a call |", ""},
		{"a method of a generic type", "| `gateway/follow/set.go` | `Set.Join` | follows |", ""},
		{"a folder", "| `kernel/tool` | `Dispatcher.Call` | runs a call |", ""},
		{"a module of the page", "| `gateway/dashboard/page/api.js` | `request` | asks |", ""},
		{"a file that is not there", "| `kernel/tool/nothing.go` | `Dispatcher.Call` | runs a call |", "kernel/tool/nothing.go is not there"},
		{"a method without its type", "| `kernel/tool/dispatcher.go` | `Call` | runs a call |", "kernel/tool/dispatcher.go has no Call"},
		{"a function of another file", "| `kernel/tool/tool.go` | `Dispatcher.Call` | runs a call |", "kernel/tool/tool.go has no Dispatcher.Call"},
		{"a test that is not there", "run `TestNothingAtAll`", "TestNothingAtAll is not a test"},
		{"a file in a text", "see `docs/NOTHING.md`", "docs/NOTHING.md is not there"},
		{"a row that begins with something else", "| `Dispatcher.Call` | `x` | y |", "Dispatcher.Call does not begin a row: want a file or a folder"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rows := 0
			if got := strings.Join(misguided(t, tc.text, tests, &rows), "; "); got != tc.want {
				t.Errorf("misguided(%q) = %q, want %q", tc.text, got, tc.want)
			}
		})
	}
}
