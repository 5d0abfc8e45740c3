package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/internal/undo"
)

// AGT-4: in a real repository, what an edit, a patch and a command have changed is undone step by
// step, byte by byte, with modes; not over the change of somebody else; and the model learns of it.
func TestSessionUndo(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	call := func(name, args string) fakellm.Step {
		return fakellm.Step{ToolCalls: []fakellm.Call{{Name: name, Args: args}}}
	}
	model := fakellm.New(
		call("edit", `{"path":"a.sh","old_text":"one","new_text":"two"}`),
		call("apply_patch", `{"patch":"--- /dev/null\n+++ b/new/c.txt\n@@ -0,0 +1 @@\n+c\n"}`),
		call("shell", `{"command":"rm b.txt; chmod 600 a.sh; printf 'x\\000y' > bin.dat; rm k.txt; mkdir k.txt; echo q > k.txt/in"}`),
		fakellm.Step{Text: "done"},
	)
	t.Cleanup(model.Close)
	b.provider(model)
	b.must("config", "set", "approval.rules", `[{"tool":"edit","decision":"allow"},{"tool":"apply_patch","decision":"allow"},{"tool":"shell","decision":"allow"}]`)
	ws := filepath.Join(b.dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	b.repository(ws)
	for name, text := range map[string]string{"a.sh": "echo one\n", "b.txt": "b\n", "k.txt": "k\n"} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	commit := exec.CommandContext(t.Context(), "sh", "-c", "git add . && git commit -qm first")
	commit.Dir = ws
	if out, err := commit.CombinedOutput(); err != nil {
		t.Fatalf("git commit: %v %s", err, out)
	}
	state := func() string {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "git status --porcelain -uall && git diff")
		cmd.Dir = ws
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git status: %v %s", err, out)
		}
		return string(out)
	}
	b.serve()
	id := b.turn(ws, "go")
	_, last := b.until(id, "", "turn_completed")
	after := state()
	if !strings.Contains(after, " D b.txt") || !strings.Contains(after, "?? bin.dat") || !strings.Contains(after, "+echo two") {
		t.Fatalf("after the turn git says\n%s", after)
	}
	// Somebody else's change keeps the step from being undone, all of it.
	bin := filepath.Join(ws, "bin.dat")
	if err := os.WriteFile(bin, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := b.run("session", "undo", id); err == nil || !strings.Contains(out, "bin.dat") || !strings.Contains(state(), " D b.txt") {
		t.Errorf("over a change of somebody else: %v, %s; want a refusal that names bin.dat, and nothing undone", err, out)
	}
	if err := os.WriteFile(bin, []byte("x\x00y"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(bin, 0o644); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(ws, "k.txt", "mine") // the command has put a folder in the place of the file
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := b.run("session", "undo", id); err == nil || !strings.Contains(out, `"k.txt/mine"`) || !strings.Contains(out, "move it away") || !strings.Contains(state(), " D b.txt") {
		t.Errorf("with a file of somebody else in the way: %v, %s; want a refusal that names k.txt/mine, and nothing undone", err, out)
	}
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
	if out := b.must("session", "undo", id); !strings.Contains(out, "  b.txt\n") || !strings.Contains(out, "can be undone: 2") || there(t, bin) {
		t.Errorf("undo of the command: %s", out)
	}
	info, err := os.Stat(filepath.Join(ws, "a.sh"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("a.sh has the mode %v, want 0755", info.Mode())
	}
	if status, out := b.v1("POST", "/sessions/"+id+"/undo", ""); status != 200 || fmt.Sprint(out["files"]) != "[new/c.txt new/]" || out["left"] != 1.0 {
		t.Errorf("undo of the patch: %d %v", status, out)
	}
	b.must("session", "undo", id)
	if got := state(); got != "" {
		t.Errorf("after all is undone git says\n%s", got)
	}
	if status, out := b.v1("POST", "/sessions/"+id+"/undo", ""); status != 409 {
		t.Errorf("with nothing left: %d %v, want 409", status, out)
	}
	if status, out := b.v1("POST", "/sessions/"+id+"/messages", `{"role":"user","parts":[{"type":"text","text":"on"}]}`); status != 202 {
		t.Fatalf("got %v, %v, want status 202", status, out)
	}
	b.until(id, last, "turn_completed")
	got := model.Requests()
	if text := fmt.Sprint(got[len(got)-1].Body["messages"]); strings.Count(text, "[note of yaya: undo]") != 3 {
		t.Errorf("the model is told %s, want three notes", text)
	}
}

// AGT-4: an undo writes only to the folder that the agent changed, and only while it is trusted.
func TestUndoOnlyInItsFolder(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.provider(fakeModel(t,
		fakellm.Step{ToolCalls: []fakellm.Call{{Name: "apply_patch", Args: `{"patch":"--- /dev/null\n+++ b/keys\n@@ -0,0 +1 @@\n+evil\n"}`}}},
		fakellm.Step{ToolCalls: []fakellm.Call{{Name: "apply_patch", Args: `{"patch":"--- a/keys\n+++ /dev/null\n@@ -1 +0,0 @@\n-evil\n"}`}}},
		fakellm.Step{Text: "done"},
	))
	b.must("config", "set", "approval.rules", `[{"tool":"apply_patch","decision":"allow"}]`)
	b.serve()
	ws, victim := b.folder("ws"), b.folder("victim")
	id := b.turn(ws, "go")
	b.until(id, "", "turn_completed")
	if err := errors.Join(os.Rename(ws, ws+"2"), os.Symlink(victim, ws)); err != nil {
		t.Fatal(err)
	}
	if out, err := b.run("session", "undo", id); err == nil || there(t, filepath.Join(victim, "keys")) {
		t.Errorf("with a link to a folder that is not trusted: %v, %s; want a refusal, and nothing there", err, out)
	}
	b.must("trust", "--yes", victim)
	if status, out := b.v1("POST", "/sessions/"+id+"/undo", ""); status != 409 || !strings.Contains(fmt.Sprint(out), "other_folder") || there(t, filepath.Join(victim, "keys")) {
		t.Errorf("with a link to one that is: %d %v; want 409, other_folder, and nothing there", status, out)
	}
	if err := errors.Join(os.Remove(ws), os.Rename(ws+"2", ws)); err != nil {
		t.Fatal(err)
	}
	b.must("trust", "revoke", ws)
	if out, err := b.run("session", "undo", id); err == nil || !strings.Contains(out, "yaya trust") || there(t, filepath.Join(ws, "keys")) {
		t.Errorf("with the folder not trusted: %v, %s; want a refusal with the remedy", err, out)
	}
	b.must("trust", "--yes", ws)
	if out := b.must("session", "undo", id); !there(t, filepath.Join(ws, "keys")) {
		t.Errorf("undo says %s, want keys back", out)
	}
}

// Of the files that are not covered, those without a name are counted.
func TestUndoneFilesThatAreNotNamed(t *testing.T) {
	var out strings.Builder
	if err := showUndone(&out, undo.Undone{Folder: "/w", Files: []string{"a"}, Without: []string{"b"}, More: 7}); err != nil {
		t.Fatal(err)
	}
	if want := "undone in /w:\n  a\n  b changed, too, and is not covered\n  and 7 more\n"; out.String() != want {
		t.Errorf("it prints %q, want %q", out.String(), want)
	}
}
