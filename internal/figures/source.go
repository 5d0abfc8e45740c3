package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// file is one parsed file of Go, whichever system it is for.
type file struct {
	path  string // below the root, with slashes
	lines int
	test  bool
	set   *token.FileSet
	ast   *ast.File
}

// source reads all Go below root, but what tests use as data and what others wrote.
func source(root string) ([]file, error) {
	var files []file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (name == "testdata" || name == "node_modules" || strings.HasPrefix(name, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		data, err := os.ReadFile(path) //nolint:gosec,forbidigo // a file of this repository
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f, err := parse(filepath.ToSlash(name), data)
		files = append(files, f)
		return err
	})
	return files, err
}

func parse(path string, data []byte) (file, error) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, path, data, parser.ParseComments|parser.SkipObjectResolution)
	return file{path: path, lines: bytes.Count(data, []byte("\n")), test: strings.HasSuffix(path, "_test.go"), set: set, ast: parsed}, err
}

// at names the place of a node.
func (f file) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.set.Position(n.Pos()).Line)
}

// functions calls each with every function that has a name, and its length in lines.
func (f file) functions(each func(decl *ast.FuncDecl, lines int)) {
	for _, decl := range f.ast.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			each(fn, f.set.Position(fn.End()).Line-f.set.Position(fn.Pos()).Line+1)
		}
	}
}

// field is a field of a struct: Type.field.
type field struct {
	name string
	node ast.Node
}

// contexts returns every field of a struct that holds a context, or several of them.
func (f file) contexts() []field {
	if !f.imports("context") {
		return nil
	}
	var held []field
	var in []ast.Node // the nodes around one
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if n == nil {
			in = in[:len(in)-1]
			return true
		}
		in = append(in, n)
		s, ok := n.(*ast.StructType)
		if !ok {
			return true
		}
		for _, part := range s.Fields.List {
			if !holdsContext(part.Type) {
				continue
			}
			names := part.Names
			if len(names) == 0 {
				names = []*ast.Ident{ast.NewIdent("Context")}
			}
			for _, name := range names {
				held = append(held, field{around(in) + "." + name.Name, part})
			}
		}
		return true
	})
	return held
}

// around names the innermost type or function that a node stands in.
func around(nodes []ast.Node) string {
	for _, n := range slices.Backward(nodes) {
		switch n := n.(type) {
		case *ast.TypeSpec:
			return n.Name.Name
		case *ast.FuncDecl:
			return n.Name.Name
		}
	}
	return "var"
}

// holdsContext reports whether a value of that type keeps a context: a function that
// takes one does not, and a struct's own fields are looked at by themselves.
func holdsContext(t ast.Expr) bool {
	found := false
	ast.Inspect(t, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncType, *ast.InterfaceType, *ast.StructType:
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "context" && n.Sel.Name == "Context" {
				found = true
			}
		}
		return true
	})
	return found
}

func (f file) imports(path string) bool {
	return slices.ContainsFunc(f.ast.Imports, func(i *ast.ImportSpec) bool {
		got, err := strconv.Unquote(i.Path.Value)
		return err == nil && got == path
	})
}
