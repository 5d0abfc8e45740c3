package session

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/event"
)

// copiedAll is a taken owner that has copied all.
type copiedAll struct{ taken }

func (*copiedAll) Copied(context.Context, string, []File) (bool, error) { return true, nil }

// CL-04: a session that is given up leaves no folder, even if a reader writes a file there while it is removed.
func TestGivenUpWhileAFileIsWritten(t *testing.T) {
	dir := t.TempDir()
	m, _ := newManager(t, dir)
	if _, err := m.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "sessions", event.Folder("s"))
	write := func(name string) {
		err := os.MkdirAll(folder, 0o700)                                                     //nolint:forbidigo // a test's own folder
		err = errors.Join(err, os.WriteFile(filepath.Join(folder, name), []byte("x"), 0o600)) //nolint:forbidigo // a test's own folder
		if err != nil {
			t.Error(err)
		}
	}
	write("events.ndjson")
	removals := 0
	m.cfg.FS = &journaltest.Faults{FS: m.cfg.FS, Before: func(s journaltest.Step) error {
		if s.Op == "remove" && s.Name == "sessions/"+event.Folder("s") {
			if removals++; removals == 2 { // the first has found the folder not empty
				write("session.json")
			}
		}
		return nil
	}}
	m.cfg.Owner = &copiedAll{taken{by: "north"}}
	if err := m.GiveUp("s"); err != nil {
		t.Errorf("GiveUp = %v, want no error", err)
	}
	if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) || removals < 3 { //nolint:forbidigo // a test's own folder
		t.Errorf("after %d removals the folder is still there (%v), want it gone", removals, err)
	}
}

// CL-04: a session that is given up has ended, although its own tape was gone before: a try before may have left
// a sub-agent, or what others keep.
func TestGivenUpAgain(t *testing.T) {
	m, _ := newManager(t, t.TempDir())
	sub := "s" + event.AgentSeparator + "a1"
	_, err := m.Open("s", "")
	if _, ferr := m.Fork("s", sub); err != nil || ferr != nil {
		t.Fatal(err, ferr)
	}
	if _, err := m.delete(start{SessionID: "s", Workspace: "/ws"}, nil); err != nil {
		t.Fatal(err)
	}
	m.cfg.Owner = &copiedAll{taken{by: "north"}}
	for _, left := range []string{"a sub-agent", "nothing"} {
		ended := ""
		m.SetEnded(func(id string) error { ended += id; return nil })
		if err := m.GiveUp("s"); err != nil || ended != "s" {
			t.Errorf("with %s left: GiveUp = %v, and %q ended; want s", left, err, ended)
		}
	}
}
