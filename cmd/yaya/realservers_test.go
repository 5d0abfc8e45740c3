package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/freeport"
)

// The folders of the peers that are scripts of ours, or Python packages.
const (
	peersJS     = "../../internal/peers/npm"
	peersPython = "../../internal/peers/py"
)

// python returns a program of the Python peers; make test installs them.
func python(t *testing.T, program string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short does without the peers")
	}
	path := absolute(t, peersPython, ".venv", "bin", program)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("YAYA_PEERS_REQUIRED") != "" {
			t.Fatal("the Python peers are not installed")
		}
		t.Skip("the Python peers are not installed; run make peers")
	}
	return path
}

func absolute(t *testing.T, elem ...string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// overPort starts a server that listens at the port that is its last argument, until
// the test ends, and returns its URL.
func overPort(t *testing.T, command ...string) string {
	t.Helper()
	addr := freeport.Addr(t)
	_, port, _ := net.SplitHostPort(addr)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, command[0], append(command[1:], port)...)
	said := new(output)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // killed
		if t.Failed() {
			t.Logf("%s said:\n%s", strings.Join(command, " "), said)
		}
	})
	waitFor(t, addr)
	return "http://" + addr + "/mcp"
}

// smallServers are small servers on every SDK, over both transports. Each has the tool
// add with structured output and steps with progress, and all but mcp-go's have ask,
// which asks its client.
func smallServers(t *testing.T, node string) map[string]map[string]any {
	t.Helper()
	servers := map[string]map[string]any{}
	for name, command := range map[string][]string{
		"ts1":     {node, absolute(t, peersJS, "small-v1.mjs")},
		"ts2":     {node, absolute(t, peersJS, "small-v2.mjs")},
		"py":      {python(t, "python"), absolute(t, peersPython, "small.py")},
		"fastmcp": {python(t, "python"), absolute(t, peersPython, "fast.py")},
		"go":      {buildTool(t, "github.com/yaya-ai/yaya/internal/peers/smallgo")},
		"mcpgo":   {buildTool(t, "github.com/yaya-ai/yaya/internal/peers/smallmcpgo")},
	} {
		servers[name] = map[string]any{"command": command[0], "args": command[1:]}
		servers[name+"-http"] = map[string]any{"url": overPort(t, command...)}
	}
	return servers
}

// realCall is a call of a server, and a part of what it answers.
type realCall struct {
	tool string
	args map[string]any
	want string
}

// FID-1, FID-2: the servers that everybody has, and servers on every SDK, all behind one
// yaya in its default configuration: every one is ready at its first start and answers
// clients of both eras.
func TestRealServers(t *testing.T) {
	t.Parallel()
	node, browser := needPeers(t), chromium(t)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<title>A small page</title><p>Words on a small page.</p>")
	}))
	defer page.Close()
	b := newBox(t)
	repository := filepath.Join(b.dir, "repository")
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "-b", "trunk", repository).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	files := filepath.Join(b.dir, "files")
	if err := os.Mkdir(files, 0o700); err != nil {
		t.Fatal(err)
	}
	npm := func(script string, args ...string) map[string]any {
		return map[string]any{"command": node, "args": append([]string{absolute(t, peers, script)}, args...)}
	}
	playwright := []string{"--headless", "--isolated", "--executable-path", browser, "--output-dir", b.dir}
	devtools := []string{"--headless", "--isolated", "--executablePath", browser, "--no-usage-statistics"}
	if os.Geteuid() == 0 { // whose Chromium has no sandbox
		playwright, devtools = append(playwright, "--no-sandbox"), append(devtools, "--chromeArg=--no-sandbox")
	}
	servers := map[string]map[string]any{
		"everything": npm("@modelcontextprotocol/server-everything/dist/index.js", "stdio"),
		"filesystem": npm("@modelcontextprotocol/server-filesystem/dist/index.js", files),
		"memory":     npm("@modelcontextprotocol/server-memory/dist/index.js"),
		"thinking":   npm("@modelcontextprotocol/server-sequential-thinking/dist/index.js"),
		"playwright": npm("@playwright/mcp/cli.js", playwright...),
		"devtools":   npm("chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js", devtools...),
		"context7":   npm("@upstash/context7-mcp/dist/index.js"),
		"time":       {"command": python(t, "mcp-server-time")},
		"git":        {"command": python(t, "mcp-server-git"), "args": []string{"--repository", repository}},
		"fetch":      {"command": python(t, "mcp-server-fetch"), "args": []string{"--allow-private-ips"}}, // the page is on loopback
		// It reads what was sent while it was not there, and takes the first message
		// for the era of its client.
		"late": {"command": "sh", "args": []string{"-c", `sleep 3; exec "$0"`, python(t, "mcp-server-time")}},
	}
	servers["memory"]["env"] = map[string]string{"MEMORY_FILE_PATH": filepath.Join(b.dir, "memory.json")}
	calls := map[string]realCall{
		"everything": {"echo", map[string]any{"message": "hi"}, "Echo: hi"},
		"filesystem": {"list_allowed_directories", nil, files},
		"memory":     {"read_graph", nil, "entities"},
		"thinking":   {"sequentialthinking", map[string]any{"thought": "so", "thoughtNumber": 1, "totalThoughts": 1, "nextThoughtNeeded": false}, "thoughtNumber"},
		"playwright": {"browser_navigate", map[string]any{"url": page.URL}, "A small page"},
		"devtools":   {"new_page", map[string]any{"url": page.URL}, page.URL},
		// It asks a service that a test does not reach: an error of its own is a result.
		"context7": {"resolve-library-id", map[string]any{"query": "routing", "libraryName": "react"}, ""},
		"time":     {"get_current_time", map[string]any{"timezone": "Europe/Paris"}, "Europe/Paris"},
		"late":     {"get_current_time", map[string]any{"timezone": "Europe/Paris"}, "Europe/Paris"},
		"git":      {"git_status", map[string]any{"repo_path": repository}, "On branch trunk"},
		"fetch":    {"fetch", map[string]any{"url": page.URL}, "Words on a small page"},
	}
	for name, server := range smallServers(t, node) {
		servers[name] = server
		calls[name] = realCall{"add", map[string]any{"a": 2, "b": 3}, `"sum":5`}
	}
	config := map[string]any{}
	for name, server := range servers {
		config[name] = server
	}
	b.serve("--mcp-config", b.config(config))

	b.firstStart(slices.Collect(maps.Keys(servers)))
	for _, modern := range []bool{false, true} {
		era := map[bool]string{false: "legacy", true: "modern"}[modern]
		t.Run(era, func(t *testing.T) {
			c := newRawClient(t, b.url(), modern)
			for _, name := range slices.Sorted(maps.Keys(calls)) {
				call := calls[name]
				if call.args == nil {
					call.args = map[string]any{}
				}
				ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
				got, err := c.request(ctx, "tools/call", map[string]any{"name": name + "__" + call.tool, "arguments": call.args})
				cancel()
				result, _ := json.Marshal(got.Result)
				// An error result of context7 is what it has without the network.
				failed := got.Result["isError"] == true && call.want != ""
				text := strings.ReplaceAll(string(result), `\"sum\": 5`, `\"sum\":5`)
				text = strings.ReplaceAll(text, `\"`, `"`)
				if err != nil || got.Error != nil || failed || got.Result["content"] == nil || !strings.Contains(text, call.want) {
					t.Errorf("%s %s: got %v, %+v, %.1000s; want a result with %q", name, call.tool, err, got.Error, result, call.want)
				}
			}
		})
	}
	b.notRestarted()
}

// firstStart waits until the servers are ready, and fails if one of them was started
// more than once for it.
func (b *box) firstStart(names []string) {
	b.t.Helper()
	// All start at once: on a busy machine the last one waits for the others.
	deadline, cancel := context.WithTimeout(b.t.Context(), 3*eventually.Limit)
	defer cancel()
	for {
		ready := 0
		var late []string
		for _, s := range b.listed() {
			switch {
			case s.Restarts > 0 || s.State == "failed":
				b.t.Fatalf("%s: %s after %d restarts, want ready at its first start: %s\n%s", s.Name, s.State, s.Restarts, s.LastError, strings.Join(s.Diagnostics, "\n"))
			case s.State == "ready" && slices.Contains(names, s.Name):
				ready++
			default:
				late = append(late, s.Name+" "+s.State)
			}
		}
		if ready == len(names) {
			return
		}
		if deadline.Err() != nil {
			b.t.Fatalf("%d of %d servers are ready; not ready: %v", ready, len(names), late)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// notRestarted fails if a server was restarted, or is not ready.
func (b *box) notRestarted() {
	b.t.Helper()
	for _, s := range b.listed() {
		if s.Restarts > 0 || s.State != "ready" {
			b.t.Errorf("%s: %s after %d restarts, want ready without: %s", s.Name, s.State, s.Restarts, s.LastError)
		}
	}
}

// listed returns the servers as the admin API shows them.
func (b *box) listed() []listedServer {
	b.t.Helper()
	var out []listedServer
	b.admin(http.MethodGet, "/mcp/servers", "", http.StatusOK, &out)
	return out
}

type listedServer struct {
	Name        string   `json:"name"`
	State       string   `json:"state"`
	Restarts    int      `json:"restarts"`
	LastError   string   `json:"last_error"`
	Diagnostics []string `json:"diagnostics"`
}
