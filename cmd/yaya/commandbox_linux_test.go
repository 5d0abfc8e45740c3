package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/besidetmp"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// besideTmp has a box lie where a sandbox has no folder of its own.
func besideTmp(t *testing.T) {
	t.Helper()
	binary(t) // which stays for other tests
	dir := besidetmp.Dir(t)
	if len(dir) > daemon.MaxSocketPath-len("/yy1234567890/d/yaya.sock") {
		t.Skip("the path of this folder is too long for a socket below it")
	}
	t.Setenv("TMPDIR", dir)
}

// An agent edits, commits, checks and pushes: all but the push in sandboxes that its
// user sees in the asks, and the push outside the sandbox, which is asked about
// although a rule lets every command run.
func TestAgentWorksInSandboxes(t *testing.T) {
	needNamespaces(t)
	besideTmp(t)
	b := newBox(t)
	ws, bare := b.workspace(), filepath.Join(b.dir, "bare.git")
	if err := os.WriteFile(filepath.Join(ws, "AGENTS.md"), []byte("# Verify\n- `grep -q 1 a.txt && test \"$GOPROXY\" = off && echo checked`\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.repository(ws)
	if out, err := exec.CommandContext(t.Context(), "git", "init", "-q", "--bare", bare).CombinedOutput(); err != nil {
		t.Fatalf("git init --bare = %v, %s; want no error", err, out)
	}
	b.must("config", "set", "approval.rules", `[{"tool":"shell","decision":"allow"},{"tool":"apply_patch","decision":"allow"},{"tool":"verify","decision":"allow"}]`)
	push := "git push -q " + bare + " main"
	b.scenarios(callsFor("work", map[string]any{"name": "apply_patch", "args": map[string]string{"patch": numbered}},
		shellCall("git add -A && git commit -qm numbered && git log --format=%s"), map[string]any{"name": "verify", "args": map[string]any{}}, shellCall(push), shellCall(push, "the task says so")))
	b.serve()
	id := b.turn(ws, "work")
	a, _ := b.ask(id, "")
	if a.Tool != "shell" || !strings.HasPrefix(a.Brief, "run outside the sandbox: git push -q ") || !strings.Contains(string(a.Params), `"reason":"the task says so"`) || !strings.Contains(string(a.Params), `"sandbox":"none: it runs outside`) {
		t.Errorf("asked about %s, %s with %s, want the push outside the sandbox", a.Tool, a.Brief, a.Params)
	}
	refs := func() string {
		out, err := exec.CommandContext(t.Context(), "git", "--git-dir="+bare, "log", "--format=%s", "--all").CombinedOutput()
		if err != nil {
			t.Errorf("git log = %v, %s; want no error", err, out)
		}
		return string(out)
	}
	if got := refs(); got != "" {
		t.Errorf("pushed from within the sandbox: %s", got)
	}
	b.decide(id, a, "approve")
	if out := b.must("audit", "--event", "approval_answered", "--json"); !strings.Contains(out, `"sandbox": "outside"`) || strings.Contains(out, `"weaker"`) {
		t.Errorf("the audit says %s, want that the command ran outside", out)
	}
	all, _ := b.outputs(id, "")
	for _, want := range []string{"numbered", "checked", "may have been kept from a file by the sandbox (profile command)"} {
		if !strings.Contains(all, want) {
			t.Errorf("the results do not have %q: %s", want, all)
		}
	}
	if got := refs(); got != "numbered\n" {
		t.Errorf("pushed: got %q, want the commit", got)
	}
}

// A command that somebody has agreed to reaches nothing that they have not: not yaya's
// data, socket and port, no keys, no other folder, no cache of another workspace. Hooks
// of Git that it plants where there were none are reported.
func TestHostileCommand(t *testing.T) {
	needNamespaces(t)
	besideTmp(t)
	b := newBox(t)
	ws := b.workspace()
	b.repository(ws)
	cache := filepath.Join(b.dir, ".cache", "yaya", "sandbox", "workspace-other")
	for _, f := range []string{filepath.Join(b.dir, ".ssh", "id"), filepath.Join(cache, "tool.js")} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(f), 0o700), os.WriteFile(f, []byte("canary"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	b.env = append(b.env, "YAYA_PASSPHRASE_FILE="+filepath.Join(b.dir, "pass"))
	if err := os.WriteFile(filepath.Join(b.dir, "pass"), []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(ws, ".git", "hooks")); err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(b.addr, ":")
	var command strings.Builder
	for i, try := range []string{
		"ls " + b.dir + "/d | grep .", "cat " + b.dir + "/d/*.jsonl", "cat " + b.dir + "/c/*", "test -e " + b.dir + "/d/yaya.sock",
		"cat " + b.dir + "/.ssh/id", "cat " + b.dir + "/pass", "echo evil >" + b.dir + "/evil", "echo evil >>" + b.dir + "/.bashrc",
		"bash -c 'echo >/dev/tcp/" + host + "/" + port + "'", "bash -c 'exec 3<>/dev/tcp/127.0.0.1/3128; printf \"CONNECT " + b.addr + " HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n\" >&3; read -r _ code _ <&3; test $code = 200'",
		b.bin + " --data-dir " + b.dir + "/d --config-dir " + b.dir + "/c session list",
		"echo evil >" + cache + "/tool.js", "cat " + cache + "/tool.js",
		"mv .git .g2", "echo evil >>.git/config",
	} {
		fmt.Fprintf(&command, "if (%s) >/dev/null 2>&1; then echo REACHED %d; fi\n", try, i)
	}
	command.WriteString("mkdir .git/hooks && echo 'touch ../evil' >.git/hooks/pre-commit && chmod +x .git/hooks/pre-commit; echo over")
	b.scenarios(callsFor("do", shellCall(command.String()), shellCall("git log")))
	b.serve()
	id := b.turn(ws, "do it")
	a, last := b.ask(id, "")
	if !strings.Contains(string(a.Params), `"sandbox":"profile command (namespaces)"`) {
		t.Errorf("asked with %s, want the sandbox named", a.Params)
	}
	b.decide(id, a, "approve")
	a, _ = b.ask(id, last)
	b.decide(id, a, "approve")
	if audit := b.must("audit", "--event", "approval_answered", "--json"); strings.Count(audit, `"sandbox": "command (namespaces)"`) != 2 {
		t.Errorf("the audit says %s, want the sandbox of both commands", audit)
	}
	out, _ := b.outputs(id, "")
	if !strings.Contains(out, "over") || strings.Contains(out, "REACHED") || !strings.Contains(out, "kept from reaching "+b.addr) {
		t.Errorf("got %s, want nothing reached, and the port of yaya told of", out)
	}
	if n := strings.Count(out, ".git/hooks was not there before the command, and is now"); n != 1 {
		t.Errorf("told %d times of the hooks, want once: %s", n, out)
	}
	for _, f := range []string{"evil", ".bashrc", "ws/.g2"} {
		if there(t, filepath.Join(b.dir, f)) {
			t.Errorf("%s is there", f)
		}
	}
}

// A command asks for a host by name, at /v1 as elsewhere; the model learns of a no, and
// a rule that denies is asked about nobody.
func TestCommandAsksForAHost(t *testing.T) {
	needNamespaces(t)
	t.Parallel()
	b := newBox(t)
	ws := b.workspace()
	clone := "GIT_TERMINAL_PROMPT=0 git ls-remote https://code.invalid/x; echo over"
	b.scenarios(callsFor("look", shellCall(clone)))
	b.must("config", "set", "approval.rules", `[{"tool":"shell","decision":"allow"}]`)
	b.serve()
	id := b.turn(ws, "look there")
	a, last := b.ask(id, "")
	if a.Tool != "sandbox_host" || a.Brief != "the command wants to reach code.invalid:443" || !strings.Contains(string(a.Params), `"host":"code.invalid"`) {
		t.Errorf("asked about %+v, want the host", a)
	}
	var pending []map[string]any
	b.admin("GET", "/approvals", "", 200, &pending)
	if len(pending) != 1 || pending[0]["tool_name"] != "sandbox_host" {
		t.Errorf("pending: got %v, want the host", pending)
	}
	b.decide(id, a, "deny")
	out, _ := b.outputs(id, last)
	if want := "the command was kept from reaching code.invalid:443 (profile command): its user was asked, and said no"; !strings.Contains(out, want) || !strings.Contains(out, "over") {
		t.Errorf("got %s, want %q", out, want)
	}
	b.must("config", "set", "approval.rules", `[{"tool":"shell","decision":"allow"},{"tool":"sandbox_host","decision":"deny","reason":"no hosts here"}]`)
	eventually.True(t, "the rule holds", func() bool {
		id := b.turn(ws, "look again")
		out, _ := b.outputs(id, "")
		return strings.Contains(out, "code.invalid:443 (profile command): denied: no hosts here")
	})
}

// GF-2: without anybody to ask, a command outside the sandbox is refused with what helps:
// no rule allows one, and a command that was kept from a file is not told to ask.
func TestOutsideWithoutATerminal(t *testing.T) {
	needNamespaces(t)
	besideTmp(t)
	b := newBox(t)
	ws := b.workspace()
	b.must("trust", ws, "--yes")
	b.must("config", "set", "approval.rules", `[{"tool":"shell","decision":"allow"}]`)
	run := func(call string) string {
		cmd := exec.CommandContext(t.Context(), b.bin, b.args("run", "--workspace", ws, call)...)
		cmd.Env = b.environ()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("yaya run %s: %v\n%s", call, err, out)
		}
		return string(out)
	}
	out := run(`/tool shell {"command":"id","outside":true,"reason":"to see"}`)
	if strings.Contains(out, "approval.rules") || strings.Count(out, daemon.NoRule) < 2 || !strings.Contains(out, "1 call was refused: "+daemon.NoRuleAsked) {
		t.Errorf("got %s, want that no rule can allow it, to the model and to the user", out)
	}
	out = run(`/tool shell {"command":"touch /usr/x"}`)
	if !strings.Contains(out, "may have been kept from a file") || !strings.Contains(out, "Nobody is available to approve") || strings.Contains(out, "a person is asked") {
		t.Errorf("got %s, want that nobody is there to agree", out)
	}
	b.must("config", "set", "approval.rules", `[]`)
	if out = run(`/tool shell {"command":"id"}`); !strings.Contains(out, daemon.NobodyAsked) {
		t.Errorf("got %s, want that a rule can allow it", out)
	}
}
