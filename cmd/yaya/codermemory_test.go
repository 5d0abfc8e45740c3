package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
)

// MIS-5: the agent of a session in a folder is told what was said there in an earlier session, as a note, if that is
// wanted; one in another folder is not, even though it is asked the same.
func TestCoderMemory(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	model := fakellm.New(fakellm.Step{Text: "noted"}, fakellm.Step{Text: "Wombat"}, fakellm.Step{Text: "nobody knows"})
	t.Cleanup(model.Close)
	b.provider(model)
	b.must("config", "set", "plugin.strategy_coder.memory", "full")
	b.serve()
	tell := func(folder, text string) string {
		dir := filepath.Join(b.dir, folder)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		status, made := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, dir))
		if status != http.StatusCreated {
			t.Fatalf("a session: %d %v", status, made)
		}
		b.tells(made["session_id"].(string), text)
		all := model.Requests()
		return fmt.Sprint(all[len(all)-1].Body)
	}
	const note, ask = "Notes from earlier conversations", "What is the release called?"
	if got := tell("one", "The release is called Wombat."); strings.Contains(got, note) {
		t.Errorf("a memory of nothing: %s", got)
	}
	if got := tell("one", ask); !strings.Contains(got, note) || !strings.Contains(got, "The user said: The release is called Wombat.") {
		t.Errorf("nothing was remembered: %s", got)
	}
	if got := tell("two", ask); strings.Contains(got, note) || strings.Contains(got, "Wombat") {
		t.Errorf("another folder's sessions were remembered: %s", got)
	}
}
