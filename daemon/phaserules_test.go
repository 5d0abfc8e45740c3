package daemon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A phase needs nothing that is made later: neither what it is made of, however deep, nor
// its methods and the function that makes it know a later phase; nobody else sets what it
// has; and no closure can wait for a phase, since a variable of one is never empty.
func TestPhasesKnowOnlyEarlierOnes(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	p := parsed{set: token.NewFileSet()}
	for _, name := range names {
		ours, err := build.Default.MatchFile(".", name) // of this system
		if err != nil {
			t.Fatal(err)
		}
		if ours && !strings.HasSuffix(name, "_test.go") {
			p.add(t, name, nil)
		}
	}
	p.check(t, importer.ForCompiler(p.set, "gc", exports(t)))
	for _, fault := range p.faults() {
		t.Error(fault)
	}
	for _, name := range order {
		if p.looked[name] < 3 { // its type, what makes it, and Close
			t.Errorf("the phase %s has %d declarations, want 3 or more: is it renamed?", name, p.looked[name])
		}
	}
}

// exports opens what the compiler has written of the packages that this one imports.
func exports(t *testing.T) importer.Lookup {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files[p.ImportPath] = p.Export
	}
	return func(path string) (io.ReadCloser, error) { return os.Open(files[path]) }
}

// parsed is a package with phases, and what was looked at in it.
type parsed struct {
	set    *token.FileSet
	files  []*ast.File
	info   types.Info
	scope  *types.Scope
	looked map[string]int // phase → declarations
}

func (p *parsed) add(t *testing.T, name string, source any) {
	t.Helper()
	f, err := parser.ParseFile(p.set, name, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	p.files = append(p.files, f)
}

func (p *parsed) check(t *testing.T, imports types.Importer) {
	t.Helper()
	p.info = types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	cfg := types.Config{Importer: imports}
	pkg, err := cfg.Check("daemon", p.set, p.files, &p.info)
	if err != nil {
		t.Fatal(err)
	}
	p.scope = pkg.Scope()
}

// phase is the index of the phase that a type is, or points to; -1 for none.
func (p *parsed) phase(typ types.Type) int {
	if ptr, ok := typ.(*types.Pointer); ok {
		typ = ptr.Elem()
	}
	named, ok := typ.(*types.Named)
	if !ok || named.Obj().Parent() != p.scope {
		return -1
	}
	return slices.Index(order, named.Obj().Name())
}

// owner is the phase that a function belongs to: it is a method of it, or makes it.
func (p *parsed) owner(f *ast.FuncDecl) int {
	sig := p.info.Defs[f.Name].Type().(*types.Signature) //nolint:forcetypeassert // of a function
	if sig.Recv() != nil {
		return p.phase(sig.Recv().Type())
	}
	if sig.Results().Len() > 0 {
		return p.phase(sig.Results().At(0).Type())
	}
	return -1
}

// faults says where a phase could come to know a later one.
func (p *parsed) faults() (out []string) {
	p.looked = map[string]int{}
	for i, name := range order {
		if obj := p.scope.Lookup(name); obj != nil {
			p.looked[name]++
			if way := p.reaches(obj.Type().Underlying(), i, map[types.Type]bool{}); way != "" {
				out = append(out, fmt.Sprintf("the phase %s is made of a later one: %s%s", name, name, way))
			}
		}
	}
	for _, file := range p.files {
		for _, decl := range file.Decls {
			owner := -1
			f, isFunc := decl.(*ast.FuncDecl)
			if isFunc {
				if owner = p.owner(f); owner >= 0 {
					p.looked[order[owner]]++
				}
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if fault := p.fault(n, owner); fault != "" {
					out = append(out, fmt.Sprintf("%s: %s", p.set.Position(n.Pos()), fault))
				}
				return true
			})
		}
	}
	return out
}

// reaches is the way from a type to a phase that comes after that one, "" if there is
// none. It follows the types of this package.
func (p *parsed) reaches(typ types.Type, after int, seen map[types.Type]bool) string {
	if i := p.phase(typ); i > after {
		return " → " + order[i]
	} else if i >= 0 || seen[typ] {
		return "" // an earlier one is looked at by itself
	}
	seen[typ] = true
	next := func(typ types.Type) string { return p.reaches(typ, after, seen) }
	switch typ := typ.(type) {
	case *types.Named:
		if typ.Obj().Parent() == p.scope {
			if way := next(typ.Underlying()); way != "" {
				return " → " + typ.Obj().Name() + way
			}
		}
		for arg := range typ.TypeArgs().Types() {
			if way := next(arg); way != "" {
				return way
			}
		}
	case *types.Struct:
		for field := range typ.Fields() {
			if way := next(field.Type()); way != "" {
				return "." + field.Name() + way
			}
		}
	case *types.Signature:
		for _, list := range []*types.Tuple{typ.Params(), typ.Results()} {
			for v := range list.Variables() {
				if way := next(v.Type()); way != "" {
					return way
				}
			}
		}
	case *types.Map:
		return next(typ.Key()) + next(typ.Elem())
	case interface{ Elem() types.Type }: // a pointer, slice, array or channel
		return next(typ.Elem())
	}
	return ""
}

// fault says what is wrong with a node of a function, whose owner is a phase or -1.
func (p *parsed) fault(n ast.Node, owner int) string {
	switch n := n.(type) {
	case ast.Expr:
		if i := p.phase(p.info.TypeOf(n)); owner >= 0 && i > owner {
			return fmt.Sprintf("a function of the phase %s knows the later phase %s: %s", order[owner], order[i], types.ExprString(n))
		}
	case *ast.ValueSpec:
		for _, name := range n.Names {
			if obj := p.info.Defs[name]; obj != nil && len(n.Values) == 0 && p.phase(obj.Type()) >= 0 {
				return fmt.Sprintf("the variable %s of the phase %s is declared before the phase is there", name.Name, order[p.phase(obj.Type())])
			}
		}
	case *ast.AssignStmt:
		for _, to := range n.Lhs {
			if fault := p.setting(n, to, owner); fault != "" {
				return fault
			}
		}
	}
	return ""
}

// setting says what is wrong with what an assignment sets.
func (p *parsed) setting(n *ast.AssignStmt, to ast.Expr, owner int) string {
	if id, ok := to.(*ast.Ident); ok {
		if obj := p.info.Uses[id]; obj != nil && n.Tok == token.ASSIGN && p.phase(obj.Type()) >= 0 {
			return fmt.Sprintf("the variable %s of the phase %s is set again", id.Name, order[p.phase(obj.Type())])
		}
		return ""
	}
	for at := holder(to); at != nil; at = holder(at) {
		if i := p.phase(p.info.TypeOf(at)); i >= 0 && i != owner {
			return fmt.Sprintf("something of the phase %s is set by a function that is not its own", order[i])
		}
	}
	return ""
}

// holder returns the node that an expression is a part of; nil if it stands by itself.
func holder(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.SelectorExpr:
		return e.X
	case *ast.IndexExpr:
		return e.X
	case *ast.StarExpr:
		return e.X
	case *ast.ParenExpr:
		return e.X
	}
	return nil
}

// The rules find each way in which a phase could come to know a later one.
func TestPhaseRules(t *testing.T) {
	const sound = `package daemon
type place struct { told func() }
type stores struct { at *place; told []func(); own helper }
type helper struct { at *place }
func openPlace() *place { return new(place) }
func openStores(at *place) *stores { st := &stores{at: at}; st.own.at = at; return st }
func (st *stores) follow(f func()) { st.told = append(st.told, f) }
`
	for name, tt := range map[string]struct{ source, want string }{
		"sound":                           {sound, ""},
		"a registration":                  {sound + `func openCore(st *stores) *core { c := &core{st: st}; st.follow(c.now); return c }; type core struct { st *stores }; func (c *core) now() {}`, ""},
		"a field":                         {`package daemon; type place struct { x *stores }; type stores struct{}`, "place.x → stores"},
		"a nested struct":                 {`package daemon; type place struct { x deep }; type deep struct { y []*deeper }; type deeper struct { z map[string]stores }; type stores struct{}`, "place.x → deep.y → deeper.z → stores"},
		"a struct without a name":         {`package daemon; type place struct { x struct { y *stores } }; type stores struct{}`, "place.x.y → stores"},
		"what a function takes":           {`package daemon; type place struct { x func(stores) }; type stores struct{}`, "place.x → stores"},
		"a method's parameter":            {`package daemon; type place struct{}; type stores struct{}; func (at *place) f(st *stores) {}`, "place knows the later phase stores: st"},
		"what a helper returns":           {sound + `func (at *place) f() { later().follow(nil) }; func later() *stores { return nil }`, "place knows the later phase stores: later()"},
		"a closure that is set later":     {sound + `func serve() { at := openPlace(); st := openStores(at); at.told = func() { st.follow(nil) } }`, "something of the phase place is set"},
		"… by the later phase":            {sound + `func (st *stores) f() { st.at.told = func() { st.follow(nil) } }`, "something of the phase place is set"},
		"… deeper":                        {sound + `func serve(st *stores) { st.told[0] = func() {} }`, "something of the phase stores is set"},
		"a closure over what comes later": {sound + `func serve() { var st *stores; f := func() { st.follow(nil) }; f(); st = openStores(nil) }`, "stores is declared before"},
		"a variable that is set again":    {sound + `func serve() { st := openStores(nil); st = openStores(nil); st.follow(nil) }`, "stores is set again"},
	} {
		p := parsed{set: token.NewFileSet()}
		p.add(t, "x.go", tt.source)
		p.check(t, nil)
		got := p.faults()
		if (tt.want == "") != (len(got) == 0) || !strings.Contains(strings.Join(got, "\n"), tt.want) {
			t.Errorf("%s: faults %q, want one with %q", name, got, tt.want)
		}
	}
}
