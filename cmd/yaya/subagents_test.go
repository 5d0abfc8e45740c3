package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file of a folder describes a sub-agent once the folder is trusted: the question about the folder
// names it, and its instructions reach the sub-agent with the tools that it lists.
func TestSubAgentsOfAFolder(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ws := b.workspace()
	dir := filepath.Join(ws, ".yaya", "agents")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "reviewer.md"), []byte("---\ndescription: Reads changes\ntools: read_file\n---\nBe strict.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.must("config", "set", "approval.rules", `[{"tool":"agent","decision":"allow"},{"tool":"apply_patch","decision":"allow"}]`)
	b.scenarios(callsFor("delegate", map[string]any{"name": "agent", "args": map[string]any{"goal": "look", "agent": "reviewer"}}),
		callsFor("You are the sub-agent reviewer", map[string]any{"name": "apply_patch", "args": map[string]any{"patch": numbered}}))
	b.serve()
	_, out := b.v1("POST", "/sessions", `{"workspace_path":"`+ws+`"}`)
	id, _ := out["session_id"].(string)
	say := `{"role":"user","parts":[{"type":"text","text":"delegate"}]}`
	if status, out := b.v1("POST", "/sessions/"+id+"/messages", say); status != 202 {
		t.Fatalf("a message: %d, %v; want 202", status, out)
	}
	all, last := b.outputs(id, "")
	if got := all + b.tape(id); !strings.Contains(got, "is not trusted: its files can be read") || !strings.Contains(got, "has changed since it was trusted") || !strings.Contains(got, "yaya trust "+ws) {
		t.Errorf("in a folder that is no longer trusted: %s, want that it is not, and the remedy", got)
	}
	if out := b.must("trust", "--yes", ws); !strings.Contains(out, "agent: .yaya/agents/reviewer.md") {
		t.Errorf("yaya trust says %s, want the file", out)
	}
	if status, out := b.v1("POST", "/sessions/"+id+"/messages", say); status != 202 {
		t.Fatalf("a message: %d, %v; want 202", status, out)
	}
	_, last = b.outputs(id, last)
	if got := b.tape(id); !strings.Contains(got, "sub-agent finished in 2 steps") || !strings.Contains(got, `- reviewer: \"Reads changes\"`) {
		t.Errorf("the tape is %s, want the note on the sub-agent, and its end", got)
	}
	if text, err := os.ReadFile(filepath.Join(ws, "a.txt")); err != nil || !strings.HasPrefix(string(text), "one\n") {
		t.Errorf("a.txt is %q, %v; want it as it was: the sub-agent has no tool that could change it", text, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "another.md"), []byte("---\ndescription: Writes\n---\nBe quick.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if status, out := b.v1("POST", "/sessions/"+id+"/messages", say); status != 202 {
		t.Fatalf("a message: %d, %v; want 202", status, out)
	}
	b.outputs(id, last)
	if got := b.tape(id); !strings.Contains(got, "it has changed since it was trusted: agent ") || !strings.Contains(got, ".yaya/agents/another.md") || strings.Contains(got, "no file describes one") {
		t.Errorf("the tape is %s, want that the folder is restricted again, and why", got)
	}
}

// tape returns the tape of a session.
func (b *box) tape(id string) string {
	b.t.Helper()
	status, tape, _ := b.raw("GET", "/v1/sessions/"+id+"/export", "")
	if status != 200 {
		b.t.Fatalf("export: %d, %s; want 200", status, tape)
	}
	return string(tape)
}
