package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/sandbox"
)

// freeServers is [shellServers] with one more, free, which runs in no sandbox; yaya serves.
func freeServers(t *testing.T) *box {
	t.Helper()
	b := shellServers(t)
	script := filepath.Join(b.dir, "own", "shell.mjs")
	b.must("config", "set", "sandbox.mode", "off")
	b.must("trust", "--yes", b.cwd) // without a sandbox, which one that enforces more is within
	b.must("config", "unset", "sandbox.mode")
	b.edit("mcp.json", strings.Replace(b.mcpFile(), `{"mcpServers":{`, fmt.Sprintf(`{"mcpServers":{"free":{"command":"node","args":[%q],"sandbox":{"profile":"off"}},`, script), 1))
	b.serve()
	b.firstStart([]string{"own", "bounded", "theirs", "free"})
	return b
}

// boxed is how a server runs: its state, its restarts, and with what its sandbox was made.
func (b *box) boxed(server string) string {
	b.t.Helper()
	var all []admin.Server
	b.admin(http.MethodGet, "/mcp/servers", "", http.StatusOK, &all)
	i := slices.IndexFunc(all, func(s admin.Server) bool { return s.Name == server })
	if i < 0 {
		b.t.Fatalf("no server %s", server)
	}
	return fmt.Sprintf("%s %d %s", all[i].State, all[i].Restarts, all[i].Sandbox.Backend)
}

// boxedAs waits until servers run as they should.
func (b *box) boxedAs(what, want string, servers ...string) {
	b.t.Helper()
	for _, s := range servers {
		got := ""
		t := b.t
		defer func() {
			if got != want {
				t.Logf("%s: %s is %q, want %q", what, s, got, want)
			}
		}()
		eventually.True(t, what, func() bool {
			got = b.boxed(s)
			return got == want
		})
	}
}

// SET-1: a change of the settings of the sandbox, in whichever way it comes, holds for
// servers that run: each is started again once, and the reports show how they run.
func TestSandboxSettingsHoldForServersThatRun(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	b := freeServers(t)
	all := []string{"own", "bounded", "theirs"}
	reads := func(server string) bool {
		b.t.Helper()
		said, _ := b.sh(server, "cat "+filepath.Join(b.dir, "c", "mcp.json")+" || echo hidden")
		return strings.Contains(said, "mcpServers")
	}
	for i, c := range []struct {
		name    string
		change  func()
		backend string
	}{
		{"by the command", func() { b.must("config", "set", "sandbox.mode", "off") }, sandbox.None},
		{"by the API", func() { b.admin(http.MethodPatch, "/config/sandbox.mode", `{"value":"prefer"}`, http.StatusOK, nil) }, sandbox.Namespaces},
		{"in the file, two at once", func() {
			b.must("config", "unset", "sandbox.mode")
			b.edit("config.toml", "[sandbox]\nmode = \"off\"\nbackend = \"namespaces\"\n")
		}, sandbox.None},
		{"in the file, back", func() { b.edit("config.toml", "# nothing\n") }, sandbox.Namespaces},
	} {
		c.change()
		b.boxedAs(c.name, fmt.Sprintf("ready %d %s", i+1, c.backend), all...)
		for _, server := range all {
			if got, want := reads(server), c.backend == sandbox.None; got != want {
				t.Errorf("%s: %s reads yaya's own files: %v, want %v", c.name, server, got, want)
			}
			if text := b.must("mcp", "get", server); !strings.Contains(text, "back end "+c.backend) {
				t.Errorf("%s: yaya mcp get %s does not say back end %s:\n%s", c.name, server, c.backend, text)
			}
		}
		var r admin.Sandbox
		if err := json.Unmarshal([]byte(b.must("sandbox", "--json")), &r); err != nil {
			t.Fatal(err)
		}
		for _, p := range r.Programs {
			want := map[bool]string{true: c.backend}[p.Kind == "server"]
			if p.Name == "free" {
				want = sandbox.None
			}
			if p.Backend != want || p.Note != "" {
				t.Errorf("%s: yaya sandbox says %+v, want back end %q and nothing else", c.name, p, want)
			}
		}
	}
	b.boxedAs("in no sandbox, whatever the settings", "ready 0 off", "free")

	// A server that the new mode refuses stops, and says why; it starts when it may.
	b.must("config", "set", "sandbox.mode", "require")
	const why = `it runs in no sandbox, and sandbox.mode is "require"`
	eventually.True(t, "free has failed", func() bool {
		out := b.must("mcp", "get", "free")
		return strings.Contains(out, "failed") && strings.Contains(out, why) && !strings.Contains(out, "back end")
	})
	if out, failed := b.sh("free", "true"); !failed || !strings.Contains(out, why) {
		t.Errorf("a call to it: %q, want why it does not run", out)
	}
	if out := b.must("sandbox"); !strings.Contains(out, "server free does not start: the setting sandbox.mode is require") || strings.Contains(out, "OUTSIDE") {
		t.Errorf("yaya sandbox does not say that free does not start:\n%s", out)
	}
	if out, err := b.run("doctor"); err == nil || !strings.Contains(out, why) {
		t.Errorf("doctor does not say so: %v\n%s", err, out)
	}
	var r admin.Sandbox
	b.admin(http.MethodGet, "/sandbox", "", http.StatusOK, &r)
	guarded := r.Profiles[slices.IndexFunc(r.Profiles, func(p admin.SandboxProfile) bool { return p.Profile == "guarded" })]
	if len(guarded.Lacks) == 0 {
		b.boxedAs("its sandbox is as before", "ready 4 namespaces", "own")
	} else {
		eventually.True(t, "it lacks something", func() bool { return strings.HasPrefix(b.boxed("own"), "failed ") })
	}
	b.must("config", "unset", "sandbox.mode")
	eventually.True(t, "free runs again", func() bool {
		said, failed := b.sh("free", "echo runs")
		return !failed && strings.Contains(said, "runs")
	})
}

// A command that changes the settings of the sandbox says which servers are started
// again, and a server that they refuse is not tried again and again.
func TestSandboxSettingSaysWhatRestarts(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	b := freeServers(t)
	const again, started = "restarts once the calls in flight have ended: ", "starts now, as the setting allows it: "
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"another sandbox", []string{"set", "sandbox.mode", "off"}, again + "bounded, own, theirs"},
		{"the same", []string{"set", "sandbox.backend", "auto"}, ""},
		{"taken back", []string{"unset", "sandbox.mode"}, again + "bounded, own, theirs"},
		{"no setting of servers", []string{"set", "sandbox.command.hosts", `["example.com"]`}, ""},
	} {
		_, said, code := b.in(b.dir, append([]string{"config"}, c.args...)...)
		if got := strings.TrimSpace(said); code != 0 || got != c.want {
			t.Errorf("%s: got %d %q, want %q", c.name, code, got, c.want)
		}
		eventually.True(t, c.name+": they run again", func() bool {
			for _, s := range []string{"bounded", "own", "theirs"} {
				if !strings.HasPrefix(b.boxed(s), "ready ") {
					return false
				}
			}
			return true
		})
	}
	b.must("config", "set", "sandbox.mode", "require")
	eventually.True(t, "free has failed", func() bool { return strings.HasPrefix(b.boxed("free"), "failed ") })
	if said, failed := b.sh("free", "true"); !failed || !strings.Contains(said, "sandbox.mode") { // after which nobody asks again
		t.Errorf("a call: %q, want why free does not run", said)
	}
	if _, said, _ := b.in(b.dir, "config", "unset", "sandbox.mode"); !strings.Contains(said, started) || !strings.Contains(said, "free") {
		t.Errorf("got %q, want that free starts", said)
	}
}

// SET-1: calls in flight finish where they began; until then every report says how the
// server runs and what the settings want. A change that is taken back meanwhile restarts
// nothing.
func TestSandboxSettingsWaitForCalls(t *testing.T) {
	t.Parallel()
	b := freeServers(t)
	flag := filepath.Join(b.dir, "own", "flag")
	type answer struct {
		said   string
		failed bool
	}
	answers := make(chan answer, 1)
	begin := func() {
		t.Helper()
		go func() {
			out, err := b.run("mcp", "call", "own__sh", "--args", fmt.Sprintf(`{"cmd":"touch %[1]s.begun; until [ -e %[1]s ]; do sleep 0.05; done; echo finished"}`, flag))
			answers <- answer{out, err != nil}
		}()
		eventually.True(t, "the call has begun", func() bool {
			_, err := os.Stat(flag + ".begun")
			return err == nil
		})
	}
	finish := func() {
		t.Helper()
		if err := os.WriteFile(flag, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if a := <-answers; a.failed || !strings.Contains(a.said, "finished") {
			t.Errorf("the call in flight came to %+v, want it to finish", a)
		}
		for _, name := range []string{flag, flag + ".begun"} {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	begin()
	pid := b.pidOf("own")
	b.must("config", "set", "sandbox.backend", "off")
	b.boxedAs("a call is in flight", "draining 0 namespaces", "own")
	const differs = "runs with back end namespaces until its calls have ended: the settings want off"
	for _, args := range [][]string{{"sandbox"}, {"sandbox", "--json"}, {"doctor"}} {
		if out, _ := b.run(args...); !strings.Contains(out, differs) {
			t.Errorf("yaya %s does not say %q:\n%s", strings.Join(args, " "), differs, out)
		}
	}
	if out := b.must("mcp", "get", "own"); !strings.Contains(out, "back end namespaces") || !strings.Contains(out, "back end off, no longer namespaces") {
		t.Errorf("yaya mcp get does not say how it runs and is to run:\n%s", out)
	}
	b.must("config", "unset", "sandbox.backend")
	b.boxedAs("the change was taken back", "ready 0 namespaces", "own")
	finish()
	if now := b.pidOf("own"); now != pid {
		t.Errorf("process %d has become %d, want it to go on", pid, now)
	}

	begin()
	b.must("config", "set", "sandbox.backend", "off")
	b.boxedAs("a call is in flight again", "draining 0 namespaces", "own")
	finish()
	b.boxedAs("the call has ended", "ready 1 off", "own")
}
