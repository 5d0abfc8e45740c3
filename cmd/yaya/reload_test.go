package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// edit writes a file of the configuration folder as editors do: another one, renamed.
func (b *box) edit(name, text string) {
	b.t.Helper()
	dir := filepath.Join(b.dir, "c")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		b.t.Fatal(err)
	}
	tmp := filepath.Join(dir, "."+name+".swp")
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if err := os.Rename(tmp, filepath.Join(dir, name)); err != nil {
		b.t.Fatal(err)
	}
}

// serverStates are the servers that run, with their state, and those that do not.
func (b *box) serverStates() string {
	b.t.Helper()
	var out strings.Builder
	r := b.status()
	for _, s := range r.Servers {
		fmt.Fprintf(&out, "%s %s\n", s.ID, s.State)
	}
	for _, s := range r.Invalid {
		fmt.Fprintf(&out, "%s invalid\n", s.Name)
	}
	return out.String()
}

func (b *box) waitStates(want string) {
	b.t.Helper()
	eventually.True(b.t, "the servers are\n"+want, func() bool { return b.serverStates() == want })
}

func (b *box) audited(event string) (out []control.Audit) {
	b.t.Helper()
	if err := json.Unmarshal([]byte(b.must("audit", "--event", event, "--json")), &out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

// entryOf is an entry of mcp.json that starts the fixture.
func entryOf(fixture, name, more string) string {
	return fmt.Sprintf(`%q: {"command": %q, "args": ["-name", %[1]q]%[3]s}`, name, fixture, more)
}

// USE-2: an edit by hand of the file of servers works at once beside a daemon, and
// touches no server but the one that it is about. A file with a mistake is refused
// whole, and everybody who could ask learns of it, once.
func TestServersFileIsWatched(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	p := b.serve()
	doc := func(entries ...string) string {
		return "{\n  // by hand\n  \"mcpServers\": {\n    " + strings.Join(entries, ",\n    ") + "\n  }\n}\n"
	}
	one, two := entryOf(fixture, "one", ""), entryOf(fixture, "two", "")
	b.edit("mcp.json", doc(one)) // the folder was not there before
	b.waitStates("one ready\n")
	pid := b.pidOf("one")
	stays := func(what string) {
		t.Helper()
		if now := b.pidOf("one"); now != pid {
			t.Errorf("%s: the process of a server that has not changed is %d, want %d", what, now, pid)
		}
	}
	b.edit("mcp.json", doc(two, one))
	b.waitStates("one ready\ntwo ready\n")
	stays("another was added")
	b.edit("mcp.json", doc(one, entryOf(fixture, "two", `, "disabled": true`)))
	b.waitStates("one ready\n")
	b.edit("mcp.json", doc(one, two))
	b.waitStates("one ready\ntwo ready\n")
	pid2 := b.pidOf("two")
	b.edit("mcp.json", doc(one, entryOf(fixture, "two", `, "env": {"X": "1"}`)))
	eventually.True(t, "the changed server has another process", func() bool {
		for _, s := range b.status().Servers { // it is not there while it restarts
			if pid := daemon.DetailOf(s).PID; s.ID == "two" && pid != 0 && pid != pid2 && s.State.Usable() {
				return true
			}
		}
		return false
	})
	stays("another was changed")
	if res, err := newRawClient(t, b.url(), true).text("two__echo", map[string]any{"text": "hi"}); err != nil || res != "hi" {
		t.Errorf("the changed server: %q, %v", res, err)
	}

	for _, c := range []struct{ text, place string }{
		{"{\n  \"mcpServers\": {\n    " + one + ",\n", "line 4"},
		{doc(one, `"two": {"command": 5}`), "mcp.json:5: server \"two\""},
		{"", "is empty"},
		{doc(one) + "{}", "line 7"},
	} {
		refusedBefore := len(b.audited("config_refused"))
		b.edit("mcp.json", c.text)
		var notices []admin.Notice
		eventually.True(t, "the mistake is noticed: "+c.place, func() bool {
			b.admin("GET", "/notices", "", http.StatusOK, &notices)
			return len(notices) == 1 && strings.Contains(notices[0].Error, c.place)
		})
		if got := b.must("mcp", "list"); !strings.Contains(got, c.place) || !strings.Contains(got, "its previous content stays in force") {
			t.Errorf("mcp list does not say %q:\n%s", c.place, got)
		}
		if got, err := b.run("doctor"); exitCode(err) != 1 || !strings.Contains(got, c.place) {
			t.Errorf("doctor does not say %q: %v\n%s", c.place, err, got)
		}
		// Asked again it says so again; the audit has it once.
		out, err := b.run("reload")
		if exitCode(err) != 1 || !strings.Contains(out, c.place) || !strings.Contains(out, "mcp.json") {
			t.Errorf("yaya reload: got %v, want exit code 1 and the place %q:\n%s", err, c.place, out)
		}
		if n := len(b.audited("config_refused")) - refusedBefore; n != 1 {
			t.Errorf("%q: %d entries in the audit, want 1", c.place, n)
		}
		if got := b.serverStates(); got != "one ready\ntwo ready\n" {
			t.Errorf("%q: the servers are\n%s", c.place, got)
		}
		stays("a mistake")
	}
	b.edit("mcp.json", doc(one))
	b.waitStates("one ready\n")
	stays("the mistake was mended")
	eventually.True(t, "the notices are gone", func() bool { // the servers come first
		var notices []admin.Notice
		b.admin("GET", "/notices", "", http.StatusOK, &notices)
		return len(notices) == 0
	})
	if out := b.must("reload"); !strings.Contains(out, "Nothing has changed") {
		t.Errorf("yaya reload: %s", out)
	}
	if err := os.Remove(filepath.Join(b.dir, "c", "mcp.json")); err != nil {
		t.Fatal(err)
	}
	b.waitStates("")
	if p.ProcessState != nil {
		t.Error("yaya has ended")
	}
	if rows := b.audited("config_reloaded"); len(rows) < 6 || !strings.Contains(string(rows[0].Payload), "one added") {
		t.Errorf("the audit: %+v", rows)
	}
}

// USE-2: yaya does not reload the file that it has written itself, whether the page or
// the command line asked for it.
func TestOwnWritesAreNoChange(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	b.serve()
	var change admin.Change
	b.admin("POST", "/mcp/servers", fmt.Sprintf(`{"name":"one","config":{"command":%q,"startup_timeout_sec":7.5,"env":{"A":"$B"}}}`, fixture), http.StatusAccepted, &change)
	b.admin("POST", "/mcp/changes/"+change.ID+"/apply", "", http.StatusOK, nil)
	b.waitStates("one ready\n")
	pid := b.pidOf("one")
	b.edit("mcp.json.other", "{}") // it is not looked at
	if out := b.must("reload"); !strings.Contains(out, "Nothing has changed") {
		t.Errorf("yaya reload after its own write: %s", out)
	}
	if now := b.pidOf("one"); now != pid {
		t.Errorf("the process is %d, want %d", now, pid)
	}
	if rows := b.audited("config_reloaded"); len(rows) != 0 {
		t.Errorf("yaya has taken over what it has written: %+v", rows)
	}
}

// USE-2: config.toml is taken over while yaya runs, as far as it can be, and what
// cannot is said; SIGHUP looks at the files, too, and ends nothing.
func TestSettingsFileIsTakenOver(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.edit("config.toml", "provider = \"one\"\n")
	p := b.serve()
	setting := func(key string) string {
		t.Helper()
		var out struct{ Value json.RawMessage }
		b.admin("GET", "/config/"+key, "", http.StatusOK, &out)
		return string(out.Value)
	}
	b.edit("config.toml", "provider = \"two\"\n[loop]\nmax_iterations = 3\n")
	eventually.True(t, "the edit holds", func() bool { return setting("provider") == `"two"` && setting("loop.max_iterations") == "3" })

	b.must("config", "set", "strategy", "coder")
	eventually.True(t, "what was set holds", func() bool { return setting("strategy") == `"coder"` })
	link := filepath.Join(b.dir, "c", "config.toml")
	if err := os.Remove(link); err != nil { // what lies behind the link that comes is not watched yet
		t.Fatal(err)
	}
	elsewhere := filepath.Join(b.dir, "c", "real.toml") // SEC-1: a link to the outside is not followed before a restart
	if err := os.WriteFile(elsewhere, []byte("provider = \"three\"\nstrategy = \"react\"\n[auth]\nissuer = \"https://id.example\"\n[approval]\nrules = [{tool = \"x\", decision = \"deny\"}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the link is followed", func() bool { return setting("provider") == `"three"` })
	var effects []string
	for _, row := range b.audited("config_reloaded") {
		effects = append(effects, string(row.Payload))
	}
	if got := strings.Join(effects, "\n"); !strings.Contains(got, "auth.issuer added") {
		t.Errorf("the audit: %s", got)
	}
	for text, place := range map[string]string{
		"provider = \"four\"\n[approval]\n\nrules = [{tool = \"x\", decisoin = \"deny\"}]\n":               "config.toml:4",
		"provider = \"four\"\nproviderr = 1\n":                                                             "config.toml:2",
		"provider = \"four\"\n[plugin.mcp_bridge.profiles.x]\nservers = [\"a\"]\nprincipal = [\"nobody\"]": "config.toml:4",
		"": "is empty",
	} {
		b.edit("config.toml", text)
		out, err := b.run("reload")
		if exitCode(err) != 1 || !strings.Contains(out, place) {
			t.Errorf("%q: got %v, want exit code 1 and %q:\n%s", text, err, place, out)
		}
		if got := setting("provider") + setting("approval.rules"); !strings.Contains(got, "three") || !strings.Contains(got, "deny") {
			t.Errorf("%q: a part of a file with a mistake holds: %s", text, got)
		}
	}
	// yaya reload reports each; the watcher may have been first.
	var all admin.Reloaded
	raw := "strategy = \"coder2\"\nprovider = \"five\"\n[auth]\nissuer = \"https://other.example\"\n"
	b.edit("config.toml", raw)
	if err := json.Unmarshal([]byte(b.must("reload", "--json")), &all); err != nil {
		t.Fatal(err)
	}
	for _, x := range all.Changes {
		if want := map[string]string{"strategy": "overridden", "provider": "taken", "auth.issuer": "restart", "approval.rules": "taken"}[x.Name]; x.Effect != want {
			t.Errorf("%s: got %s, want %s", x.Name, x.Effect, want)
		}
	}
	eventually.True(t, "the mended file holds", func() bool { return setting("provider") == `"five"` })
	if got := setting("strategy"); got != `"coder"` {
		t.Errorf("strategy is %s, want what was set", got)
	}
	for range 3 {
		if err := p.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	b.edit("config.toml", "provider = \"six\"\n")
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "SIGHUP is taken", func() bool { return setting("provider") == `"six"` })
}

// USE-2: without a daemon there is nothing to reload, and yaya says so.
func TestReloadWithoutDaemon(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	if out, err := b.run("reload"); exitCode(err) != 1 || !strings.Contains(out, "no yaya runs") {
		t.Errorf(`yaya reload: got %v, %s; want exit code 1, and "no yaya runs" in it`, err, out)
	}
}

// A setting that is read when yaya starts waits for the next start, and yaya says so for
// as long as it does, even if the watcher was faster than the question.
func TestSettingsThatWait(t *testing.T) {
	t.Parallel()
	const waits = "from the next start of yaya on"
	b := newBox(t)
	b.edit("config.toml", "[session]\nreap_interval = \"10s\"\n")
	b.serve()
	b.edit("config.toml", "[session]\nreap_interval = \"20s\"\n")
	eventually.True(t, "the change is taken over", func() bool { return len(b.audited("config_reloaded")) == 1 })
	for range 2 {
		if out := b.must("reload"); !strings.Contains(out, "session.reap_interval") || !strings.Contains(out, waits) {
			t.Errorf("yaya reload: got %s, want that session.reap_interval waits", out)
		}
	}
	for _, args := range [][]string{{"config", "list", "session.reap"}, {"config", "get", "session.reap_interval"}} {
		if out := b.both(args...); !strings.Contains(out, "20s") || !strings.Contains(out, waits) {
			t.Errorf("%v: got %s, want the value, %s", args, out, waits)
		}
	}
	if out := b.both("config", "set", "session.heartbeat_timeout", "77s"); !strings.Contains(out, waits) {
		t.Errorf("config set: got %s, want %s", out, waits)
	}
	b.must("config", "unset", "session.heartbeat_timeout")
	b.edit("config.toml", "[session]\nreap_interval = \"10s\"\n")
	eventually.True(t, "the change is taken back", func() bool { return len(b.audited("config_reloaded")) == 2 })
	if out := b.must("reload"); !strings.HasPrefix(out, "Nothing has changed: ") {
		t.Errorf("yaya reload: got %s, want nothing", out)
	}
	if out := b.must("config", "list", "session.reap"); strings.Contains(out, waits) {
		t.Errorf("config list: got %s, want nothing that waits", out)
	}
}

// both runs a command and returns what it says on both of its streams.
func (b *box) both(args ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), b.bin, b.args(args...)...)
	cmd.Env = b.environ()
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("yaya %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// servers.pass_env is read when a server starts: a change of it restarts none, and
// whoever makes it learns when it holds.
func TestPassEnvHoldsFromAServersNextStart(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	seen := filepath.Join(t.TempDir(), "seen")
	b.env = append(b.env, "NAMED=value")
	b.edit("mcp.json", fmt.Sprintf(`{"mcpServers": {"one": {"command": "sh", "args": ["-c", "echo \"NAMED=$NAMED\" >>%s; exec %s -name one"]}}}`, seen, fixture))
	b.serve()
	b.waitStates("one ready\n")
	pid := b.pidOf("one")
	if out := b.both("config", "set", "servers.pass_env", `["OTHER"]`); !strings.Contains(out, "next start") {
		t.Errorf("config set: got %q, want when it holds", out)
	}
	b.must("config", "unset", "servers.pass_env")
	b.edit("config.toml", "[servers]\npass_env = [\"NAMED\"]\n")
	eventually.True(t, "the change is taken over", func() bool { return len(b.audited("config_reloaded")) == 1 })
	if out := b.must("reload"); !strings.HasPrefix(out, "Nothing has changed: ") {
		t.Errorf("yaya reload: got %q, want nothing", out)
	}
	if now := b.pidOf("one"); now != pid {
		t.Errorf("the server was restarted: its process is %d, want %d", now, pid)
	}
	b.must("mcp", "restart", "one")
	b.waitStates("one ready\n")
	got, err := os.ReadFile(seen)
	if want := "NAMED=\nNAMED=value\n"; err != nil || string(got) != want {
		t.Errorf("the server saw %q, %v; want %q", got, err, want)
	}
}
