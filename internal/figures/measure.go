package main

import (
	"fmt"
	"go/ast"
	"go/types"
	"path"
	"strings"
)

// The figures, by name.
const (
	fileLength     = "longest file, lines"
	testLength     = "longest file of tests, lines"
	functionLength = "longest function, lines"
	testFunction   = "longest function of tests, lines"
	interfaceWidth = "widest interface, methods"
	undocumented   = "packages without a comment"
	lostChains     = "errors that lose their cause"
	inits          = "init functions"
	heldContexts   = "contexts in structs"
)

// unlimited is the limit of a figure that is only told.
const unlimited = -1

// minWords is how many words a package comment has at least: fewer say nothing.
const minWords = 6

// figure is one measure of all the code.
type figure struct {
	name    string
	limit   int
	value   int    // the largest, or for a limit of 0 how many; without those that have a reason
	largest string // whose value it is
	over    []finding
}

// finding is one thing that is beyond a limit. Its name stays when lines move.
type finding struct {
	name  string
	at    string
	value int
}

// measure measures the code below root. Figures that need types are measured for each system.
func measure(root string, systems ...string) ([]*figure, error) {
	var all []*figure
	byName := map[string]*figure{}
	for _, f := range []figure{
		{name: fileLength, limit: 499},
		{name: testLength, limit: unlimited},
		{name: functionLength, limit: 99},
		{name: testFunction, limit: unlimited},
		{name: interfaceWidth, limit: 6},
		{name: undocumented},
		{name: lostChains},
		{name: inits},
		{name: heldContexts},
	} {
		all, byName[f.name] = append(all, &f), &f
	}
	files, err := source(root)
	if err != nil {
		return nil, err
	}
	documented := map[string]int{} // words, by folder
	for _, f := range files {
		f.measure(byName)
		if folder := path.Dir(f.path); !f.test {
			documented[folder] = max(documented[folder], len(strings.Fields(f.ast.Doc.Text())))
		}
	}
	for folder, words := range documented {
		if words < minWords {
			byName[undocumented].count(folder, folder)
		}
	}
	for _, system := range systems {
		packages, err := typed(root, system)
		if err != nil {
			return nil, err
		}
		for _, p := range packages {
			p.measure(byName)
		}
	}
	return all, nil
}

// size notes a value of a figure that tells the largest.
func (f *figure) size(name, at string, value int) {
	if f.limit != unlimited && value > f.limit {
		f.note(finding{name, at, value})
		if reasons[f.name][name] != "" {
			return
		}
	}
	if value > f.value {
		f.value, f.largest = value, name
	}
}

// count notes one more of a figure that counts.
func (f *figure) count(name, at string) {
	f.note(finding{name, at, 1})
	if reasons[f.name][name] == "" {
		f.value++
		f.largest = name
	}
}

// note keeps one finding for each place: most code is there on every system.
func (f *figure) note(n finding) {
	for _, o := range f.over {
		if o == n {
			return
		}
	}
	f.over = append(f.over, n)
}

func (f file) measure(figures map[string]*figure) {
	length, function := figures[fileLength], figures[functionLength]
	if f.test {
		length, function = figures[testLength], figures[testFunction]
	}
	length.size(f.path, f.path, f.lines)
	folder := path.Dir(f.path)
	f.functions(func(decl *ast.FuncDecl, lines int) {
		name := folder + "." + decl.Name.Name
		if decl.Recv != nil {
			name = folder + "." + receiver(decl.Recv.List[0].Type) + "." + decl.Name.Name
		}
		function.size(name, f.at(decl), lines)
		if decl.Recv == nil && decl.Name.Name == "init" && !f.test {
			figures[inits].count(name, f.at(decl))
		}
	})
	if f.test {
		return
	}
	for _, field := range f.contexts() {
		figures[heldContexts].count(folder+"."+field.name, f.at(field.node))
	}
}

// receiver names the type of a method.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	}
	return types.ExprString(t)
}

func (c checked) measure(figures map[string]*figure) {
	c.interfaces(func(spec *ast.TypeSpec, methods int) {
		figures[interfaceWidth].size(c.folder+"."+spec.Name.Name, c.at(spec), methods)
	})
	for _, l := range c.lost() {
		figures[lostChains].count(fmt.Sprintf("%s.%s", c.folder, l.function), c.at(l.arg))
	}
}
