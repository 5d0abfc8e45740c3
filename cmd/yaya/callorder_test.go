package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// Calls of one answer that change or run something in the folder run in their order, each on the files
// that the ones before it have left.
func TestCallsThatChangeKeepTheirOrder(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("config", "set", "approval.rules", `[{"tool":"*","decision":"allow"}]`)
	edit := func(was, is string) any {
		return map[string]any{"name": "edit", "args": map[string]any{"path": "a.txt", "old_text": was, "new_text": is}}
	}
	calls := []any{shellCall("mkdir out")}
	for _, text := range []string{"one", "two", "three", "four"} {
		calls = append(calls, shellCall("echo "+text+" >> out/b.txt"))
	}
	calls = append(calls, edit("one", "1"), edit("1\ntwo", "12"), shellCall("cat a.txt >> out/b.txt"))
	b.scenarios(map[string]any{"match": "^change", "steps": []any{map[string]any{"tool_calls": calls}, map[string]any{"text": "done"}}})
	ws := b.workspace()
	b.must("run", "--workspace", ws, "change it")
	if got, want := read(t, filepath.Join(ws, "out", "b.txt")), "one\ntwo\nthree\nfour\n12\n"; got != want {
		t.Errorf("the calls have written %q, want %q", got, want)
	}
}

// A turn that is cancelled while one of these calls runs begins none of those after it.
func TestCancelBetweenCalls(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("config", "set", "approval.rules", `[{"tool":"*","decision":"allow"}]`)
	edit := map[string]any{"name": "edit", "args": map[string]any{"path": "a.txt", "old_text": "one", "new_text": "1"}}
	b.scenarios(map[string]any{"match": "^change", "steps": []any{map[string]any{"tool_calls": []any{shellCall("sleep 600"), edit}}}})
	b.serve()
	ws := b.workspace()
	id := b.turn(ws, "change it")
	_, last := b.until(id, "", "tool_call_started")
	if status, out := b.v1("POST", "/sessions/"+id+"/cancel", `{}`); status != 200 && status != 202 {
		t.Fatalf("cancel: got %d %v, want it accepted", status, out)
	}
	events, _ := b.until(id, last, "session_canceled")
	for _, ev := range events {
		if strings.Contains(string(ev.Data), `"edit"`) {
			t.Errorf("after the cancellation came %s %s, want nothing of the second call", ev.Name, ev.Data)
		}
	}
	if got := read(t, filepath.Join(ws, "a.txt")); got != "one\ntwo\n" {
		t.Errorf("a.txt is %q, want it as it was", got)
	}
}
