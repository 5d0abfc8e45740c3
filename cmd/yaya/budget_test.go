package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
)

// dear makes a model of a provider cost $0.70 a call: its answers have 7 tokens.
func (b *box) dear(provider string) {
	b.t.Helper()
	b.must("config", "set", "providers."+provider+".output_price", "100000")
}

func (b *box) session(ws string) (id string) {
	b.t.Helper()
	_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, ws))
	id, _ = out["session_id"].(string)
	return id
}

func (b *box) folder(name string) string {
	b.t.Helper()
	dir := filepath.Join(b.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	return dir
}

// MIS-3: a session ends its turn before a call once it has cost its limit. Its sub-agents count, and a
// crash does not take the sum back; other sessions go on.
func TestBudgetOfASession(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	model := fakeModel(t,
		fakellm.Step{ToolCalls: []fakellm.Call{{Name: "agent", Args: `{"goal":"look"}`}}},
		fakellm.Step{Text: "the sub-agent's answer"},
		fakellm.Step{Text: "on"},
	)
	b.provider(model)
	b.dear("local")
	b.must("config", "set", "approval.rules", `[{"tool":"agent","decision":"allow"}]`)
	b.must("config", "set", "budget.session_cents", "140")
	ws := b.folder("ws")
	daemon := b.serve()
	b.must("trust", "--yes", ws)
	id := b.session(ws)
	const want = "this session has cost $1.40, and budget.session_cents allows $1.40"
	if _, got := b.answers(id, "delegate", "session_failed"); !strings.Contains(got, want) || !strings.Contains(got, `"kind":"budget"`) {
		t.Errorf("the turn ended with %s, want the kind budget and %q", got, want)
	}
	if n := len(model.Requests()); n != 2 {
		t.Errorf("%d calls, want the session's and its sub-agent's", n)
	}
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = daemon.Process.Wait()
	b.serve()
	if _, got := b.answers(id, "again", "session_failed"); !strings.Contains(got, want) {
		t.Errorf("after a crash the turn ended with %s, want %q", got, want)
	}
	b.answers(b.session(ws), "hello", "turn_completed")
	if n := len(model.Requests()); n != 3 {
		t.Errorf("%d calls, want one more, of the other session", n)
	}
	b.must("config", "set", "budget.session_cents", "141")
	b.answers(id, "on", "turn_completed")
}

// The limit of a day is on all sessions together, runs of the command line included, and a crash does not
// take the sum back. A model without known prices does not count, which a session is told once.
func TestBudgetOfADay(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	model, free := fakeModel(t, fakellm.Step{Text: "on"}), fakeModel(t, fakellm.Step{Text: "free"})
	b.twoModels(model, free)
	b.dear("main")
	b.must("config", "set", "budget.day_cents", "100")
	ws := b.folder("ws")
	if out := b.must("run", "--session", "s1", "hello"); out != "on\n" { // of its own process
		t.Errorf("got %q, want the answer", out)
	}
	daemon := b.serve()
	id := b.session(ws)
	if status, out := b.v1("PATCH", "/sessions/"+id, `{"model":"other"}`); status != 200 {
		t.Fatalf("got %d %v, want 200", status, out)
	}
	before, _ := b.answers(id, "one", "turn_completed")
	_, second := b.answers(id, "two", "turn_completed")
	events, _ := b.until(id, before, "turn_completed")
	rest, _ := b.until(id, events[len(events)-1].ID, "turn_completed")
	var told []string
	for _, ev := range append(events, rest...) {
		if ev.Name == "notice" {
			told = append(told, string(ev.Data))
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], "prices of the model model-b of other are not known") || !strings.Contains(told[0], "budget.day_cents") {
		t.Errorf("people are told %q in turns that end with %s, want one notice about the prices", told, second)
	}
	b.answers(b.session(ws), "hello", "turn_completed")
	const want = "all sessions together have cost $1.40 on "
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = daemon.Process.Wait()
	b.serve()
	if _, got := b.answers(b.session(ws), "hello", "session_failed"); !strings.Contains(got, want) || !strings.Contains(got, "budget.day_cents allows $1.00 a day") {
		t.Errorf("the turn ended with %s, want %q and the setting", got, want)
	}
	if out, err := b.run("run", "hello"); err == nil || !strings.Contains(out, want) {
		t.Errorf("yaya run: got %v, %s; want %q", err, out, want)
	}
	if n := len(model.Requests()); n != 2 {
		t.Errorf("%d calls of the model with prices, want 2", n)
	}
}

// A limit is a whole number of cents.
func TestBudgetSettings(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	for _, bad := range []string{"0", "1.5", "much"} {
		if out, err := b.run("config", "set", "budget.day_cents", bad); err == nil || !strings.Contains(out, "a whole number from 1 to") {
			t.Errorf("budget.day_cents=%s: got %v, %s; want it refused", bad, err, out)
		}
	}
}
