package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	makes = regexp.MustCompile(`^(New|new)([A-Z]|$)`)
	// takes are functions that take hold of a file, a folder or a port.
	takes = regexp.MustCompile(`^([Oo]pen([A-Z]\w*)?|Listen(TCP|Packet|Unix|UDP)?|Mkdir(All)?|NewWatcher|Pipe|CreateTemp)$`)
)

// A function New… takes hold of nothing outside. An Open… does, of files, folders and ports:
// whoever calls it sees that there is something to close.
func TestNewOpensNothing(t *testing.T) {
	looked := 0
	for _, p := range packages(t) {
		if strings.HasSuffix(p.ImportPath, "test") {
			continue // for tests
		}
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range f.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && makes.MatchString(f.Name.Name) {
					looked++
					for _, call := range opened(f.Body) {
						t.Errorf("%s: %s calls %s, want it to be an Open… itself", strings.TrimPrefix(p.ImportPath, module+"/"), f.Name.Name, call)
					}
				}
			}
		}
	}
	if looked < 100 {
		t.Errorf("%d functions were looked at, want all", looked)
	}
}

// opened are the functions that a constructor calls and that take hold of something, but for
// those in function literals, which others call.
func opened(body *ast.BlockStmt) (out []string) {
	ast.Inspect(body, func(n ast.Node) bool {
		if _, later := n.(*ast.FuncLit); later {
			return false
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		name := ""
		switch f := call.Fun.(type) {
		case *ast.Ident:
			name = f.Name
		case *ast.SelectorExpr:
			name = f.Sel.Name
		}
		register := types.ExprString(call.Fun) == "cfg.Router.Listen" // has nothing to do with ports
		if takes.MatchString(name) && !register && !slices.Contains(out, name) {
			out = append(out, name)
		}
		return true
	})
	return out
}
