package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/traffic"
)

// USE-3: without a daemon, too, arguments and results are recorded only as long as nobody
// else may call: by a command, and by a yaya mcp serve that was started before.
func TestTrafficWithoutADaemon(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	config := b.config(map[string]any{"fx": map[string]any{"command": fixture}})
	records := func() (all []traffic.Record) {
		t.Helper()
		if err := json.Unmarshal([]byte(b.must("traffic", "--json")), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	c := b.stdioClient("--mcp-config", config)
	c.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	c.next()
	c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	calls := 0
	called := func(when string, bodies bool) {
		t.Helper()
		b.must("--mcp-config", config, "mcp", "call", "fx__echo", "--args", `{"text":"hi"}`)
		c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fx__echo","arguments":{"text":"hi"}}}`)
		if got := c.next(); !strings.Contains(got, `"result"`) {
			t.Fatalf("%s: yaya mcp serve answers %s, want a result", when, got)
		}
		calls += 2
		var all []traffic.Record
		eventually.True(t, when+": the calls are recorded", func() bool { all = records(); return len(all) == calls })
		for _, r := range all[calls-2:] {
			if bodies && calls > 2 && r.Client == "x" {
				continue // its next call is the first that finds it is alone again
			}
			if (r.Arguments != "") != bodies || (r.Result != "") != bodies {
				t.Errorf("%s: the record of %s has the arguments %q and the result %q, want them: %t", when, r.Client, r.Arguments, r.Result, bodies)
			}
		}
	}
	called("alone", true)
	b.must("token", "create", "other")
	called("with a token", false)
	b.must("token", "revoke", "other")
	called("alone again", true)
	raw, err := os.ReadFile(b.file("control", "log.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(b.file("control", "log.jsonl"), append([]byte(strings.Replace(string(raw), "other", "nobody", 1)), raw...), 0o600); err != nil {
		t.Fatal(err)
	}
	called("with a log that cannot be read", false)
}
