package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/fakellm"
)

// provider makes b's agents ask a service.
func (b *box) provider(s *fakellm.Server) {
	b.t.Helper()
	b.must("provider", "add", "local", "--base-url", s.URL+"/v1", "--model", "fake-1", "--use")
}

// start starts yaya; the caller ends it and waits for it.
func (b *box) start(args ...string) (cmd *exec.Cmd, out io.Reader, errOut *bytes.Buffer) {
	b.t.Helper()
	cmd = exec.CommandContext(b.t.Context(), b.bin, b.args(args...)...)
	cmd.Env = b.environ()
	errOut = new(bytes.Buffer)
	cmd.Stderr = errOut
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	return cmd, out, errOut
}

// events reads what yaya run --json prints.
func events(t *testing.T, out string) (kinds []string, byKind map[string][]json.RawMessage) {
	t.Helper()
	byKind = map[string][]json.RawMessage{}
	for line := range strings.SplitSeq(strings.TrimSpace(out), "\n") {
		var ev struct {
			Kind    string          `json:"kind"`
			Payload json.RawMessage `json:"payload"`
		}
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatalf("a line of yaya run --json = %q, %v; want a JSON event", line, err)
		}
		kinds = append(kinds, ev.Kind)
		byKind[ev.Kind] = append(byKind[ev.Kind], ev.Payload)
	}
	return kinds, byKind
}

// A model of another process, which streams, is overloaded at first, and calls
// tools of the real reference servers, several at once, in several steps.
func TestRunWithRealServers(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	b := newBox(t)
	cfg := b.writeConfig(node, nil)
	note := filepath.Join(b.dir, "files", "note.txt")
	s := fakellm.New(
		fakellm.Step{Status: 429, RetryAfter: "0.1", Text: "slow down"},
		fakellm.Step{Text: "I will look.", ToolCalls: []fakellm.Call{
			{Name: "everything__echo", Args: `{"message":"from the model"}`},
			{Name: "everything__get-sum", Args: `{"a":2,"b":40}`},
		}},
		fakellm.Step{Status: 503, RetryAfter: "0.1"},
		fakellm.Step{ToolCalls: []fakellm.Call{
			{Name: "fs__write_file", Args: `{"path":` + quoted(note) + `,"content":"written by an agent"}`},
			{Name: "memory__create_entities", Args: `{"entities":[{"name":"yaya","entityType":"gateway","observations":["works"]}]}`},
		}},
		fakellm.Step{Text: "All is done: 42."},
	)
	defer s.Close()
	b.provider(s)
	b.must("config", "set", "approval.rules", `[{"provider":"everything","decision":"allow"},{"provider":"fs","decision":"allow"},{"provider":"memory","decision":"allow"}]`)
	out := b.must("run", "--json", "--mcp-config", cfg, "--session", "s1", "do it")
	kinds, by := events(t, out)
	if kinds[len(kinds)-1] != "turn.completed" || len(by["tool.call.result"]) != 4 || len(by["tool.error"]) != 0 {
		t.Fatalf("got %v; want 4 results of tools, no error, and turn.completed at the end\n%s", kinds, out)
	}
	for _, want := range []string{"from the model", "42"} {
		if !slices.ContainsFunc(by["tool.call.result"], func(r json.RawMessage) bool { return bytes.Contains(r, []byte(want)) }) {
			t.Errorf("no result has %q", want)
		}
	}
	if data, err := os.ReadFile(note); err != nil || string(data) != "written by an agent" {
		t.Errorf("the file holds %q, %v", data, err)
	}
	var done struct{ Steps, Usage any }
	if err := json.Unmarshal(by["turn.completed"][0], &done); err != nil || done.Steps != 3.0 {
		t.Errorf("turn.completed has %s, want 3 steps", by["turn.completed"][0])
	}
	rs := s.Requests()
	if len(rs) != 5 {
		t.Fatalf("%d requests", len(rs))
	}
	last, _ := json.Marshal(rs[4].Body["messages"])
	for _, want := range []string{"from the model", `"role":"tool"`, "I will look."} {
		if !strings.Contains(string(last), want) {
			t.Errorf("the model was not shown %q: %s", want, last)
		}
	}
	if n := len(rs[0].Body["tools"].([]any)); n < 37 {
		t.Errorf("the model was offered %d tools", n)
	}
	// For people, the same; and without the rules, nobody to ask means no.
	b.must("config", "unset", "approval.rules")
	s2 := fakellm.New(fakellm.Step{ToolCalls: []fakellm.Call{{Name: "everything__echo", Args: `{"message":"x"}`}}}, fakellm.Step{Text: "I may not."})
	defer s2.Close()
	b.must("config", "set", "providers.local.base_url", s2.URL+"/v1")
	text := b.must("run", "--mcp-config", cfg, "--session", "s1", "and again")
	if text != "I may not.\n" {
		t.Errorf(`yaya run says %q, want "I may not.\n"`, text)
	}
	last, _ = json.Marshal(s2.Requests()[1].Body["messages"])
	if !strings.Contains(string(last), "nobody is there to ask") || !strings.Contains(string(last), "All is done: 42.") {
		t.Errorf("the model got %s", last)
	}
	show := b.must("session", "show", "s1")
	for _, want := range []string{"user: do it", "→ everything__echo", "assistant: All is done: 42.", "✗ rejected: it needs approval"} {
		if !strings.Contains(show, want) {
			t.Errorf("session show lacks %q:\n%s", want, show)
		}
	}
	if out := b.must("verify"); !strings.Contains(out, "0 findings") {
		t.Errorf(`yaya verify says %s, want "0 findings" in it`, out)
	}
}

func quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// kill -9 in the middle of a turn: the session is whole, the turn is known to
// have been interrupted, and the conversation goes on.
func TestRunIsKilled(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	slow := fakellm.New(fakellm.Step{Text: "word after word after word after word after word", Delay: 300 * time.Millisecond})
	defer slow.Close()
	b.provider(slow)
	cmd, out, _ := b.start("run", "--json", "--session", "s1", "take your time")
	for sc := bufio.NewScanner(out); sc.Scan(); {
		if strings.Contains(sc.Text(), "assistant.message.delta") {
			break
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	quick := fakellm.New(fakellm.Step{Text: "here I am again"})
	defer quick.Close()
	b.must("config", "set", "providers.local.base_url", quick.URL)
	if got := b.must("run", "--session", "s1", "go on"); got != "here I am again\n" {
		t.Errorf(`yaya run says %q, want "here I am again\n"`, got)
	}
	raw, _ := json.Marshal(quick.Requests()[0].Body["messages"])
	if !strings.Contains(string(raw), "take your time") {
		t.Errorf("the model was shown %s", raw)
	}
	if export := b.must("session", "export", "s1"); !strings.Contains(export, `"kind":"interrupted"`) {
		t.Errorf("the turn was not ended:\n%s", export)
	}
}

// An interrupt ends the turn and the program, at once, with an exit code.
func TestRunIsInterrupted(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	slow := fakellm.New(fakellm.Step{Text: strings.Repeat("word ", 500), Delay: 100 * time.Millisecond})
	defer slow.Close()
	b.provider(slow)
	cmd, out, errOut := b.start("run", "--session", "s1", "talk")
	if _, err := out.Read(make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	err := cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(errOut.String(), "cancelled") {
		t.Errorf("exit code %d, %v: %s; want 130", code, err, errOut.String())
	}
	if show := b.must("session", "show", "s1"); !strings.Contains(show, "turn.cancelled") {
		t.Errorf(`yaya session show says %s, want "turn.cancelled" in it`, show)
	}
}

// A running daemon takes over settings that a command has changed, and repairs
// what a crash left before anybody asks.
func TestDaemonAndSessions(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	slow := fakellm.New(fakellm.Step{Text: strings.Repeat("word ", 100), Delay: 200 * time.Millisecond})
	defer slow.Close()
	b.provider(slow)
	cmd, out, _ := b.start("run", "--session", "s1", "talk")
	if _, err := out.Read(make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	// Its session is its own while it lives …
	if msg, err := b.run("session", "reset", "s1"); err == nil || !strings.Contains(msg, "in use") {
		t.Errorf(`yaya session reset: got %v: %s; want a failure with "in use"`, err, msg)
	}
	if msg, err := b.run("run", "--session", "s1", "me too"); err == nil || !strings.Contains(msg, "use another --session") {
		t.Errorf(`yaya run: got %v: %s; want a failure with "use another --session"`, err, msg)
	}
	if show := b.must("session", "show", "s1"); !strings.Contains(show, "user: talk") { // … and can be read
		t.Errorf(`yaya session show says %s; want "user: talk" in it`, show)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	b.serve()
	eventually.True(t, "the daemon repairs the session", func() bool {
		return strings.Contains(b.must("session", "export", "s1"), `"kind":"interrupted"`)
	})
}
