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
// wanted. One in another folder is not, even though it is asked the same, nor is another strategy, which has one
// memory for all folders.
func TestCoderMemory(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	model := fakellm.New(fakellm.Step{Text: "noted"}, fakellm.Step{Text: "Wombat"}, fakellm.Step{Text: "nobody knows"}, fakellm.Step{Text: "nobody"}, fakellm.Step{Text: "nobody"}, fakellm.Step{Text: "nobody"})
	t.Cleanup(model.Close)
	b.provider(model)
	b.must("config", "set", "plugin.strategy_coder.memory", "full")
	b.must("config", "set", "plugin.strategy_react.memory", "recall")
	b.serve()
	tell := func(folder, strategy, text string) string {
		dir := filepath.Join(b.dir, folder)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if folder != "untrusted" {
			b.must("trust", "--yes", dir)
		}
		status, made := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q,"strategy":%q}`, dir, strategy))
		if status != http.StatusCreated {
			t.Fatalf("a session: %d %v", status, made)
		}
		b.tells(made["session_id"].(string), text)
		all := model.Requests()
		return fmt.Sprint(all[len(all)-1].Body)
	}
	const note, ask = "Quotes from earlier conversations", "What is the release called?"
	if got := tell("one", "coder", "The release is called Wombat."); strings.Contains(got, note) {
		t.Errorf("a memory of nothing: %s", got)
	}
	if got := tell("one", "coder", ask); !strings.Contains(got, note) || !strings.Contains(got, "The user said: The release is called Wombat.") {
		t.Errorf("nothing was remembered: %s", got)
	}
	for _, other := range [][2]string{{"two", "coder"}, {"two", "react"}, {"one", "react"}, {"untrusted", "coder"}} {
		if got := tell(other[0], other[1], ask); strings.Contains(got, "is called Wombat") || other[1] == "coder" && strings.Contains(got, note) {
			t.Errorf("%v: what was said in a folder has left it: %s", other, got)
		}
	}
}
