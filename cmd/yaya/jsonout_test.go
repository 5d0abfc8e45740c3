package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/termtext"
)

// hostileServer is a server all of whose words are evil.
func hostileServer(t *testing.T) string {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: termtext.Evil, Version: "1"}, &sdk.ServerOptions{Instructions: termtext.Evil})
	s.AddTool(&sdk.Tool{Name: "say", Description: termtext.Evil, InputSchema: map[string]any{"type": "object", "description": termtext.Evil}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: termtext.Evil}}, StructuredContent: map[string]any{"x": termtext.Evil}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "fail", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: termtext.Evil}}}, nil
	})
	h := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(h.Close)
	return h.URL
}

// Y-143: text from servers cannot control a terminal, as text or as JSON, in which
// nothing of it is lost.
func TestNothingReachesATerminalRaw(t *testing.T) {
	b := newBox(t)
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	config := b.config(map[string]any{
		"h":  map[string]any{"url": hostileServer(t)},
		"up": map[string]any{"command": "sh", "args": []string{"-c", `printf '%s\n' "$1" >&2; exec "$0"`, fixture, termtext.Evil}},
		"no": map[string]any{"command": "sh", "args": []string{"-c", `printf '%s\n' "$0" >&2; exit 1`, termtext.Evil}, "startup_timeout_sec": 2},
	})
	b.serve("--mcp-config", config)
	b.call("h__say", `{"x":"`+termtext.Evil+`"}`)
	b.call("h__fail", `{}`)
	b.must("run", "--session", "s1", "say "+termtext.Evil)
	eventually.True(t, "the calls are recorded", func() bool { return len(b.calls("").Calls) == 2 })
	follow := b.daemon("traffic", "-f", "--json")
	eventually.True(t, "traffic -f shows the calls", func() bool { return strings.Count(follow.said.String(), "\n") == 2 })
	b.set("plugin.evil.word", `"`+termtext.Evil+`"`)
	for name, out := range map[string]string{"traffic -f --json": follow.said.String()} {
		termtext.Safe(t, name, out)
	}
	for _, c := range []struct {
		command string
		whole   bool // all of the text is in its JSON
		fails   bool
	}{
		{command: "mcp list"}, {command: "mcp list --json"},
		{command: "mcp tools"}, {command: "mcp tools --json", whole: true},
		{command: "mcp get up"}, {command: "mcp get up --json", whole: true},
		{command: "mcp get no"}, {command: "mcp get no --json"},
		{command: "mcp logs up"}, {command: "mcp logs up --json", whole: true},
		{command: "mcp call h__say"}, {command: "mcp call h__say --json", whole: true},
		{command: "mcp call h__fail", fails: true}, {command: "mcp call h__fail --json", whole: true, fails: true},
		{command: "mcp approve"}, {command: "mcp approve --json"},
		{command: "traffic"}, {command: "traffic --json", whole: true},
		{command: "traffic show 1"}, {command: "traffic show 1 --json", whole: true},
		{command: "run --session s2 again"}, {command: "run --json --session s1 again"},
		{command: "session list"}, {command: "session list --json"},
		{command: "session show s1"}, {command: "session export s1", whole: true},
		{command: "config list"}, {command: "config list --json", whole: true},
		{command: "config get plugin.evil.word"}, {command: "config get plugin.evil.word --show"},
		{command: "audit"}, {command: "audit --json"},
		{command: "doctor", fails: true}, {command: "doctor --json", fails: true}, // a server has failed
	} {
		t.Run(c.command, func(t *testing.T) {
			out, err := b.run(strings.Fields(c.command)...)
			if (err != nil) != c.fails {
				t.Fatalf("got %v, want an error: %v\n%s", err, c.fails, out)
			}
			termtext.Safe(t, c.command, out)
			if !c.whole {
				return
			}
			found := false
			for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
				var v any
				if err := d.Decode(&v); err != nil {
					t.Fatalf("the output is not JSON: %v\n%s", err, out)
				}
				found = found || holds(v, termtext.Evil)
			}
			if !found {
				t.Errorf("the text is not in it as it was: %+q", out)
			}
		})
	}
}

// holds reports whether a text is in a string of v.
func holds(v any, text string) bool {
	switch v := v.(type) {
	case string:
		var inner any
		return strings.Contains(v, text) || (strings.ContainsAny(v, `{["`) && json.Unmarshal([]byte(v), &inner) == nil && holds(inner, text))
	case []any:
		for _, x := range v {
			if holds(x, text) {
				return true
			}
		}
	case map[string]any:
		for _, x := range v {
			if holds(x, text) {
				return true
			}
		}
	}
	return false
}
