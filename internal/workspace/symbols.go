package workspace

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Symbol is a declaration in a file.
type Symbol struct {
	Path string
	Line int
	Kind string // func, method, type, class, const, var
	Name string
}

const maxMapped = 1 << 20 // bytes of a file whose symbols are listed

// Symbols lists the declarations of the files below p: of Go by its parser, of other
// languages by declaring lines. more reports that there are others.
func (w *Workspace) Symbols(ctx context.Context, p string, limit int) (out []Symbol, more bool, err error) {
	err = w.Walk(ctx, p, func(e Entry) error {
		if e.Dir || e.Size > maxMapped {
			return nil
		}
		find := symbolsOf(e.Path)
		if find == nil {
			return nil
		}
		data, _, err := w.read(e.Path)
		text, err := asText(data, err)
		if err != nil {
			return nil //nolint:nilerr // an unreadable file has no symbols
		}
		for _, s := range find(e.Path, text) {
			if len(out) == limit {
				more = true
				return fs.SkipAll
			}
			out = append(out, s)
		}
		return nil
	})
	return out, more, err
}

func symbolsOf(p string) func(p, text string) []Symbol {
	ext := strings.ToLower(path.Ext(p))
	if ext == ".go" {
		return goSymbols
	}
	if rules := languages[ext]; rules != nil {
		return func(p, text string) []Symbol { return lineSymbols(rules, p, text) }
	}
	return nil
}

// goSymbols uses Go's own parser; an incomplete file yields the parts that parse.
func goSymbols(p, text string) []Symbol {
	fset := token.NewFileSet()
	f, _ := parser.ParseFile(fset, p, text, parser.SkipObjectResolution) // errors leave a part of the tree
	if f == nil {
		return nil
	}
	var out []Symbol
	add := func(at token.Pos, kind, name string) {
		out = append(out, Symbol{p, fset.Position(at).Line, kind, name})
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv != nil && len(d.Recv.List) == 1 {
				add(d.Pos(), "method", receiver(d.Recv.List[0].Type)+"."+d.Name.Name)
			} else {
				add(d.Pos(), "func", d.Name.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Pos(), "type", s.Name.Name)
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.IsExported() {
							add(n.Pos(), d.Tok.String(), n.Name)
						}
					}
				}
			}
		}
	}
	return out
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	}
	return "?"
}

// rule is a line that declares something; the name is its last group.
type rule struct {
	kind string
	re   func() *regexp.Regexp
}

func rules(pairs ...string) []rule {
	var out []rule
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, rule{pairs[i], lazyregexp.New(pairs[i+1])})
	}
	return out
}

var (
	python     = rules("class", `^\s*class\s+(\w+)`, "func", `^\s*(?:async\s+)?def\s+(\w+)`)
	javascript = rules("class", `^\s*(?:export\s+)?(?:default\s+)?(?:abstract\s+)?class\s+(\w+)`, "type", `^\s*(?:export\s+)?(?:declare\s+)?(?:interface|type|enum)\s+(\w+)`,
		"func", `^\s*(?:export\s+)?(?:default\s+)?(?:async\s+)?function\s*\*?\s*(\w+)`, "const", `^(?:export\s+)?(?:const|let|var)\s+(\w+)`)
	rust  = rules("type", `^\s*(?:pub(?:\([^)]*\))?\s+)?(?:struct|enum|trait|type|union)\s+(\w+)`, "func", `^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const\s+)?(?:async\s+)?(?:unsafe\s+)?fn\s+(\w+)`)
	java  = rules("class", `^\s*(?:(?:public|protected|private|abstract|final|static|sealed|data|open|internal)\s+)*(?:class|interface|enum|record|object)\s+(\w+)`, "func", `^\s*(?:(?:public|protected|private|static|final|override|suspend|open|internal)\s+)*fun\s+(\w+)`)
	c     = rules("type", `^(?:typedef\s+)?(?:struct|enum|union|class)\s+(\w+)`, "func", `^[A-Za-z_][\w\s*&:<>,]*?\b(\w+)\s*\([^;]*$`)
	ruby  = rules("class", `^\s*(?:class|module)\s+([\w:]+)`, "func", `^\s*def\s+([\w.?!]+)`)
	php   = rules("class", `^\s*(?:abstract\s+|final\s+)?(?:class|interface|trait|enum)\s+(\w+)`, "func", `^\s*(?:(?:public|protected|private|static)\s+)*function\s+(\w+)`)
	shell = rules("func", `^\s*(?:function\s+)?(\w+)\s*\(\)\s*\{`)

	languages = map[string][]rule{
		".py": python, ".js": javascript, ".mjs": javascript, ".cjs": javascript, ".jsx": javascript, ".ts": javascript, ".tsx": javascript, ".mts": javascript,
		".rs": rust, ".java": java, ".kt": java, ".cs": java, ".c": c, ".h": c, ".cc": c, ".cpp": c, ".hpp": c, ".rb": ruby, ".php": php, ".sh": shell,
	}
)

func lineSymbols(rs []rule, p, text string) []Symbol {
	var out []Symbol
	n := 0
	for line := range strings.Lines(text) {
		if n++; len(line) > 500 {
			continue
		}
		for _, r := range rs {
			if m := r.re().FindStringSubmatch(line); m != nil {
				out = append(out, Symbol{p, n, r.kind, m[len(m)-1]})
				break
			}
		}
	}
	return out
}
