package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/internal/fakellm"
)

// Metrics have windows of up to thirty days, and lead from each number to its calls.
func TestPageMetrics(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.goodAndBad()
	b.serve()
	b.server("srv", "ready")
	b.scenario("metrics", nil, nil)
}

// The first start: servers of another client are imported, seen as what they would
// run before they do; a model is tested and chosen; a client's file is changed, and changed
// back; the first call ends it.
func TestPageFirstRun(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	b := newBox(t)
	if err := os.MkdirAll(filepath.Join(b.dir, ".cursor"), 0o755); err != nil {
		t.Fatal(err)
	}
	everything := peerPath(t, "server-everything", "dist", "index.js")
	file := filepath.Join(b.dir, ".cursor", "mcp.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers":{"every":{"command":%q,"args":[%q]}}}`, node, everything), 0o600); err != nil {
		t.Fatal(err)
	}
	model := fakellm.New(fakellm.Step{Text: "hello from a real model"})
	defer model.Close()
	b.serve()
	b.scenario("firstrun", map[string]any{"runs": node + " " + everything, "model": model.URL + "/v1", "wrong": "http://127.0.0.1:1/v1", "workspace": b.workspace()}, map[string]func(string) (any, error){
		"cursor": func(string) (any, error) {
			data, err := os.ReadFile(file)
			return string(data), err
		},
		"call": func(string) (any, error) {
			c := sdk.NewClient(&sdk.Implementation{Name: "a-client", Version: "1"}, nil)
			session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: b.url()}, nil)
			if err != nil {
				return nil, err
			}
			defer func() { _ = session.Close() }()
			_, err = session.CallTool(t.Context(), &sdk.CallToolParams{Name: "every__echo", Arguments: map[string]any{"message": "hi"}})
			return nil, err
		},
	})
}

// Settings have an editor for each type, and the audit tells what was changed.
func TestPageSettings(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	b.scenario("settings", nil, nil)
}
