package sessions

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The document of /v1 describes every type of event that is sent, with the data that it is
// sent with: an event that project.go or a feed makes, and eventData lacks, fails here, and
// so does one that nothing sends.
func TestEventsAreDescribed(t *testing.T) {
	set := token.NewFileSet()
	pkgs, err := parser.ParseDir(set, ".", func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0) //nolint:staticcheck // files are all that is asked for
	if err != nil {
		t.Fatal(err)
	}
	types, described, sent := map[string]bool{}, map[string]string{}, map[string]map[string]bool{}
	send := func(typ, data ast.Expr) {
		name, ok := typ.(*ast.Ident)
		if !ok {
			return
		}
		if sent[name.Name] == nil {
			sent[name.Name] = map[string]bool{}
		}
		sent[name.Name][typeOf(data)] = true
	}
	for _, file := range pkgs["sessions"].Files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GenDecl:
				for _, name := range eventTypes(n) {
					types[name] = true
				}
			case *ast.ValueSpec: // eventData
				if n.Names[0].Name == "eventData" {
					for _, e := range n.Values[0].(*ast.CompositeLit).Elts {
						kv := e.(*ast.KeyValueExpr)
						described[kv.Key.(*ast.Ident).Name] = typeOf(kv.Value)
					}
				}
			case *ast.ReturnStmt: // return Type, data, true
				if len(n.Results) == 3 {
					send(n.Results[0], n.Results[1])
				}
			case *ast.AssignStmt: // ev.Type, ev.Data = Type, data
				if len(n.Lhs) >= 2 && len(n.Rhs) >= 2 && selects(n.Lhs[0], "Type") && selects(n.Lhs[1], "Data") {
					send(n.Rhs[0], n.Rhs[1])
				}
			case *ast.CallExpr: // volatile(Type, data)
				if f, ok := n.Fun.(*ast.Ident); ok && f.Name == "volatile" && len(n.Args) == 2 {
					send(n.Args[0], n.Args[1])
				}
			case *ast.CompositeLit: // Event{Type: Type, Data: data}
				members := map[string]ast.Expr{}
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						if key, ok := kv.Key.(*ast.Ident); ok {
							members[key.Name] = kv.Value
						}
					}
				}
				if members["Type"] != nil && members["Data"] != nil {
					send(members["Type"], members["Data"])
				}
			}
			return true
		})
	}
	if len(types) < 20 {
		t.Fatalf("found the types %q, want all of project.go", slices.Sorted(maps.Keys(types)))
	}
	for _, name := range slices.Sorted(maps.Keys(types)) {
		data, ok := described[name]
		if !ok {
			t.Errorf("eventData lacks %s, want its data described", name)
			continue
		}
		switch of := slices.Sorted(maps.Keys(sent[name])); {
		case len(of) == 0:
			t.Errorf("eventData describes %s, want an event that is sent", name)
		case !slices.ContainsFunc(of, func(s string) bool { return s == "" || s == data }):
			t.Errorf("%s is sent with %q, and eventData says %s; want the same", name, of, data)
		}
	}
	for name := range described {
		if !types[name] {
			t.Errorf("eventData describes %s, want a type of project.go", name)
		}
	}
}

// docs/SESSIONS.md has a row for every type of event.
func TestEventsAreDocumented(t *testing.T) {
	const file = "../../docs/SESSIONS.md"
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name := range eventData {
		if !regexp.MustCompile("(?m)^\\| (`\\w+`, )*`" + name + "`(, `\\w+`)* \\|").Match(doc) {
			t.Errorf("%s has no row of %s, want one", file, name)
		}
	}
}

// eventTypes returns the names of the block of constants that begins with SessionCreated.
func eventTypes(d *ast.GenDecl) (names []string) {
	if d.Tok != token.CONST {
		return nil
	}
	for i, s := range d.Specs {
		name := s.(*ast.ValueSpec).Names[0].Name
		if i == 0 && name != "SessionCreated" {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// selects reports whether an expression is a field of that name.
func selects(e ast.Expr, field string) bool {
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == field
}

// typeOf returns the type of a composite literal, "" if the expression is something else.
func typeOf(e ast.Expr) string {
	if c, ok := e.(*ast.CompositeLit); ok {
		if id, ok := c.Type.(*ast.Ident); ok {
			return id.Name
		}
	}
	return ""
}
