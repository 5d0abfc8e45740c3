package servers_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// An entry for another node needs nothing but the name of that node. Of the rest, the parts about the
// process count there, and those about calls count here.
func TestRunOn(t *testing.T) {
	one := func(entry string) servers.Config {
		t.Helper()
		cfg, err := servers.Parse("mcp.json", []byte(`{"mcpServers":{"db":`+entry+`}}`), servers.FormatYaya)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	for _, bad := range []string{`{"run_on":"No!"}`, `{"run_on":7}`, `{}`} {
		if cfg := one(bad); len(cfg.Invalid) != 1 {
			t.Errorf("%s: %v, want it refused", bad, cfg.Servers)
		}
	}
	s := one(`{"run_on":"north"}`).Servers[0]
	if s.RunOn != "north" || s.Endpoint() != "on the node north" || !strings.Contains(s.RunsExactly(), "on the node north") {
		t.Errorf("got %+v, which runs %q", s, s.RunsExactly())
	}
	if raw, err := json.Marshal(s); err != nil || !strings.Contains(string(raw), `"run_on":"north"`) {
		t.Errorf("it is written as %s, %v", raw, err)
	}
	s = one(`{"command":"db","args":["${secret:key}"],"env":{"A":"b"},"session":"per_call","run_on":"north","enabled_tools":["read*"],"disabled_tools":["drop"],"tool_timeout_sec":5}`).Servers[0]
	x := s.Through("https://north/x")
	if x.Command != "" || len(x.Args)+len(x.Env) > 0 || x.URL != "https://north/x" || x.Transport != servers.HTTP || x.Session != servers.Shared || x.CallTimeout != s.CallTimeout {
		t.Errorf("it is called as %+v, want nothing of the process", x)
	}
	for name, want := range map[string]bool{"db__read_all": true, "db__drop": false, "drop": false, "db__write": false} {
		if x.Allows(name) != want {
			t.Errorf("Allows(%s) = %v, want %v", name, !want, want)
		}
	}
	if _, _, err := x.Expand(servers.Scope{}); err != nil { // its secrets are those of the other node
		t.Errorf("Expand() = %v, want no error", err)
	}

	// A project cannot have other nodes called, nor can another client's file.
	cfg, err := servers.Parse(".mcp.json", []byte(`{"mcpServers":{"db":{"command":"db","run_on":"north"}}}`), servers.FormatClaudeCode)
	if err != nil || cfg.Servers[0].RunOn != "" || !slices.ContainsFunc(cfg.Warnings, func(w string) bool { return strings.Contains(w, "run_on") }) {
		t.Errorf("a project's entry is %+v with %v, %v; want it to run here, with a warning", cfg.Servers, cfg.Warnings, err)
	}
}
