package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A session that plans refuses what changes something, of its sub-agents too and whatever rules
// allow, until a person approves its plan: then the same turn goes on with the work.
func TestASessionPlansFirst(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("config", "set", "plugin.strategy_coder.auto_verify", "false")
	b.must("config", "set", "approval.rules", `[{"tool":"*","decision":"allow"}]`)
	call := func(name string, args map[string]any) map[string]any {
		return map[string]any{"name": name, "args": args}
	}
	edit := func(was, is string) map[string]any {
		return call("edit", map[string]any{"path": "a.txt", "old_text": was, "new_text": is})
	}
	plan := call("propose_plan", map[string]any{"plan": "1. change one\n2. look"})
	b.scenarios(
		callsFor("change", edit("one", "1"), shellCall("touch made"), call("web_fetch", map[string]any{"url": "https://example.com"}),
			call("agent", map[string]any{"goal": "deeper"}), call("read_file", map[string]any{"path": "a.txt"}), plan, edit("one", "1")),
		callsFor("deeper", edit("two", "2"), plan),
		callsFor("again", edit("two", "2"), plan),
	)
	daemon := b.serve()
	ws := b.workspace()
	_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q,"mode":"plan"}`, ws))
	id, _ := out["session_id"].(string)
	mode := func(id, want string) {
		t.Helper()
		if _, st := b.v1("GET", "/sessions/"+id, ""); st["mode"] != want {
			t.Errorf("the mode of %s is %v, want %s", id, st["mode"], want)
		}
	}
	b.tell(id, "change it")
	events, last := b.until(id, "", "approval_requested")
	var before strings.Builder
	for _, ev := range events {
		before.Write(ev.Data)
	}
	for _, name := range []string{"edit", "shell", "web_fetch"} {
		if want := "this session plans, and only reads: " + name + " has to wait"; !strings.Contains(before.String(), want) {
			t.Errorf("before the plan: %s, want %q", before.String(), want)
		}
	}
	if there(t, filepath.Join(ws, "made")) {
		t.Error("a command ran while the session planned")
	}
	mode(id, "plan")
	var ask struct {
		Data asked `json:"data"`
	}
	if err := json.Unmarshal(events[len(events)-1].Data, &ask); err != nil {
		t.Fatal(err)
	}
	if ask.Data.Tool != "propose_plan" || !strings.Contains(string(ask.Data.Params), "change one") {
		t.Errorf("asked about %+v, want the plan, though a rule allows every tool", ask.Data)
	}
	var wait struct {
		Data struct {
			Deadline time.Time `json:"deadline"`
		} `json:"data"`
	}
	if err := json.Unmarshal(events[len(events)-1].Data, &wait); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(wait.Data.Deadline); left < 20*time.Minute { // of 30
		t.Errorf("%v are left to read the plan, want about 30 minutes", left)
	}
	_, fork := b.v1("POST", "/sessions/"+id+"/fork", "")
	forked, _ := fork["id"].(string)
	b.decide(id, ask.Data, "approve")
	text, _ := b.outputs(id, last)
	if !strings.Contains(text, "The user has approved the plan") || !strings.Contains(read(t, filepath.Join(ws, "a.txt")), "1\ntwo") {
		t.Errorf("after the plan: %s, and the file is %q, want the work done", text, read(t, filepath.Join(ws, "a.txt")))
	}
	mode(id, "work")
	mode(forked, "plan")

	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = daemon.Process.Wait()
	b.serve()
	mode(id, "work")
	mode(forked, "plan")
	_, st := b.v1("GET", "/sessions/"+forked, "")
	from, _ := st["cursor"].(string) // behind what it has of the other session
	b.tell(forked, "again")
	a, _ := b.ask(forked, from)
	b.decide(forked, a, "deny")
	if text, _ := b.outputs(forked, from); !strings.Contains(text, "edit has to wait") || !strings.Contains(text, "rejected") {
		t.Errorf("the fork after a restart: %s, want the edit refused, and the plan", text)
	}
	mode(forked, "plan")
	if status, out := b.v1("PATCH", "/sessions/"+forked, `{"mode":"work"}`); status != 200 || out["mode"] != "work" {
		t.Errorf("PATCH mode: %d %v, want work", status, out)
	}
	if status, _ := b.v1("PATCH", "/sessions/"+forked, `{"mode":"other"}`); status != 400 && status != 422 {
		t.Errorf("PATCH of an unknown mode: %d, want a refusal", status)
	}
}

// yaya run --plan refuses what changes something until the plan is approved, and the session goes on
// planning without the flag.
func TestRunPlansFirst(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("config", "set", "approval.rules", `[{"tool":"*","decision":"allow"}]`)
	edit := map[string]any{"name": "edit", "args": map[string]any{"path": "a.txt", "old_text": "one", "new_text": "1"}}
	b.scenarios(callsFor("change", edit), callsFor("again", edit))
	ws := b.workspace()
	b.must("trust", "--yes", ws)
	for _, args := range [][]string{{"--plan", "change it"}, {"again"}} {
		out, err := b.run(append([]string{"run", "--session", "s1", "--workspace", ws, "--json"}, args...)...)
		if err != nil || !strings.Contains(out, "this session plans, and only reads: edit has to wait") {
			t.Errorf("run %q: %v, %s; want the edit refused", args, err, out)
		}
	}
	if got := read(t, filepath.Join(ws, "a.txt")); !strings.HasPrefix(got, "one\n") {
		t.Errorf("a.txt is %q, want it as it was", got)
	}
}
