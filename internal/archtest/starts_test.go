package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"strings"
	"testing"
)

// Every command and every sandbox starts yaya, and pays for what its packages do when they
// are initialized: a regular expression takes up to a millisecond. internal/lazyregexp compiles
// one at its first use.
func TestNoExpressionIsCompiledAtTheStart(t *testing.T) {
	looked := 0
	for _, p := range shipped(t) {
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			looked++
			for _, decl := range f.Decls {
				if v, ok := decl.(*ast.GenDecl); ok && compiles(v) {
					t.Errorf("%s/%s compiles a regular expression when it is initialized, want lazyregexp.New", strings.TrimPrefix(p.ImportPath, module+"/"), name)
				}
			}
		}
	}
	if looked < 300 {
		t.Errorf("%d files were looked at, want all", looked)
	}
}

// shipped are the packages that cmd/yaya is made of.
func shipped(t *testing.T) (out []pkg) {
	t.Helper()
	byPath := map[string]pkg{}
	for _, p := range packages(t) {
		byPath[p.ImportPath] = p
	}
	next := []string{module + "/cmd/yaya"}
	for len(next) > 0 {
		p, known := byPath[next[0]]
		next = next[1:]
		if !known {
			continue
		}
		delete(byPath, p.ImportPath)
		out = append(out, p)
		next = append(next, p.Imports...)
	}
	return out
}

// compiles reports whether a declaration compiles a regular expression, other than in a function
// that is called later.
func compiles(decl *ast.GenDecl) (found bool) {
	ast.Inspect(decl, func(n ast.Node) bool {
		if _, later := n.(*ast.FuncLit); later {
			return false
		}
		if call, ok := n.(*ast.CallExpr); ok && types.ExprString(call.Fun) == "regexp.MustCompile" {
			found = true
		}
		return true
	})
	return found
}
