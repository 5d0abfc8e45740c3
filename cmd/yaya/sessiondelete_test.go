package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/undo"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// REL-7: a deleted session is gone from the running yaya, through the API and the
// command, and the audit names it; old sessions go with a command, too.
func TestSessionDeleteAndPrune(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ws := b.workspace()
	b.must("trust", "--yes", ws)
	b.in(ws, "run", "hello")
	var all []struct {
		ID string `json:"id"`
	}
	if out := b.must("session", "list", "--json"); json.Unmarshal([]byte(out), &all) != nil || len(all) != 1 {
		t.Fatalf("yaya session list says %s, want one session", out)
	}
	id := all[0].ID // nobody works with it
	b.serve()
	for name, remove := range map[string]func(id string){
		"the API": func(id string) {
			if code, said := b.v1(http.MethodDelete, "/sessions/"+id, ""); code != http.StatusNoContent {
				t.Fatalf("DELETE: %d %v", code, said)
			}
		},
		"the command": func(id string) {
			if out := b.must("session", "delete", id); !strings.Contains(out, "deleted: "+id) {
				t.Errorf("yaya session delete says %s", out)
			}
		},
	} {
		id := b.turn(ws, "hello")
		b.until(id, "", "turn_completed")
		remove(id)
		if code, _ := b.v1(http.MethodGet, "/sessions/"+id, ""); code != http.StatusNotFound {
			t.Errorf("after %s has deleted it, the session is answered with %d, want 404", name, code)
		}
		if out := b.must("audit", "--json"); !strings.Contains(out, "session_deleted") || !strings.Contains(out, id) {
			t.Errorf("after %s has deleted %s the audit is\n%s", name, id, out)
		}
	}

	if out := b.must("session", "prune", "--older", "1d"); out != "deleted: 0\n" {
		t.Errorf("yaya session prune of a day says %s", out)
	}
	if out := b.must("session", "prune", "--older", "1ms", "--dry-run"); !strings.Contains(out, id) {
		t.Errorf("yaya session prune --dry-run says %s, want %s", out, id)
	}
	if out := b.must("session", "prune", "--older", "1ms"); !strings.Contains(out, id) {
		t.Errorf("yaya session prune says %s, want %s", out, id)
	}
	if code, _ := b.v1(http.MethodGet, "/sessions/"+id, ""); code != http.StatusNotFound {
		t.Errorf("a pruned session is answered with %d, want 404", code)
	}
}

// AGT-4, REL-7: without a running yaya, too, what would undo the changes of a session goes with it.
func TestSessionDeleteForgetsChanges(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ws := b.workspace()
	for _, how := range []string{"delete", "archive"} {
		b.in(ws, "run", "--session", how, "hello")
		root, err := os.OpenRoot(filepath.Join(b.dir, "d", "undo"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = root.Close() })
		w, err := (*workspace.Guard)(nil).Open(ws)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = w.Close() })
		change, err := undo.New(root, func([]byte) bool { return false }).Begin(t.Context(), how, "shell", w)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := change.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
		kept := func() []os.DirEntry {
			all, err := os.ReadDir(root.Name())
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		if len(kept()) != 1 {
			t.Fatalf("%v is kept, want a folder", kept())
		}
		if b.must("session", how, how); len(kept()) > 0 {
			t.Errorf("after yaya session %s, %v is kept", how, kept())
		}
	}
}
