package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
)

// MIS-4, S-32: in a session of 50 turns in a repository that changes between them, at least 90 %
// of the prompts' bytes are the beginning that a prompt shares with the one before it: the system
// prompt and the tools stay as they are, and what has changed is told at the end. The
// instructions of a folder come when a call first touches it.
func TestPromptsKeepTheirBeginning(t *testing.T) {
	t.Parallel()
	const turns = 50
	b := newBox(t)
	var steps []fakellm.Step
	for n := range turns {
		file := fmt.Sprintf("pkg%d/a.go", n%5)
		steps = append(steps,
			fakellm.Step{ToolCalls: []fakellm.Call{{Name: "read_file", Args: fmt.Sprintf(`{"path":%q,"offset":%d}`, file, n+1)}}},
			fakellm.Step{Text: fmt.Sprintf("I have read %s.", file)})
	}
	model := fakellm.New(steps...)
	t.Cleanup(model.Close)
	b.provider(model)
	ws := filepath.Join(b.dir, "ws")
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("AGENTS.md", "Rules of the whole.\n")
	for n := range 5 {
		write(fmt.Sprintf("pkg%d/a.go", n), fmt.Sprintf("package pkg%d\n\nfunc F%d() {}\n", n, n))
	}
	write("pkg3/AGENTS.md", "Rules of pkg3.\n")
	b.repository(ws)
	b.must("trust", "--yes", ws)
	b.serve()
	_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, ws))
	id, _ := out["session_id"].(string)
	last := ""
	for n := range turns {
		write(fmt.Sprintf("pkg%d/new%d.go", n%5, n), fmt.Sprintf("package pkg%d\n\nfunc New%d() {}\n", n%5, n))
		write("pkg1/a.go", fmt.Sprintf("package pkg1\n\nfunc F1() { _ = %d }\n", n))
		body := fmt.Sprintf(`{"role":"user","parts":[{"type":"text","text":"turn %d"}]}`, n)
		if status, out := b.v1("POST", "/sessions/"+id+"/messages", body); status != 202 {
			t.Fatalf("got %v, %v, want status 202", status, out)
		}
		_, last = b.until(id, last, "turn_completed")
	}
	got := model.Requests()
	shared, all := fakellm.Prefix(got)
	if share := float64(shared) / float64(all); len(got) != 2*turns || share < 0.9 {
		t.Errorf("%d requests share %.1f %% of their bytes with those before them, want %d and at least 90 %%", len(got), 100*share, 2*turns)
	}
	t.Logf("%.2f %% of %d bytes", 100*float64(shared)/float64(all), all)
	raw, err := json.Marshal(got[len(got)-1].Body["messages"])
	if err != nil {
		t.Fatal(err)
	}
	all1 := string(raw)
	for want, n := range map[string]int{"Rules of the whole.": 1, "Rules of pkg3.": 1, "pkg4/new49.go: New49": 1, "[note of yaya: workspace]": 1} {
		if c := strings.Count(all1, want); c != n {
			t.Errorf("%q is %d times in the last request, want %d", want, c, n)
		}
	}
	// It came with the first call that touched its folder, and after that call.
	if call, rules := strings.Index(all1, `pkg3/a.go`), strings.Index(all1, "Rules of pkg3."); strings.Index(all1, "turn 3") > rules || strings.Index(all1, "turn 4") < rules {
		t.Errorf("the rules of pkg3 stand at %d, its first call at %d", rules, call)
	}
}

// repository makes the workspace a Git repository.
func (b *box) repository(ws string) {
	b.t.Helper()
	for _, args := range [][]string{{"init", "-q", "-b", "main", "."}, {"config", "user.name", "x"}, {"config", "user.email", "x@example.com"}} {
		cmd := exec.CommandContext(b.t.Context(), "git", args...)
		cmd.Dir = ws
		if out, err := cmd.CombinedOutput(); err != nil {
			b.t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
}
