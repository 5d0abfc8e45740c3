package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// With the mode edits, the agent of a session and its sub-agents change files without a question, and in a
// folder that no repository keeps, too; commands, what configures tools, and what a rule asks about are
// asked about as before. An undo takes each change back. The mode is for who may answer questions.
func TestEditsNeedNoQuestion(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("config", "set", "plugin.strategy_coder.auto_verify", "false")
	edit := func(file, was, is string) map[string]any {
		return map[string]any{"name": "edit", "args": map[string]any{"path": file, "old_text": was, "new_text": is}}
	}
	b.scenarios(
		callsFor("change", edit("a.txt", "one", "1"),
			map[string]any{"name": "apply_patch", "args": map[string]any{"patch": "*** Begin Patch\n*** Add File: b.txt\n+new\n*** End Patch"}},
			shellCall("touch made"), edit("Makefile", "all:", "none:")),
		callsFor("more", edit("a.txt", "two", "2")),
	)
	b.serve()
	ws := b.workspace()
	if err := os.WriteFile(filepath.Join(ws, "Makefile"), []byte("all:\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must("trust", "--yes", ws)
	_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q,"mode":"edits"}`, ws))
	id, _ := out["session_id"].(string)
	b.tell(id, "change it")
	last := ""
	for _, tool := range []string{"shell", "edit"} {
		var a asked
		if a, last = b.ask(id, last); a.Tool != tool {
			t.Errorf("asked about %s %s, want %s: the command, and then the Makefile", a.Tool, a.Params, tool)
		}
		b.decide(id, a, "deny")
	}
	b.outputs(id, last)
	content := func(file, want string) {
		t.Helper()
		if got := read(t, filepath.Join(ws, file)); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
	content("a.txt", "1\ntwo\n")
	content("b.txt", "new\n")
	content("Makefile", "all:\n")
	for range 2 {
		if status, out := b.v1("POST", "/sessions/"+id+"/undo", ""); status != 200 {
			t.Errorf("undo: %d %v, want 200", status, out)
		}
	}
	content("a.txt", "one\ntwo\n")
	if there(t, filepath.Join(ws, "b.txt")) {
		t.Error("b.txt is there after the undo of the patch that made it")
	}

	// A rule that asks about every change holds.
	b.must("config", "set", "approval.rules", `[{"tool":"edit","decision":"ask"}]`)
	_, st := b.v1("GET", "/sessions/"+id, "")
	last, _ = st["cursor"].(string)
	b.tell(id, "more")
	a, last := b.ask(id, last)
	if a.Tool != "edit" || !strings.Contains(string(a.Params), "two") {
		t.Errorf("asked about %s %s, want the edit that the rule asks about", a.Tool, a.Params)
	}
	b.decide(id, a, "deny")
	b.outputs(id, last)

	// A client that writes to sessions and may not answer questions gets the other modes alone.
	b.token = b.lasting("writer", "--scope", "sessions:read,sessions:write")
	for method, at := range map[string]string{"POST": "/sessions", "PATCH": "/sessions/" + id} {
		body := fmt.Sprintf(`{"workspace_path":%q,"mode":"edits"}`, ws)
		if method == "PATCH" {
			body = `{"mode":"edits","title":"taken"}`
		}
		if status, out := b.v1(method, at, body); status != 403 {
			t.Errorf("%s %s: %d %v, want 403", method, at, status, out)
		}
	}
	if status, out := b.v1("POST", "/sessions/"+id+"/fork", ""); status/100 != 2 || out["mode"] != "work" {
		t.Errorf("a fork of the session in edits: %d %v, want it at work", status, out)
	}
	if status, out := b.v1("PATCH", "/sessions/"+id, `{"mode":"work"}`); status != 200 || out["mode"] != "work" || out["title"] == "taken" {
		t.Errorf("PATCH to work: %d %v, want 200, and the title as it was", status, out)
	}
}
