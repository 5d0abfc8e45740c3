package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// OP-124: every code that yaya answers with has a row in docs/TROUBLESHOOTING.md with its cause and its
// remedy: the codes of the API, kinds of failed tool calls, codes of JSON-RPC, and exit codes.
func TestErrorCodesAreExplained(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(root, "docs", "TROUBLESHOOTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(data), "\n## Codes of the APIs\n")
	if !found {
		t.Fatal("docs/TROUBLESHOOTING.md has no section \"Codes of the APIs\"")
	}
	explained := explainedCodes(t, text)
	codes := answeredCodes(t)
	for kind, atLeast := range map[string]int{"API": 25, "tool": 9, "JSON-RPC": 14, "exit": 5} {
		if n := len(codes[kind]); n < atLeast {
			t.Errorf("the code has %d codes of the kind %s, want at least %d: this test no longer finds them", n, kind, atLeast)
		}
		for code, where := range codes[kind] {
			if !explained[code] {
				t.Errorf("docs/TROUBLESHOOTING.md does not explain %s, a code of the kind %s (%s)", code, kind, where)
			}
		}
	}
}

var codeSpan = regexp.MustCompile("`([a-z_]+|-?[0-9]+)`")

// explainedCodes are those in the first cell of a row whose other cells say something.
func explainedCodes(t *testing.T, text string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 {
			continue
		}
		for _, m := range codeSpan.FindAllStringSubmatch(cells[1], -1) {
			if strings.TrimSpace(cells[2]) == "" || strings.TrimSpace(cells[3]) == "" {
				t.Errorf("docs/TROUBLESHOOTING.md: %s has no cause or no remedy", m[1])
			}
			out[m[1]] = true
		}
	}
	return out
}

// ofProtocol are codes that the MCP library names.
var ofProtocol = map[string]string{"HEADER_MISMATCH": "-32020", "MISSING_REQUIRED_CLIENT_CAPABILITY": "-32021", "UNSUPPORTED_PROTOCOL_VERSION": "-32022"}

// answeredCodes collects the codes from the code, with where each is.
func answeredCodes(t *testing.T) map[string]map[string]string {
	t.Helper()
	out := map[string]map[string]string{"API": {}, "tool": {}, "JSON-RPC": {}, "exit": {}}
	for _, top := range []string{"cmd", "daemon", "gateway", "mcpbridge", "kernel/tool", "internal/jsonrpc"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() && strings.HasPrefix(e.Name(), ".") {
				return fs.SkipDir // of a test that runs at the same time
			}
			if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				kind, code := codeIn(n, path)
				if code != "" {
					out[kind][code] = fmt.Sprint(set.Position(n.Pos()))
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// codeIn returns the code that a node is about, "" for none.
func codeIn(n ast.Node, path string) (kind, code string) {
	tables := strings.HasSuffix(filepath.ToSlash(path), "gateway/api/errors.go")
	switch n := n.(type) {
	case *ast.CallExpr: // api.Coded(status, "code", …)
		if name(n.Fun) == "Coded" && len(n.Args) > 2 {
			return "API", literal(n.Args[1])
		}
	case *ast.KeyValueExpr:
		if tables && name(n.Key) == "code" || tables && strings.HasPrefix(name(n.Key), "Status") {
			return "API", literal(n.Value)
		}
	case *ast.SelectorExpr:
		return "JSON-RPC", ofProtocol[n.Sel.Name]
	case *ast.ValueSpec:
		if len(n.Names) != 1 || len(n.Values) != 1 {
			return "", ""
		}
		declared, value := n.Names[0].Name, literal(n.Values[0])
		switch {
		case name(n.Type) == "ErrorKind":
			return "tool", value
		case strings.HasPrefix(declared, "Code") && strings.HasPrefix(value, "-32"):
			return "JSON-RPC", value
		case strings.HasPrefix(declared, "exit") && strings.Contains(filepath.ToSlash(path), "cmd/yaya/"):
			return "exit", value
		}
	}
	return "", ""
}

// name returns the last identifier of an expression, "" if it has none.
func name(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// literal returns the text or the number of a literal, "" for anything else.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.UnaryExpr:
		if e.Op == token.SUB {
			return "-" + literal(e.X)
		}
	case *ast.BasicLit:
		if s, err := strconv.Unquote(e.Value); err == nil {
			return s
		}
		return e.Value
	}
	return ""
}
