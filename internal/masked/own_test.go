package masked_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/masked"
)

// Texts of yaya's own pass as they are: "passphrase: set NAME" looks like a passphrase
// with its value, and a person would read ****.
func TestOwnTextsAreNotMasked(t *testing.T) {
	const root = "../.."
	fset, texts := token.NewFileSet(), 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (d.Name() == "node_modules" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err != nil || !strings.Contains(text, " ") {
				return true
			}
			if strings.Contains(text, "Authorization") || strings.Contains(text, "${secret:") {
				return true // help and snippets, which show where a secret goes
			}
			texts++
			var s masked.Secrets
			if got := s.String(text); got != text {
				t.Errorf("%s: a person reads %q", fset.Position(lit.Pos()), got)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if texts < 1000 {
		t.Fatalf("%d texts were looked at, want thousands", texts)
	}
}
