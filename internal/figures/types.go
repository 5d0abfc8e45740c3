package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// checked is one package with its types.
type checked struct {
	path   string
	folder string // below root
	root   string
	set    *token.FileSet
	files  []*ast.File
	info   *types.Info
}

// at names the place of a node.
func (c checked) at(n ast.Node) string {
	p := c.set.Position(n.Pos())
	return fmt.Sprintf("%s:%d", below(c.root, p.Filename), p.Line)
}

// below returns the reported form of a path: relative to the root, with slashes.
func below(root, path string) string {
	if name, err := filepath.Rel(root, path); err == nil {
		path = name
	}
	return filepath.ToSlash(path)
}

// typed checks the types of all packages below root as a system has them, without their
// tests. Their imports come from the compiler's cache, by go list.
func typed(root, goos string) ([]checked, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,Module", "./...") //nolint:noctx,forbidigo // ends by itself
	cmd.Dir, cmd.Env, cmd.Stderr = root, append(os.Environ(), "GOOS="+goos, "PWD="+root), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	type listed struct {
		ImportPath string   `json:"ImportPath"`
		Dir        string   `json:"Dir"`
		Export     string   `json:"Export"`
		GoFiles    []string `json:"GoFiles"`
		Module     *struct {
			Main bool `json:"Main"`
		} `json:"Module"`
	}
	var ours []listed
	exports := map[string]string{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		exports[p.ImportPath] = p.Export
		if p.Module != nil && p.Module.Main {
			ours = append(ours, p)
		}
	}
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path]) //nolint:gosec,forbidigo // what go list named
	})
	var all []checked
	for _, p := range ours {
		c := checked{path: p.ImportPath, folder: below(root, p.Dir), root: root, set: set, info: &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}}
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			c.files = append(c.files, f)
		}
		if err := c.check(imports); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

func (c checked) check(imports types.Importer) error {
	_, err := (&types.Config{Importer: imports, FakeImportC: true}).Check(c.path, c.set, c.files, c.info)
	return err
}

// interfaces calls each with every named interface and the number of its methods. An
// interface that it embeds counts once: its methods are a part with a name of its own.
func (c checked) interfaces(each func(spec *ast.TypeSpec, methods int)) {
	for _, f := range c.files {
		ast.Inspect(f, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if i, ok := c.info.Defs[spec.Name].Type().Underlying().(*types.Interface); ok {
					each(spec, i.NumExplicitMethods()+i.NumEmbeddeds())
				}
			}
			return true
		})
	}
}

var errorType = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)

// loss is an error, or the text of one, of which a call makes a new error without
// wrapping it.
type loss struct {
	function string // in which
	arg      ast.Expr
}

// lost finds what is lost in a package.
func (c checked) lost() []loss {
	var found []loss
	for _, f := range c.files {
		for _, decl := range f.Decls {
			function := "var"
			if fn, ok := decl.(*ast.FuncDecl); ok {
				function = fn.Name.Name
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					for _, arg := range c.lostBy(call) {
						found = append(found, loss{function, arg})
					}
				}
				return true
			})
		}
	}
	return found
}

func (c checked) lostBy(call *ast.CallExpr) []ast.Expr {
	switch c.function(call) {
	case "fmt.Errorf":
		return c.unwrapped(call)
	case "errors.New":
		return c.inside(call.Args[0])
	}
	return nil
}

// inside returns the errors of which a text is made. A field of an error, such as the
// message of a service, is not the error.
func (c checked) inside(text ast.Expr) []ast.Expr {
	var found []ast.Expr
	ast.Inspect(text, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if !ok {
			return true
		}
		if c.isError(e) || c.isText(e) {
			found = append(found, e)
			return false
		}
		sel, ok := e.(*ast.SelectorExpr)
		return !ok || !c.isError(sel.X)
	})
	return found
}

// unwrapped returns the arguments of one fmt.Errorf that are errors and have another
// verb than %w.
func (c checked) unwrapped(call *ast.CallExpr) []ast.Expr {
	var verbs []byte
	if v := c.info.Types[call.Args[0]].Value; v != nil && v.Kind() == constant.String {
		verbs = verbsOf(constant.StringVal(v))
	}
	var found []ast.Expr
	for i, arg := range call.Args[1:] {
		if i < len(verbs) && verbs[i] == 'w' {
			continue
		}
		if c.isError(arg) || c.isText(arg) {
			found = append(found, arg)
		}
	}
	return found
}

// function names the function of a package that is called: fmt.Errorf.
func (c checked) function(call *ast.CallExpr) string {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	fn, ok := c.info.Uses[sel.Sel].(*types.Func)
	if !ok || fn.Pkg() == nil {
		return ""
	}
	return fn.Pkg().Path() + "." + fn.Name()
}

// isError reports whether an expression is an error.
func (c checked) isError(e ast.Expr) bool {
	t := c.info.Types[e]
	return t.IsValue() && !t.IsNil() && types.Implements(t.Type, errorType)
}

// isText reports whether an expression is the text of an error: err.Error().
func (c checked) isText(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok || len(call.Args) > 0 {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Error" && c.isError(sel.X)
}

// verbsOf returns the verb of each argument of a format, in the order of the arguments.
// A width that is an argument counts as *; explicit indices are followed.
func verbsOf(format string) []byte {
	var verbs []byte
	put := func(i int, verb byte) {
		for len(verbs) <= i {
			verbs = append(verbs, 0)
		}
		verbs[i] = verb
	}
	arg := 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			continue
		}
		for i++; i < len(format); i++ {
			switch ch := format[i]; {
			case ch == '[':
				end := strings.IndexByte(format[i:], ']')
				if end < 0 {
					return verbs
				}
				n := 0
				if _, err := fmt.Sscanf(format[i+1:i+end], "%d", &n); err != nil || n < 1 {
					return verbs
				}
				arg = n - 1
				i += end
				continue
			case ch == '*':
				put(arg, '*')
				arg++
				continue
			case strings.IndexByte("+-# 0.123456789", ch) >= 0:
				continue
			case ch != '%':
				put(arg, ch)
				arg++
			}
			break
		}
	}
	return verbs
}
