package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// The API, the command line and the doctor say the same, which is what a sandbox finds.
func TestSandboxIsReported(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	want := sandbox.Probe()
	var r, said admin.Sandbox
	b.admin("GET", "/sandbox", "", 200, &r)
	if r.Backend != want.Best || r.Mode != "prefer" || r.Setting != "auto" || r.Landlock != want.Landlock || len(r.Profiles) != len(sandbox.Profiles()) || len(r.Backends) != len(want.Backends) {
		t.Errorf("the API says %+v, want %+v", r, want)
	}
	for i, p := range r.Profiles {
		if got, wanted := strings.Join(p.Enforced, ", "), want.Profiles[i].Has.String(); got != wanted || p.Missing == nil || p.About == "" {
			t.Errorf("profile %s: enforced %q, want %q; %+v", p.Profile, got, wanted, p)
		}
	}
	if err := json.Unmarshal([]byte(b.must("sandbox", "--json")), &said); err != nil || said.Summary != r.Summary || len(said.Gaps) != len(r.Gaps) {
		t.Errorf("yaya sandbox --json says %+v (%v), and the API %+v", said, err, r)
	}
	text := b.must("sandbox")
	if first, _, _ := strings.Cut(text, "\n"); first != "Sandbox: "+r.Summary {
		t.Errorf("the first line is %q, want how it stands: %q", first, r.Summary)
	}
	for _, g := range append(r.Gaps, r.Breaks...) {
		if !strings.Contains(text, g.What) {
			t.Errorf("yaya sandbox does not say %q:\n%s", g.What, text)
		}
	}
	if d := b.must("doctor"); !regexp.MustCompile(`(?m)^sandbox +` + string(r.Status) + ` +` + regexp.QuoteMeta(r.Summary)).MatchString(d) {
		t.Errorf("doctor does not say %s, %q:\n%s", r.Status, r.Summary, d)
	}
}

// A sandbox that is off is degraded, and every place that speaks of it says so. It is
// the environment of the daemon that counts, not that of who asks.
func TestSandboxThatIsOff(t *testing.T) {
	t.Parallel()
	const fix = "unset YAYA_SANDBOX__MODE (and start yaya again)"
	says := func(t *testing.T, b *box) {
		t.Helper()
		if out := b.must("sandbox"); !strings.HasPrefix(out, "Sandbox: off: nothing is enforced") || !strings.Contains(out, fix) || strings.Contains(out, "package registries") {
			t.Errorf("yaya sandbox says\n%s\nwant that nothing is enforced, and %q", out, fix)
		}
		out := b.must("doctor")
		if !regexp.MustCompile(`(?m)^sandbox +degraded +off: nothing is enforced`).MatchString(out) || !strings.Contains(out, fix) {
			t.Errorf("doctor says\n%s\nwant that nothing is enforced, and %q", out, fix)
		}
	}
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		b := newBox(t)
		b.env = []string{"YAYA_SANDBOX__MODE=off"}
		says(t, b)
	})
	t.Run("beside a daemon", func(t *testing.T) {
		t.Parallel()
		b := newBox(t)
		b.env = []string{"YAYA_SANDBOX__MODE=off"}
		daemon := b.daemon("serve", "--listen", b.addr)
		waitFor(t, b.addr)
		b.env = nil
		says(t, b)
		var r admin.Sandbox
		b.admin("GET", "/sandbox", "", 200, &r)
		if r.Status != plugin.Degraded || r.Backend != sandbox.None || len(r.Profiles[0].Enforced) != 0 || r.Fix != fix {
			t.Errorf("the API says %+v, want degraded", r)
		}
		eventually.True(t, "the log says so", func() bool { return strings.Contains(fmt.Sprint(daemon.said), "sandbox: off: nothing is enforced") })
		if m := b.metrics(); !strings.Contains(m, `yaya_sandbox_backend{backend="off"} 1`) {
			t.Errorf("the metrics do not say off:\n%s", m)
		}
	})
}

// metrics returns the daemon's metrics.
func (b *box) metrics() string {
	b.t.Helper()
	status, raw, _ := b.raw("GET", "/metrics", "")
	if status != http.StatusOK {
		b.t.Fatalf("GET /metrics: %d", status)
	}
	var ours []string
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "yaya_sandbox") {
			ours = append(ours, line)
		}
	}
	return strings.Join(ours, "")
}

// A setting that is changed while yaya runs is what is reported next.
func TestSandboxFollowsSettings(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	daemon := b.serve()
	eventually.True(t, "the metrics name the back end", func() bool {
		return strings.Contains(b.metrics(), `yaya_sandbox_backend{backend="`+sandbox.Probe().Best+`"} 1`)
	})
	if m := b.metrics(); !strings.Contains(m, `yaya_sandbox_denials_total{profile="command"} 0`) {
		t.Errorf("the metrics have no denials:\n%s", m)
	}
	b.must("config", "set", "sandbox.backend", "off")
	if m := b.metrics(); !strings.Contains(m, `yaya_sandbox_backend{backend="off"} 1`) || strings.Count(m, "yaya_sandbox_backend{") != 1 {
		t.Errorf("after the setting has changed the metrics say\n%s", m)
	}
	if out := b.must("sandbox"); !strings.Contains(out, "yaya config set sandbox.backend auto") {
		t.Errorf("yaya sandbox names no command that changes it:\n%s", out)
	}
	// A back end that does not work here: nothing would start, which is a failure.
	b.must("config", "unset", "sandbox.backend")
	b.edit("config.toml", "[sandbox]\nbackend = \"seatbelt\"\n")
	b.must("reload")
	eventually.True(t, "the log says so", func() bool {
		return strings.Contains(fmt.Sprint(daemon.Stdout), "sandbox: no program starts in a sandbox")
	})
	out, err := b.run("doctor")
	if exitCode(err) != 1 || !strings.HasSuffix(out, "yaya: failed: sandbox\n") || !strings.Contains(out, "no program starts in a sandbox") {
		t.Errorf("doctor: %v\n%s\nwant that the sandbox has failed", err, out)
	}
	if m := b.metrics(); strings.Contains(m, "yaya_sandbox_backend{") {
		t.Errorf("without a back end the metrics say\n%s", m)
	}
}

// Everybody is named in their profile, and what is outside stands out.
func TestPrintSandbox(t *testing.T) {
	var programs []admin.SandboxProgram
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		programs = append(programs, admin.SandboxProgram{Kind: "server", Name: name, Profile: "guarded"})
	}
	programs = append(programs, admin.SandboxProgram{Kind: "server", Name: "open"}, admin.SandboxProgram{Kind: "commands", Name: "agents' commands", Profile: "command"})
	all := []admin.SandboxProfile{
		{Profile: "browser", Backend: "landlock", About: "pages", Lacks: []string{"hosts"}}, {Profile: "command", Backend: "landlock", About: "the workspace"}, {Profile: "guarded", Backend: "landlock", About: "your files"},
	}
	var out strings.Builder
	if err := printSandbox(&out, admin.Sandbox{
		Summary: "how it stands", Fix: "sudo fix", Backend: "landlock", System: "Linux", User: "root", Mode: "prefer", Setting: "auto", Profiles: all, Programs: programs,
		Backends: []admin.SandboxBackend{{Name: "namespaces", Why: "it is broken\x1b[31m"}, {Name: "landlock", Works: true}, {Name: "off", Works: true}},
		Breaks:   []admin.SandboxGap{{What: "no network", Profiles: []string{"browser", "command"}}},
		Gaps:     []admin.SandboxGap{{What: "of all", Profiles: []string{"browser", "command", "guarded"}}, {What: "of two", Profiles: []string{"browser", "guarded"}}, {What: "of one", Profiles: []string{"guarded"}}},
	}); err != nil {
		t.Fatal(err)
	}
	want := `Sandbox: how it stands
To change that, run:
  sudo fix

PROFILE  PROGRAMS                          ACCESS
browser  -                                 pages (here: no network)
command  agents' commands                  the workspace
guarded  servers a, b, c, d, e, f, 2 more  your files
OUTSIDE  server open                       all rights of your user

Not enforced here, or only in part:
  all: of all
  all but command: of two
  guarded: of one

Does not work here, although the profile allows it:
  all but guarded: no network

System: Linux, root
Settings: sandbox.mode prefer, sandbox.backend auto
Back ends: namespaces does not work (it is broken\u{1b}[31m); landlock is used; off enforces nothing
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// Everybody is in the profile that their entry has them run in; those that are remote or
// switched off are in none.
func TestSandboxNamesPrograms(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := filepath.Join(b.dir, "c", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"mcpServers":{
		"mine":{"command":"/nonexistent/a"}, "bounded":{"command":"/nonexistent/b","sandbox":{}}, "pages":{"command":"/nonexistent/c","sandbox":{"browser":true}},
		"free":{"command":"/nonexistent/d","sandbox":{"profile":"off"}}, "remote":{"url":"http://127.0.0.1:1/mcp"}, "unused":{"command":"/nonexistent/e","disabled":true}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "browser: pages; check: checks of agents' work; command: agents' commands; guarded: mine; outside: free; server: bounded"
	named := func() string {
		var r admin.Sandbox
		if err := json.Unmarshal([]byte(b.must("sandbox", "--json")), &r); err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, p := range r.Programs {
			out = append(out, cmp.Or(p.Profile, "outside")+": "+p.Name)
		}
		slices.Sort(out)
		return strings.Join(out, "; ")
	}
	if got := named(); got != want {
		t.Errorf("without a daemon: got %q, want %q", got, want)
	}
	b.serve()
	if got := named(); got != want {
		t.Errorf("beside a daemon: got %q, want %q", got, want)
	}
	if text := b.must("sandbox"); !regexp.MustCompile(`(?m)^OUTSIDE +server free +all rights of your user$`).MatchString(text) {
		t.Errorf("who runs outside is not named:\n%s", text)
	}
}

// yaya counts what a sandbox kept a server from; the server's view and yaya mcp get say
// so, with the command that allows it.
func TestServerDenialsAreShown(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	b := newBox(t)
	entry, err := json.Marshal(map[string]any{"command": "bash", "sandbox": map[string]any{}, "args": []string{"-c",
		`exec 3<>/dev/tcp/127.0.0.1/3128 && printf 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n' >&3 && head -1 <&3 >&2; cat`}})
	if err != nil {
		t.Fatal(err)
	}
	b.must("mcp", "add-json", "tries", string(entry))
	b.daemon("serve", "--listen", b.addr)
	waitFor(t, b.addr)
	const allow = "yaya mcp allow tries --host example.com"
	var denied []admin.ServerDenial
	eventually.True(t, "the server is kept from a host", func() bool {
		var all []admin.Server
		b.admin("GET", "/mcp/servers", "", 200, &all)
		denied = nil
		if len(all) == 1 && all[0].Sandbox != nil {
			denied = all[0].Sandbox.Denied
		}
		return len(denied) > 0
	})
	if len(denied) != 1 || denied[0].Allow != allow || !strings.HasSuffix(denied[0].What, "kept from reaching example.com:443 (profile server)") {
		t.Errorf("the server was kept from %+v, want one host, and %q", denied, allow)
	}
	if out := b.must("mcp", "get", "tries"); !strings.Contains(out, "allow it: "+allow) {
		t.Errorf("yaya mcp get does not name the command:\n%s", out)
	}
	var r admin.Sandbox
	b.admin("GET", "/sandbox", "", 200, &r)
	i := slices.IndexFunc(r.Profiles, func(p admin.SandboxProfile) bool { return p.Profile == "server" })
	if i < 0 || r.Profiles[i].Denials == 0 {
		t.Errorf("no denials are counted: %+v", r.Profiles)
	}
	if m := b.metrics(); !regexp.MustCompile(`yaya_sandbox_denials_total{profile="server"} [1-9]`).MatchString(m) {
		t.Errorf("the metrics count no denials:\n%s", m)
	}
}

// The page shows what sandboxes enforce where it matters: in a view of its own, in
// questions and at servers. A sandbox that is off is seen at once.
func TestPageSandbox(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.script(`[{"match":"^inside","steps":[{"tool_calls":[{"name":"shell","args":{"command":"make"}}]}]},
		{"match":"^outside","steps":[{"tool_calls":[{"name":"shell","args":{"command":"git push","outside":true,"reason":"it needs your key"}}]}]}]`)
	b.serve()
	b.scenario("sandbox", map[string]any{"workspace": b.workspace()}, map[string]func(string) (any, error){
		"report": func(string) (any, error) { return b.must("sandbox", "--json"), nil },
		"mode":   func(mode string) (any, error) { return b.must("config", "set", "sandbox.mode", mode), nil },
	})
}
