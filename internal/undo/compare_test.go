package undo

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/workspace"
)

func openDir(t *testing.T) *workspace.Workspace {
	t.Helper()
	w, err := (*workspace.Guard)(nil).Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w
}

// AGT-4: a file of another file system is not taken for a covered one with the same number.
func TestMovedFromAnotherFileSystem(t *testing.T) {
	w := openDir(t)
	if err := os.WriteFile(filepath.Join(w.Dir(), "p"), []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := w.Root().Lstat("p")
	if err != nil {
		t.Fatal(err)
	}
	id, ok := hostfile.Described(info)
	if !ok {
		t.Skip("a description does not have the number of a file")
	}
	g := &group{whole: true, first: newPicture(), began: info.ModTime().Add(24 * 3600 * 1e9)}
	g.first.ids[hostfile.ID{Dev: id.Dev + 1, Ino: id.Ino}] = true
	if !g.moved(w, "p") {
		t.Error("the file counts as made by the step, want that it was there before")
	}
	g.first.ids[id] = true
	if g.moved(w, "p") {
		t.Error("the covered file counts as one that was not covered")
	}
}
