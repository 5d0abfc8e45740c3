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
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const (
	module = "github.com/yaya-ai/yaya"
	root   = "../.."
)

// allowed lists every arrow between our packages, relative to the module. An
// entry that ends in /... covers a subtree. internal packages are open to all,
// and import nothing of ours but what the table says; it names who else may import
// what.
var allowed = map[string][]string{
	"kernel/event":                  {},
	"kernel/bus":                    {"kernel/event"},
	"kernel/tool":                   {"kernel/event", "kernel/bus"},
	"kernel/session":                {"kernel/event", "kernel/bus"},
	"kernel/config":                 {"kernel/event", "kernel/bus"},
	"kernel/llm":                    {"kernel/event"},
	"kernel/plugin":                 {"kernel/event", "kernel/bus", "kernel/config", "kernel/tool"},
	"kernel/models":                 {"kernel/event", "kernel/config"},
	"kernel/loop":                   {"kernel/event", "kernel/bus", "kernel/session", "kernel/tool", "kernel/llm"},
	"kernel/budget":                 {"kernel/event"},
	"kernel":                        {"kernel/..."},
	"plugins/strategy_react":        {"kernel/..."},
	"plugins/llm_echo":              {"kernel/..."},
	"plugins/llm_openai":            {"kernel/...", "plugins/provider"},
	"plugins/llm_anthropic":         {"kernel/...", "plugins/provider"},
	"plugins/llm_gemini":            {"kernel/...", "plugins/provider"},
	"plugins/llm_ollama":            {"kernel/...", "plugins/provider"},
	"plugins/llm_responses":         {"kernel/...", "plugins/provider"},
	"plugins/provider":              {"kernel/..."},
	"plugins/provider/providertest": {"kernel/..."}, // for tests
	"plugins/memory_sqlite":         {"kernel/..."},
	"plugins/agent_tool":            {"kernel/..."},
	"plugins/tool_workspace":        {"kernel/..."},
	"plugins/tool_shell":            {"kernel/..."},
	"plugins/tool_web":              {"kernel/..."},
	"plugins/tool_plan":             {"kernel/..."},
	"plugins/strategy_coder":        {"kernel/..."},
	"plugins/skills":                {"kernel/..."},
	"plugins/remote":                {"kernel/..."},
	"plugins/fetch":                 {},
	"plugins/installed":             {"plugins/fetch", "plugins/remote"},
	"plugins/conform":               {"kernel/...", "plugins/remote"},
	"plugins/scaffold":              {"plugins/remote", "sdk"},
	"kernel/approval":               {"kernel/event", "kernel/bus", "kernel/tool"},
	"kernel/folder":                 {"kernel/event", "kernel/tool", "kernel/approval"},
	"auth":                          {"control"},
	"control":                       {},
	"control/local":                 {"control"},
	"control/jetstream":             {"control", "control/nodes"},
	"control/tapes":                 {},
	"control/embedded":              {"control/nodes"},
	"control/nodes":                 {"control"},
	"control/tunnel":                {},
	"control/controltest":           {"control"}, // for tests
	"feature":                       {"kernel/..."},
	"hooks":                         {"kernel/..."},
	"mcpbridge":                     {"kernel/...", "feature", "mcpbridge/..."},
	"mcpbridge/servers":             {},
	"mcpbridge/clients":             {"mcpbridge/servers"},
	"mcpbridge/relay":               {"kernel/tool", "feature"},
	"mcpbridge/trust":               {},
	"mcpbridge/catalog":             {"mcpbridge/servers", "plugins/fetch"}, // fetch unpacks archives
	"mcpbridge/oauth":               {"mcpbridge/servers"},
	"mcpbridge/upstream":            {"kernel/...", "feature", "mcpbridge/servers", "mcpbridge/relay"},
	"mcpbridge/downstream":          {"kernel/...", "mcpbridge/relay"},
	"mcpbridge/stdioproxy":          {"mcpbridge/downstream"},
	"mcpbridge/manage":              {"kernel/folder", "feature", "mcpbridge", "mcpbridge/clients", "mcpbridge/oauth", "mcpbridge/servers", "mcpbridge/trust", "mcpbridge/upstream"},
	"gateway":                       {"kernel/...", "auth", "control", "control/nodes", "gateway/..."},
	"gateway/forward":               {"auth", "control/tunnel"},
	"gateway/admin":                 {"kernel/...", "auth", "control", "control/nodes", "gateway/..."},
	"gateway/follow":                {"kernel/..."},
	"gateway/wire":                  {"kernel/...", "auth", "control", "gateway/api", "gateway/follow", "gateway/wire/codec"},
	"gateway/wire/codec":            {},
	"gateway/sessions":              {"kernel/...", "auth", "control", "gateway/api", "gateway/follow"},
	"gateway/api":                   {"kernel/...", "auth", "control"},
	"gateway/api/openapitest":       {}, // for tests
	"gateway/dashboard":             {},
	"cmd/yaya/chat":                 {},
	"cmd/yaya/acp":                  {"cmd/yaya/chat"},                                                                                                           // its client of the session API
	"gateway/wire/wiretest":         {"kernel/...", "auth", "control/...", "gateway/...", "plugins/llm_echo", "plugins/memory_sqlite", "plugins/strategy_react"}, // for tests
	"examples/remote-device":        {"gateway/client"},
	"examples/cluster/nats":         {},
	"sdk":                           {},
	"sdk/go":                        {},
	"gateway/client":                {"auth", "gateway/plane/agents", "gateway/wire/codec"},
	"gateway/plane/agents":          {},
	"gateway/plane/measure":         {},
	"gateway/plane":                 {"kernel/...", "auth", "control", "gateway/plane/...", "gateway/wire", "gateway/wire/codec"},
	"gateway/rpc":                   {"auth", "control", "gateway/api", "gateway/plane", "gateway/wire"},
	"internal/sandbox":              {"internal/sandbox/inside", "internal/errnos", "internal/hostfile", "internal/fair", "internal/netaddr", "internal/gitconf", "internal/lazyregexp", "internal/mounts", "internal/openfiles", "internal/passedon", "internal/worded", "internal/workgroup"},
	"internal/gitconf":              {"internal/gitread", "internal/hostfile"},
	"internal/secrets":              {"internal/atomicfile", "internal/cut", "internal/hostfile", "internal/masked", "internal/secretfile", "internal/worded"},
	"internal/secretfile":           {"internal/hostfile", "internal/worded"},
	"internal/service":              {"internal/atomicfile", "internal/lazyregexp", "internal/userfile"},
	"internal/patch":                {"internal/lazyregexp"},
	"internal/agentskill":           {"internal/cut", "internal/hostfile", "internal/worded"},
	"internal/agentfile":            {"internal/agentskill", "internal/lazyregexp", "internal/members"},
	"internal/agentpackage":         {"internal/agentskill", "internal/hookconf", "internal/lazyregexp"},
	"internal/hookconf":             {"internal/cut", "internal/members", "internal/worded"},
	"internal/workspace":            {"internal/errnos", "internal/hostfile", "internal/invisible", "internal/lazyregexp"},
	"internal/undo":                 {"internal/atomicfile", "internal/hostfile", "internal/workspace"},
	"internal/release":              {"internal/echoserver", "internal/service"},
	"internal/soak":                 {"internal/echoserver", "internal/sse"},
	"internal/clusterbench":         {"internal/echoserver", "internal/freeport"},
	"internal/bench":                {"internal/bench/load", "internal/freeport"},
	"internal/peerbench":            {"internal/bench/load", "internal/freeport", "internal/jsonrpc", "internal/sse"},
	"internal/fastpath":             {"internal/bufpool", "internal/callctx"},
	"internal/traffic":              {"internal/cut", "internal/hostfile"},
	"internal/screen":               {"internal/invisible"},
	"internal/toolsearch":           {"internal/backoff", "internal/cut", "internal/workgroup"},
	"internal/linelog":              {"internal/cut", "internal/worded"},
	"internal/llmhttp":              {"internal/cut"},
	"internal/lsp":                  {"internal/cut"},
	"internal/recall":               {"internal/cut"},
	"internal/intake":               {"internal/worded"},
	"internal/journal":              {"internal/hostfile", "internal/unread"},
	"internal/keyfile":              {"internal/hostfile", "internal/unread"},
	"internal/telemetry":            {"internal/userfile"},
	"internal/backup":               {"internal/secretfile", "internal/userfile"},
	"internal/certs":                {"internal/atomicfile", "internal/backoff", "internal/hostfile", "internal/keypin", "internal/netaddr"},
	"internal/certs/certstest":      {"internal/certs"}, // for tests
	"internal/logfile":              {"internal/hostfile"},
	"internal/atomicfile":           {"internal/errnos", "internal/hostfile"},
	"internal/openfiles":            {"internal/errnos"},
	"internal/mounts":               {"internal/hostfile"},
	"internal/unread":               {"internal/errnos"},
	"daemon":                        {"auth", "control/...", "daemon/...", "feature", "gateway/...", "hooks", "kernel/...", "mcpbridge/...", "plugins/..."},
	"daemon/datadir":                {"kernel/...", "mcpbridge/trust", "plugins/memory_sqlite"},
	"cmd/yaya": {
		"daemon", "daemon/datadir", "cmd/yaya/acp", "cmd/yaya/chat", "gateway/client", "mcpbridge/clients", "mcpbridge/manage", "mcpbridge/servers", "mcpbridge/stdioproxy",
		// Packages for a command's output, or for reading without a daemon.
		"auth", "control", "control/local", "control/nodes", "feature", "gateway", "gateway/admin", "hooks", "kernel/config", "kernel/event", "kernel/folder", "kernel/models", "kernel/plugin", "kernel/session", "kernel/tool", "mcpbridge/trust", "plugins/conform", "plugins/fetch", "plugins/llm_echo", "plugins/scaffold",
	},
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
// so there is no private way around the tool registry or into another layer. An
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

// An arrow that nothing uses allows what nobody has decided: it comes back with its use.
func TestArrowsAreUsed(t *testing.T) {
	imports := map[string][]string{}
	for _, p := range packages(t) {
		from := strings.TrimPrefix(p.ImportPath, module+"/")
		for _, imp := range p.Imports {
			if to, ours := strings.CutPrefix(imp, module+"/"); ours {
				imports[from] = append(imports[from], to)
			}
		}
	}
	for _, arrow := range unused(allowed, imports) {
		t.Errorf("no import uses %s: remove it from the table of arrows", arrow)
	}
}

// unused lists the arrows of a table that no import uses.
func unused(table, imports map[string][]string) (out []string) {
	for from, may := range table {
		for _, pattern := range may {
			if !slices.ContainsFunc(imports[from], func(to string) bool { return matches(pattern, to) }) {
				out = append(out, from+" -> "+pattern)
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestUnused(t *testing.T) {
	table := map[string][]string{"a": {"b", "c/...", "d/..."}, "e": {"b"}}
	got := unused(table, map[string][]string{"a": {"b", "c/x", "dd"}})
	if want := []string{"a -> d/...", "e -> b"}; !slices.Equal(got, want) {
		t.Errorf("unused() = %q, want %q", got, want)
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

// Y-4: there is one event channel. Events pass between goroutines inside the
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
