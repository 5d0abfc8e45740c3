package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asked is an ask as a client of the session API gets it.
type asked struct {
	Call   string          `json:"tool_call_id"`
	Tool   string          `json:"tool_name"`
	Params json.RawMessage `json:"input"`
	Brief  string          `json:"brief"`
}

// turn opens a session in a folder and says something.
func (b *box) turn(ws, say string) (id string) {
	b.t.Helper()
	b.must("trust", "--yes", ws)
	_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, ws))
	id, _ = out["session_id"].(string)
	b.tell(id, say)
	return id
}

// tell sends a message to a session.
func (b *box) tell(id, text string) {
	b.t.Helper()
	if status, out := b.v1("POST", "/sessions/"+id+"/messages", fmt.Sprintf(`{"role":"user","parts":[{"type":"text","text":%q}]}`, text)); status != 202 {
		b.t.Fatalf("a message to %s: got %d, %v; want status 202", id, status, out)
	}
}

// ask waits for the next ask of a session.
func (b *box) ask(id, after string) (a asked, last string) {
	b.t.Helper()
	events, last := b.until(id, after, "approval_requested")
	var ev struct {
		Data asked `json:"data"`
	}
	if err := json.Unmarshal(events[len(events)-1].Data, &ev); err != nil {
		b.t.Fatal(err)
	}
	return ev.Data, last
}

func (b *box) decide(id string, a asked, action string) {
	b.t.Helper()
	if status, out := b.v1("POST", "/sessions/"+id+"/approve", fmt.Sprintf(`{"tool_call_id":%q,"action":%q}`, a.Call, action)); status != 200 {
		b.t.Fatalf("%s of %s: got %d, %v; want status 200", action, a.Call, status, out)
	}
}

// outputs are the texts of a session's tool results.
func (b *box) outputs(id, after string) (all, last string) {
	b.t.Helper()
	events, last := b.until(id, after, "turn_completed")
	for _, ev := range events {
		if ev.Name == "tool_call_completed" {
			all += string(ev.Data) + "\n"
		}
	}
	return all, last
}

func there(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Stat(%s) = %v, want no error, or %v", path, err, fs.ErrNotExist)
	}
	return err == nil
}

// patches has the model that is built in apply a patch, and be done, for each of the
// things that are said.
func (b *box) patches(patches map[string]string) {
	b.t.Helper()
	var scenarios []map[string]any
	for say, patch := range patches {
		call := map[string]any{"name": "apply_patch", "args": map[string]string{"patch": patch}}
		scenarios = append(scenarios, map[string]any{"match": "^" + say, "steps": []any{map[string]any{"tool_calls": []any{call}}, map[string]any{"text": "done"}}})
	}
	raw, err := json.Marshal(scenarios)
	if err != nil {
		b.t.Fatal(err)
	}
	b.script(string(raw))
}

// numbered is a patch of the file that every workspace has.
const numbered = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+1\n two\n"

// SEC-6, R18: an ask for verify shows the commands, and those run, although AGENTS.md
// has others by the time somebody has agreed.
func TestVerifyRunsWhatItsAskShows(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ws := b.workspace()
	agents := func(command string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(ws, "AGENTS.md"), []byte("# Verify\n\n```\n"+command+"\n```\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(ws, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	agents("echo SHOWN && true")
	b.patches(map[string]string{"number": numbered})
	b.must("config", "set", "plugin.tool_workspace.patch_review", `"auto"`) // so that verify asks
	b.serve()
	id := b.turn(ws, "number it")
	a, last := b.ask(id, "")
	if a.Tool != "verify" || !strings.Contains(a.Brief, "echo SHOWN && true") {
		t.Errorf("asked about %+v", a)
	}
	var shown struct {
		Commands []string
		Cwd      string
	}
	if err := json.Unmarshal(a.Params, &shown); err != nil || fmt.Sprint(shown.Commands) != "[echo SHOWN && true]" || !there(t, shown.Cwd) {
		t.Errorf("shown %s, want the commands and the folder (%v)", a.Params, err)
	}
	agents("echo OTHER; touch evil")
	b.decide(id, a, "approve")
	if out, _ := b.outputs(id, last); there(t, filepath.Join(ws, "evil")) || !strings.Contains(out, "SHOWN\\n") || strings.Contains(out, "OTHER") {
		t.Errorf("another command ran than was shown: %s", out)
	}
}

// SEC-3, SEC-6: checks that change during a turn are asked about with the folder that
// brings them, before anything of it runs; an answer to what was shown does not agree to
// what has come since.
func TestChangedChecksAreAskedAbout(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]string{"as shown": "touch checked", "changed again": "touch evil"} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			ws := b.workspace()
			agents := func(command string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(ws, "AGENTS.md"), []byte("# Verify\n- `"+command+"`\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			agents("touch original")
			b.patches(map[string]string{"number": numbered})
			b.serve()
			id := b.turn(ws, "number it")
			a, last := b.ask(id, "")
			agents("touch checked")
			b.decide(id, a, "approve")
			if a, last = b.ask(id, last); a.Tool != "folder_trust" || !strings.Contains(string(a.Params), `"added":[{"kind":"check","runs":"touch checked"}]`) {
				t.Errorf("asked about %s with %s, want the folder with its new check", a.Tool, a.Params)
			}
			agents(later)
			b.decide(id, a, "approve")
			b.outputs(id, last)
			for file, want := range map[string]bool{"original": false, "evil": false, "checked": name == "as shown"} {
				if got := there(t, filepath.Join(ws, file)); got != want {
					t.Errorf("%s has run: %v, want %v", file, got, want)
				}
			}
		})
	}
}

// SEC-7: with patch_review auto, what a model has written does not run before somebody
// was asked: under any name, in any session of the folder, and after a restart.
func TestNothingUnseenIsVerified(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ file, text, tool string }{
		"another Makefile":    {"GNUmakefile", "test:", "apply_patch"},
		"what the check runs": {"check.sh", "#!/bin/sh", "verify"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBox(t)
			ws := b.workspace()
			evil := filepath.Join(ws, "evil")
			if err := errors.Join(os.Mkdir(filepath.Join(ws, ".git"), 0o700), os.WriteFile(filepath.Join(ws, "Makefile"), []byte("test:\n\t@test ! -f check.sh || sh check.sh\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			b.patches(map[string]string{"create": "--- /dev/null\n+++ b/" + tt.file + "\n@@ -0,0 +1,2 @@\n+" + tt.text + "\n+\ttouch evil\n", "number": numbered})
			b.must("config", "set", "plugin.tool_workspace.patch_review", `"auto"`)
			daemon := b.serve()
			id := b.turn(ws, "create it")
			a, last := b.ask(id, "")
			if a.Tool != tt.tool || !strings.Contains(string(a.Params), tt.file) {
				t.Errorf("asked about %s with %s, want %s and the name of the file", a.Tool, a.Params, tt.tool)
			}
			b.decide(id, a, "deny")
			b.outputs(id, last)
			if there(t, evil) {
				t.Fatal("what nobody has agreed to ran")
			}
			if tt.tool != "verify" {
				return
			}
			// Another session, of the next process, whose own change was agreed to.
			_ = daemon.Process.Kill()
			gone(t, daemon)
			b.must("config", "set", "plugin.tool_workspace.patch_review", `"request"`)
			b.serve()
			id = b.turn(ws, "number it")
			if a, last = b.ask(id, ""); a.Tool != "apply_patch" || !strings.Contains(string(a.Params), "a.txt") {
				t.Fatalf("asked about %s with %s, want the patch of a.txt", a.Tool, a.Params)
			}
			b.decide(id, a, "approve")
			if a, last = b.ask(id, last); a.Tool != "verify" || !strings.Contains(string(a.Params), "check.sh") || there(t, evil) {
				t.Errorf("asked about %s with %s, want verify and check.sh", a.Tool, a.Params)
			}
			b.decide(id, a, "approve")
			if out, _ := b.outputs(id, last); !there(t, evil) {
				t.Errorf("what was agreed to did not run: %s", out)
			}
		})
	}
}
