package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// UI-12: the frame. The palette opens what it finds and runs commands, names stay text, and
// the browser's notifications are asked for by a person, and tell no arguments.
func TestPageShell(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	at := changing(t, func(s *sdk.Server) {
		sdk.AddTool(s, &sdk.Tool{Name: "x", Title: xss, Description: "One."}, answers("x"))
	})
	b.must("mcp", "add", "evil", at)
	b.must("mcp", "add", "broken", "--", "/nonexistent/server")
	b.must("config", "set", "approval.timeout", "5m")
	b.script(`[{"match":"^ask","steps":[{"tool_calls":[{"name":"shell","args":{"command":"echo canary"}}]}]}]`)
	b.serve()
	b.scenario("shell", map[string]any{"workspace": b.workspace()}, nil)
}

// The first view does not wait for one thing after the other: who the user is is asked before the
// page's modules are there, and the view's module before the answer. With YAYA_MEASURE the time
// until keys work is printed.
func TestPageFirst(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.goodAndBad()
	b.serve()
	b.server("srv", "ready")
	b.scenario("first", map[string]any{"measure": os.Getenv("YAYA_MEASURE")}, nil)
}

// Home shows what needs somebody, and follows the calls of the last hour.
func TestPageHome(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.goodAndBad()
	b.must("mcp", "add", "broken", "--", "/nonexistent/server")
	b.must("config", "set", "approval.timeout", "5m")
	b.script(`[{"match":"^ask","steps":[{"tool_calls":[{"name":"shell","args":{"command":"make"}}]}]}]`)
	b.serve()
	b.server("srv", "ready")
	b.scenario("home", map[string]any{"workspace": b.workspace()}, map[string]func(string) (any, error){
		"mend": func(string) (any, error) {
			b.admin("DELETE", "/mcp/servers/broken", "", http.StatusNoContent, nil)
			return nil, nil
		},
	})
}

// A server is added, seen, changed, switched and removed on the page, and so are its tools.
func TestPageServers(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	b := newBox(t)
	ws := b.workspace()
	other := filepath.Join(b.dir, "other")
	if err := os.MkdirAll(other, 0o755); err != nil {
		t.Fatal(err)
	}
	b.must("mcp", "add", "broken", "--", "/nonexistent/server")
	file := filepath.Join(b.dir, "c", "mcp.json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	off := strings.Replace(string(data), `"broken"`, `"off": {"command": "cat", "disabled": true}, "broken"`, 1)
	if err := os.WriteFile(file, []byte(off), 0o600); err != nil {
		t.Fatal(err)
	}
	b.serve()
	b.server("broken", "failed")
	b.scenario("servers", map[string]any{"command": node, "args": []string{peerPath(t, "server-filesystem", "dist", "index.js"), ws}, "other": other}, map[string]func(string) (any, error){
		"file": func(string) (any, error) {
			data, err := os.ReadFile(file)
			return string(data), err
		},
	})
}

// goodAndBad adds the server srv, of whose tools good answers and bad fails.
func (b *box) goodAndBad() {
	b.must("mcp", "add", "srv", changing(b.t, func(s *sdk.Server) {
		sdk.AddTool(s, &sdk.Tool{Name: "good", Description: "Answers."}, answers("good"))
		sdk.AddTool(s, &sdk.Tool{Name: "bad", Description: "Fails."}, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no"}}}, nil, nil
		})
	}))
}

// The page is in the language of the browser, whole: nothing on any view is in English but data,
// terms, and what yaya itself says.
func TestPageChinese(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.goodAndBad()
	b.must("mcp", "add", "broken", "--", "/nonexistent/server")
	b.must("config", "set", "approval.timeout", "5m")
	if err := os.MkdirAll(filepath.Join(b.dir, ".cursor"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.dir, ".cursor", "mcp.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.script(`[{"match":"^ask","steps":[{"tool_calls":[{"name":"shell","args":{"command":"make"}}]}]}]`)
	b.serve()
	b.server("srv", "ready")
	b.server("broken", "failed")
	b.scenario("chinese", map[string]any{"workspace": b.workspace(), "names": []string{"ask", "shell", "srv", "good", "bad", "broken", "skills", "web", "provider", "strategy"}}, nil)
}

// Traffic follows the calls, and shows and repeats single ones.
func TestPageTraffic(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.goodAndBad()
	b.serve()
	b.server("srv", "ready")
	b.scenario("traffic", nil, nil)
}
