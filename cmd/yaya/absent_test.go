package main

import (
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// FID-6: a tool of a server that does not run is not an unknown tool: a client that calls
// it, or asks for the server's tools, learns the server's state and how to start it. A
// name that no server has is answered as before.
func TestToolsOfServersThatDoNotRun(t *testing.T) {
	b := newBox(t)
	b.serve("--mcp-config", b.config(map[string]any{
		"broken": map[string]any{"command": "sh", "args": []string{"-c", "echo no licence >&2; exit 3"}},
		"off":    map[string]any{"command": "sh", "disabled": true},
	}))
	eventually.True(t, "the server has failed", func() bool { return b.status().Servers[0].State == "failed" })
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"a tool of a failed server":   {[]string{"mcp", "call", "broken__echo"}, []string{`server "broken" is failed`, "no licence", "yaya mcp restart broken"}},
		"a tool of a disabled server": {[]string{"mcp", "call", "off__echo"}, []string{`server "off" is disabled`, "yaya mcp enable off"}},
		"a tool of nobody":            {[]string{"mcp", "call", "nope__echo"}, []string{`unknown tool "nope__echo"`}},
		"tools of a failed server":    {[]string{"mcp", "tools", "broken"}, []string{`server "broken" is failed`, "no licence"}},
		"tools of a disabled server":  {[]string{"mcp", "tools", "off"}, []string{`server "off" is disabled`, "yaya mcp enable off"}},
		"tools of nobody":             {[]string{"mcp", "tools", "nope"}, []string{`there is no server "nope"`}},
	} {
		out, err := b.run(c.args...)
		if err == nil {
			t.Errorf("%s: exit status 0, want another; it printed %q", name, out)
		}
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: printed %q, want %q in it", name, out, want)
			}
		}
	}
	// The record of calls names the server, and that it was not there.
	for _, name := range []string{"broken", "off"} {
		eventually.True(t, "the call of "+name+" is recorded as unavailable", func() bool {
			return strings.Contains(b.must("traffic", "--server", name, "--json"), `"outcome": "unavailable"`) || strings.Contains(b.must("traffic", "--server", name, "--json"), `"outcome":"unavailable"`)
		})
	}
	for _, modern := range []bool{false, true} {
		c := newRawClient(t, b.url(), modern)
		if got, err := c.text("off__echo", nil); !strings.Contains(got+errText(err), `server "off" is disabled`) {
			t.Errorf("a client, modern: %v: got %q, %v; want that the server is disabled", modern, got, err)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
