package archtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	module  = "github.com/yaya-ai/yaya"
	root    = "../.."
	maxFile = 500 // lines; ask which second subject has moved in
)

// allowed lists every arrow between our packages, relative to the module. An
// entry that ends in /... covers a subtree. internal packages are open to all,
// and import nothing of ours but what the table says; it names who else may import
// what.
var allowed = map[string][]string{
	"kernel/event":                {},
	"kernel/bus":                  {"kernel/event"},
	"kernel/tool":                 {"kernel/event", "kernel/bus"},
	"kernel/session":              {"kernel/event", "kernel/bus"},
	"kernel/config":               {"kernel/event", "kernel/bus"},
	"kernel/llm":                  {"kernel/event", "kernel/bus"},
	"kernel/plugin":               {"kernel/event", "kernel/bus", "kernel/config", "kernel/tool", "kernel/llm"},
	"kernel/loop":                 {"kernel/event", "kernel/bus", "kernel/session", "kernel/tool", "kernel/approval", "kernel/llm", "kernel/plugin", "kernel/config"},
	"kernel":                      {"kernel/..."},
	"plugins/strategy_react":      {"kernel/...", "feature"},
	"plugins/llm_echo":            {"kernel/...", "feature"},
	"plugins/llm_openai":          {"kernel/...", "feature"},
	"plugins/memory_sqlite":       {"kernel/...", "feature"},
	"plugins/agent_tool":          {"kernel/...", "feature"},
	"plugins/tool_workspace":      {"kernel/...", "feature"},
	"plugins/tool_shell":          {"kernel/...", "feature"},
	"plugins/strategy_coder":      {"kernel/...", "feature"},
	"kernel/approval":             {"kernel/event", "kernel/bus", "kernel/tool"},
	"kernel/folder":               {"kernel/event", "kernel/tool", "kernel/approval"},
	"auth":                        {},
	"feature":                     {"kernel/..."},
	"mcpbridge":                   {"kernel/...", "feature", "mcpbridge/..."},
	"mcpbridge/servers":           {"kernel/...", "feature"},
	"mcpbridge/clients":           {"mcpbridge/servers"},
	"mcpbridge/relay":             {"kernel/...", "feature"},
	"mcpbridge/trust":             {},
	"mcpbridge/oauth":             {"kernel/...", "feature", "mcpbridge/servers"},
	"mcpbridge/upstream":          {"kernel/...", "feature", "mcpbridge/servers", "mcpbridge/relay"},
	"mcpbridge/downstream":        {"kernel/...", "feature", "mcpbridge/relay"},
	"gateway":                     {"kernel/...", "auth", "gateway/..."},
	"gateway/admin":               {"kernel/...", "auth", "gateway/..."},
	"gateway/wire":                {"kernel/...", "auth", "gateway/httpbody", "gateway/wire/codec"},
	"gateway/wire/codec":          {},
	"gateway/sessions":            {"kernel/...", "auth", "gateway/httpbody", "gateway/openapi"},
	"gateway/openapi":             {"gateway/httpbody", "auth"},
	"gateway/openapi/openapitest": {}, // for tests
	"gateway/dashboard":           {},
	"cmd/yaya/chat":               {},
	"gateway/wire/wiretest":       {"kernel/...", "auth", "gateway/...", "plugins/llm_echo", "plugins/memory_sqlite", "plugins/strategy_react"}, // for tests
	"examples/remote-device":      {"gateway/client"},
	"gateway/client":              {"auth", "gateway/registry", "gateway/wire/codec"},
	"gateway/registry":            {},
	"gateway/rpc":                 {"kernel/...", "auth", "gateway/httpbody", "gateway/registry", "gateway/wire", "gateway/wire/codec"},
	"gateway/httpbody":            {"auth"},
	"gateway/cluster":             {},
	"gateway/cluster/clustertest": {"gateway/cluster"},
	"internal/sandbox":            {"internal/sandbox/inside", "internal/netaddr", "internal/gitconf", "internal/passedon"},
	"internal/gitconf":            {"internal/gitread"},
	"internal/secrets":            {"internal/atomicfile", "internal/masked", "internal/secretfile"},
	"internal/certs":              {"internal/atomicfile", "internal/keypin", "internal/netaddr"},
	"internal/certs/certstest":    {"internal/certs"}, // for tests
	"cmd/yaya":                    {"..."},
}

// forbidden are outside packages that a package must do without, and why.
var forbidden = map[string]map[string]string{
	"kernel/...":             {"net/http": "the kernel has no network (Y-1)", "os/exec": "the kernel starts nothing", "github.com/mark3labs/mcp-go": "MCP is not the kernel's (F-5)"},
	"feature":                {"net/http": "transports are outside the feature layer (F-27)", "os/exec": "processes are outside the feature layer (F-27)", "github.com/mark3labs/mcp-go": "MCP is outside the feature layer (F-5)"},
	"plugins/llm_*":          {"net/http": "providers speak through their SDK (Y-148)", "net": "providers speak through their SDK (Y-148)", "golang.org/x/net": "providers speak through their SDK (Y-148)"},
	"internal/gitread":       {"os/exec": "repositories configure what git runs (SEC-2)"},
	"internal/gitconf":       {"os/exec": "repositories configure what git runs (SEC-2)"},
	"internal/workspace":     {"os/exec": "looking at a folder starts nothing (SEC-2)"},
	"plugins/tool_workspace": {"os/exec": "looking at a folder starts nothing (SEC-2)"},
	"plugins/strategy_coder": {"os/exec": "a turn begins without a process (SEC-2)"},
	"gateway":                {"github.com/mark3labs/mcp-go": "the MCP handler is mounted, not known"},
}

type pkg struct {
	ImportPath   string
	Dir          string
	Doc          string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

// packages are all of the module; go list takes a second, so it is asked once.
func packages(t *testing.T) []pkg {
	t.Helper()
	pkgs, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return pkgs
}

var listed = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-json", "./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	var pkgs []pkg
	dec := json.NewDecoder(bytes.NewReader(out))
	for {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
	if len(pkgs) < 10 {
		return nil, fmt.Errorf("found %d packages", len(pkgs))
	}
	return pkgs, nil
})

func matches(pattern, path string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "..."); ok {
		prefix = strings.TrimSuffix(prefix, "/")
		return prefix == "" || path == prefix || strings.HasPrefix(path, prefix+"/")
	}
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(path, prefix)
	}
	return path == pattern
}

// Y-5, F-5, F-23, F-26, F-27: packages know each other only as the table says,
// so there is no private way around the registry or into another layer. An
// arrow that a change seems to need is a decision to take, not to slip in.
func TestArrows(t *testing.T) {
	for _, p := range packages(t) {
		from, ok := strings.CutPrefix(p.ImportPath, module+"/")
		if !ok {
			continue
		}
		may, listed := allowed[from]
		isInternal := strings.HasPrefix(from, "internal/")
		if !listed && !isInternal {
			t.Errorf("%s is not in the table of arrows", from)
			continue
		}
		for _, imp := range p.Imports {
			to, ours := strings.CutPrefix(imp, module+"/")
			if !ours || (strings.HasPrefix(to, "internal/") && (!isInternal || strings.HasPrefix(from, to+"/"))) {
				continue // a part of an internal package may know the package
			}
			if !slices.ContainsFunc(may, func(pattern string) bool { return matches(pattern, to) }) {
				t.Errorf("%s must not import %s", from, to)
			}
		}
		for pattern, list := range forbidden {
			if !matches(pattern, from) {
				continue
			}
			for bad, why := range list {
				if slices.ContainsFunc(p.Imports, func(imp string) bool { return imp == bad || strings.HasPrefix(imp, bad+"/") }) {
					t.Errorf("%s must not import %s: %s", from, bad, why)
				}
			}
		}
	}
	for from := range allowed {
		if !slices.ContainsFunc(packages(t), func(p pkg) bool { return p.ImportPath == module+"/"+from }) {
			t.Errorf("the table of arrows names %s, which does not exist", from)
		}
	}
}

func TestEveryPackageSaysWhatItPromises(t *testing.T) {
	for _, p := range packages(t) {
		if len(strings.Fields(p.Doc)) < 6 {
			t.Errorf("%s has no package comment, or one that says nothing: %q", p.ImportPath, p.Doc)
		}
	}
}

func TestFilesKeepOneSubject(t *testing.T) {
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || (strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2)) {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		if n := bytes.Count(data, []byte("\n")); n > maxFile {
			t.Errorf("%s has %d lines; more than %d hold a second subject", path, n, maxFile)
		}
		return nil
	})
	if err != nil || files < 50 {
		t.Fatalf("%d files were looked at: %v", files, err)
	}
}

// F-2, F-3, F-4, F-24: the feature layer decides nothing about trust, and says
// so.
func TestFeatureLayerHoldsNoTrust(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath != module+"/feature" {
			continue
		}
		for _, name := range p.GoFiles {
			set := token.NewFileSet()
			f, err := parser.ParseFile(set, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			for ident := range f.Scope.Objects { //nolint:staticcheck // top-level names are all that is asked for
				lower := strings.ToLower(ident)
				for _, word := range []string{"authority", "trust", "permission", "grant", "approve"} {
					if strings.Contains(lower, word) {
						t.Errorf("feature/%s declares %s: trust and permission belong to other layers (F-2, F-3)", name, ident)
					}
				}
			}
		}
		cmd := exec.CommandContext(t.Context(), "go", "doc", module+"/feature")
		cmd.Dir = root
		doc, err := cmd.Output()
		text := strings.Join(strings.Fields(string(doc)), " ")
		if err != nil || !strings.Contains(text, "neither the plugin permission layer nor the MCP trust and sandbox layer") { // F-24
			t.Errorf("the package comment of feature does not say what it is not (%v):\n%s", err, doc)
		}
	}
}

// Y-4: there is one event channel. Events pass between goroutines inside of the
// bus and nowhere else.
func TestOneEventChannel(t *testing.T) {
	looked := 0
	for _, p := range packages(t) {
		if p.ImportPath == module+"/kernel/bus" {
			continue
		}
		for _, name := range p.GoFiles {
			data, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			looked++
			for _, way := range []string{"chan event.Event", "chan *event.Event", "[]chan<- event"} {
				if bytes.Contains(data, []byte(way)) {
					t.Errorf("%s/%s passes events by a way of its own: %s", p.ImportPath, name, way)
				}
			}
		}
	}
	if looked < 100 {
		t.Errorf("only %d files were looked at", looked)
	}
}
