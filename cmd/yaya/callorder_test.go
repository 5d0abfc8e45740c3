package main

import (
	"path/filepath"
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
