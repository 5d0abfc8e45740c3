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
