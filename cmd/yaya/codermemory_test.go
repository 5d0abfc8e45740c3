package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/fakellm"
)

// MIS-5: the agent of a session in a folder is told what was said there in an earlier session, as a note, if that is
// wanted. One in another folder is not, even though it is asked the same, nor is another strategy, which has one
// memory for all folders.
func TestCoderMemory(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	model := fakellm.New(fakellm.Step{Text: "noted"}, fakellm.Step{Text: "Wombat"}, fakellm.Step{Text: "nobody knows"}, fakellm.Step{Text: "nobody"}, fakellm.Step{Text: "nobody"}, fakellm.Step{Text: "nobody"}, fakellm.Step{Text: "forgotten"})
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

	// People see what is remembered, and remove it, while the agents work with it.
	one := filepath.Join(b.dir, "one")
	link := filepath.Join(b.dir, "link")
	if err := os.Symlink(b.dir, link); err != nil {
		t.Fatal(err)
	}
	ends := func(want int, args ...string) string {
		out, err := b.run(args...)
		if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.ExitCode() != want {
			t.Errorf("%v: %v, want the exit code %d: %s", args, err, want, out)
		}
		return out
	}
	var kept []daemon.Memory
	if err := json.Unmarshal([]byte(b.must("memory", "list", "--folder", filepath.Join(link, "one"), "--json")), &kept); err != nil {
		t.Fatal(err)
	}
	if len(kept) != 2 || !strings.Contains(kept[1].Text, "Wombat") || kept[1].Folder != one || kept[1].Session == "" {
		t.Fatalf("memories of %s: %+v, want those of two turns", one, kept)
	}
	if got := b.must("memory", "list", "--session", kept[1].Session); !strings.Contains(got, kept[1].ID) || strings.Contains(got, kept[0].ID) || !strings.Contains(got, "The user said: The release is called Wombat. The answer was: noted") {
		t.Errorf("memory list of a session:\n%s", got)
	}
	for _, wrong := range [][]string{{"memory", "forget"}, {"memory", "forget", "--all", kept[0].ID}, {"memory", "list", "--limit", "0"}, {"memory", "forget", "--folder", one, "--session", ""}, {"memory", "list", "--folder", ""}} {
		ends(2, wrong...)
	}
	all := b.completes("memory", "forget", "")
	if len(all) != 3 || !slices.Contains(all, kept[0].ID) || !slices.Contains(all, kept[1].ID) {
		t.Errorf("memory forget is completed by %q, want the three memories, %q among them", all, kept)
	}
	if more := b.completes("memory", "forget", kept[0].ID, ""); len(more) != 2 || slices.Contains(more, kept[0].ID) {
		t.Errorf("memory forget %s is completed by %q, want the two others", kept[0].ID, more)
	}
	if none := b.completes("memory", "forget", "none"); none != nil {
		t.Errorf("memory forget none is completed by %q, want nothing", none)
	}
	if out := ends(1, "memory", "forget", kept[1].ID, kept[1].ID, "mem_none"); !strings.Contains(out, "1 memory was removed of the 2 that you have named") {
		t.Errorf("memory forget of two, of which one is there: %s", out)
	}
	if out := ends(1, "memory", "forget", "--session", kept[1].Session); !strings.Contains(out, "no memory is of this folder or session") {
		t.Errorf("memory forget of what has none: %s", out)
	}
	if err := os.RemoveAll(one); err != nil {
		t.Fatal(err)
	}
	if got := b.must("memory", "forget", "--folder", filepath.Join(link, "one")); got != "1 memory was removed.\n" {
		t.Errorf("memory forget of a folder that is gone = %q, want one", got)
	}
	if got := tell("one", "coder", ask); strings.Contains(got, note) {
		t.Errorf("what was forgotten is remembered: %s", got)
	}
	if got := b.must("memory", "forget", "--all"); strings.HasPrefix(got, "0 ") {
		t.Errorf("memory forget --all = %q, want some", got)
	}
	if got := b.must("memory", "list"); !strings.HasPrefix(got, "There are no memories.") {
		t.Errorf("memory list after all were forgotten:\n%s", got)
	}
}
