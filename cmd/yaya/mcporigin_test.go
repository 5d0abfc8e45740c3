package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// settings writes config.toml.
func (b *box) settings(text string) {
	b.t.Helper()
	dir := filepath.Join(b.dir, "c")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.toml"), []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// A rule for the command line holds for yaya mcp call, beside a daemon and alone, and for
// no MCP client, whatever it says of itself.
func TestRulesForTheCommandLine(t *testing.T) {
	for _, beside := range []bool{true, false} {
		t.Run(map[bool]string{true: "beside a daemon", false: "alone"}[beside], func(t *testing.T) {
			b := newBox(t)
			command, _ := b.recorded("fake")
			b.must(append([]string{"mcp", "add", "fake"}, command...)...)
			b.settings("[approval]\nrules = [{origin = \"cli\", provider = \"fake\", decision = \"deny\", reason = \"not by hand\"}]\n")
			if beside {
				b.serve()
				b.waitState("fake", "ready")
			}
			out, err := b.run("mcp", "call", "fake__t")
			if exitCode(err) != 1 || !strings.Contains(out, "not by hand") {
				t.Errorf("yaya mcp call: got %v, %q; want exit code 1 and the rule's reason", err, out)
			}
			if !beside {
				return
			}
			if res, err := newRawClient(t, b.url(), true).text("fake__t", map[string]any{}); err != nil || res != "called & done" {
				t.Errorf("the call of an MCP client: got %q, %v; want that the rule is not about it", res, err)
			}
			if status, raw, _ := b.raw("POST", "/cli/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Content-Type", "application/json"); status != 401 {
				t.Errorf("the commands' own endpoint over TCP: got %d %s, want 401", status, raw)
			}
			if out := b.must("traffic", "--tool", "t", "--json"); strings.Count(out, `"origin": "cli"`) != 1 || strings.Count(out, `"origin": "mcp"`) != 1 {
				t.Errorf("the record of calls: got %s, want one call of each origin", out)
			}
		})
	}
}
