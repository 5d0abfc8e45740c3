package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/fakellm"
)

// USE-2: a run beside a daemon has its tools, asks on its own terminal, fails with the
// turn, and shows arguments as text.
func TestRunBesideTheDaemon(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	command, starts := b.recorded("fake")
	b.must(append([]string{"mcp", "add", "fake", "--"}, command...)...)
	b.serve()
	b.waitState("fake", "ready")

	task := `/tool fake__t {"command":"ls && git status","patch":"one\ntwo\n"}`
	out := b.terminal([]string{"y"}, "run", "--session", "s1", task)
	for _, want := range []string{"\n  command: ls && git status\r\n  patch:\r\n  | one\r\n  | two\r\n", "✓ called & done"} {
		if !strings.Contains(out, want) {
			t.Errorf("got %q, want %q in it", out, want)
		}
	}
	if strings.Contains(out, `\u0026`) || strings.Contains(out, `\n`) {
		t.Errorf("escapes are shown to people: %q", out)
	}
	if out := b.terminal([]string{"not that way"}, "run", "--session", "s1", task); !strings.Contains(out, "rejected: not that way") {
		t.Errorf(`yaya run says %q; want "rejected: not that way" in it`, out)
	}
	// Without a terminal nobody is asked, and the turn goes on.
	if out := b.must("run", "--session", "s1", task); !strings.Contains(out, "nobody is there to ask") {
		t.Errorf(`yaya run says %q, want "nobody is there to ask" in it`, out)
	}
	b.must("config", "set", "approval.rules", `[{"tool":"*","decision":"allow"}]`)
	if out := b.must("run", "--session", "s1", task); out != "called & done\n" {
		t.Errorf(`yaya run says %q, want "called & done\n"`, out)
	}
	if out := b.must("run", "--approve", "never", `/tool agent {"goal":"x"}`); !strings.Contains(out, "--approve never") {
		t.Errorf(`yaya run says %q, want "--approve never" in it`, out)
	}
	if got := starts(); got != 1 {
		t.Errorf("the server was started %d times, want once, by the daemon", got)
	}

	// The folder is the one that run was started in, and the session is the daemon's.
	if out := b.must("session", "list", "--json"); !strings.Contains(out, `"id": "s1"`) {
		t.Errorf("yaya session list says %s, want the session s1 in it", out)
	}
	if out := b.must("session", "fork", "s1", "s2"); out != "s2\n" {
		t.Errorf("fork: got %q", out)
	}
	if out, err := b.run("session", "fork", "s1", "s2"); err == nil || !strings.Contains(out, "already") {
		t.Errorf("fork twice: %v, %q", err, out)
	}
	if out := b.must("session", "reset", "s1"); !strings.Contains(out, "archived: tapes/.archive/") {
		t.Errorf("reset: got %q", out)
	}
	if out := b.must("session", "archive", "s2"); !strings.Contains(out, "archived: tapes/.archive/") {
		t.Errorf("archive: got %q", out)
	}

	if out, err := b.run("run", "--provider", "nope", "x"); err == nil || !strings.Contains(out, `there is no provider "nope"`) {
		t.Errorf(`yaya run: got %v: %s; want an error with: there is no provider "nope"`, err, out)
	}
	b.must("config", "set", "plugin.llm_echo.script", `{"steps":[{"error":{"kind":"status","status_code":401,"message":"no such key"}}]}`)
	out, err := b.run("run", "--session", "s3", "hi")
	if err == nil || strings.Count(out, "no such key") != 1 {
		t.Errorf("a turn that fails: %v, %q, want the reason once", err, out)
	}
}

// A provider that a run names is that run's alone.
func TestProviderOfARun(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	b.must("provider", "add", "other", "--base-url", "http://127.0.0.1:1/v1", "--model", "m")
	out, err := b.run("run", "--provider", "other", "--session", "s1", "hello")
	if err == nil || !strings.Contains(out, "127.0.0.1:1") {
		t.Errorf("got %v: %s, want that the chosen provider is not there", err, out)
	}
	if out := b.must("run", "--session", "s1", "hello"); out != "echo: hello\n" {
		t.Errorf("the next run: got %q", out)
	}
}

// Ctrl-C and the end of the command cancel its turn in the daemon.
func TestRunBesideTheDaemonEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		says   string
	}{{"interrupt", syscall.SIGINT, "cancelled"}, {"kill", syscall.SIGKILL, ""}} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t)
			slow := fakellm.New(fakellm.Step{Text: strings.Repeat("word ", 5000), Delay: 100 * time.Millisecond})
			defer slow.Close()
			b.provider(slow)
			b.serve()
			cmd, out, errOut := b.start("run", "--session", "s1", "talk")
			if _, err := out.Read(make([]byte, 4)); err != nil {
				t.Fatal(err)
			}
			if got, err := b.run("run", "--session", "s1", "me too"); err == nil || !strings.Contains(got, "use another --session") {
				t.Errorf("a second run of a busy session: %v, %q", err, got)
			}
			if err := cmd.Process.Signal(c.signal); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code == 0 || !strings.Contains(errOut.String(), c.says) {
				t.Errorf("exit code %d, %v: %s, want a failure that says %q", code, err, errOut.String(), c.says)
			}
			eventually.True(t, "the turn is cancelled", func() bool { return strings.Contains(b.must("session", "show", "s1"), "turn.cancelled") })
		})
	}
}

// A run that finds the session busy with a message of another client leaves its mode and its model alone:
// the turn would go on with them.
func TestRunOfABusySession(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	slow := fakellm.New(fakellm.Step{Text: strings.Repeat("word ", 5000), Delay: 100 * time.Millisecond})
	defer slow.Close()
	b.provider(slow)
	b.must("provider", "add", "other", "--base-url", "http://127.0.0.1:1/v1", "--model", "m")
	b.serve()
	_, made := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, t.TempDir()))
	id, _ := made["session_id"].(string)
	if status, sent := b.v1("POST", "/sessions/"+id+"/messages", `{"role":"user","parts":[{"type":"text","text":"talk"}]}`); status != 202 {
		t.Fatalf("POST /v1/sessions/%s/messages: %d %v", id, status, sent)
	}
	got, err := b.run("run", "--session", id, "--model", "other", "--plan", "me too")
	if err == nil || !strings.Contains(got, "use another --session") || strings.Count(got, id) != 1 {
		t.Errorf("a run of a busy session: %v, %q; want a refusal that names it once", err, got)
	}
	if status, is := b.v1("GET", "/sessions/"+id, ""); status != 200 || is["mode"] != "work" || is["model"] != nil {
		t.Errorf("the session is now %v; want it as it was", is)
	}
	if status, is := b.v1("POST", "/sessions/"+id+"/cancel", ""); status != 202 {
		t.Errorf("POST /v1/sessions/%s/cancel: %d %v", id, status, is)
	}
}

// A run works in the folder that it was started in, and says which of the folder's
// servers it does without: those that a daemon elsewhere has not started.
func TestFolderOfARun(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	command, starts := b.recorded("brought")
	dir := filepath.Join(b.dir, "project")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	entry, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"brought": map[string]any{"command": command[0], "args": command[1:]}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), entry, 0o600); err != nil {
		t.Fatal(err)
	}
	b.serve()
	b.must("trust", "--yes", dir)
	yaya := b.bin
	b.bin = filepath.Join(b.dir, "there.sh")
	writeProgram(t, b.bin, "#!/bin/sh\ncd "+dir+" && exec "+yaya+" \"$@\" 2>&1\n")
	out := b.must("run", "--session", "s1", "hello")
	if !strings.Contains(out, "the server brought of "+filepath.Join(dir, ".mcp.json")+" is not used") || !strings.Contains(out, "echo: hello") {
		t.Errorf("yaya run says %q; want the notice that .mcp.json is not used, and the echo", out)
	}
	if out := b.must("session", "list"); !strings.Contains(out, dir) {
		t.Errorf("the session works elsewhere: %s", out)
	}
	if starts() != 0 {
		t.Errorf("the server of the folder was started %d times", starts())
	}
}
