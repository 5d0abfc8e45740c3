package undo_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/undo"
)

// AGT-4: undo changes nothing in another folder than the one that was changed: an agent that works in a
// folder above can put a link, or a folder, in its place, and so can its user. A way to the folder that goes over a link is fine.
func TestOtherFolders(t *testing.T) {
	for name, tt := range map[string]struct {
		put  func(dir, victim string) error
		want error
		says string
	}{
		"a link":         {func(dir, victim string) error { return os.Symlink(victim, dir) }, undo.ErrOtherFolder, "victim"},
		"another folder": {func(dir, victim string) error { return os.Rename(victim, dir) }, undo.ErrOtherFolder, "not the one that was changed"},
		"no folder":      {func(string, string) error { return nil }, undo.ErrGone, "sub"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			above := w.dir
			w.dir = filepath.Join(above, "link", "sub")
			victim := filepath.Join(above, "victim")
			if err := os.Symlink("real", filepath.Join(above, "link")); err != nil {
				t.Skip(err)
			}
			for _, dir := range []string{filepath.Join(above, "real", "sub"), victim} {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			w.change(func() { w.write("keys", "one", 0o600) })
			w.change(func() {
				if err := os.Remove(filepath.Join(w.dir, "keys")); err != nil {
					t.Fatal(err)
				}
			})
			moved := filepath.Join(above, "real", "moved")
			if err := errors.Join(os.Rename(w.dir, moved), tt.put(w.dir, victim)); err != nil {
				t.Fatal(err)
			}
			if got, err := w.undo(); !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Undo = %+v, %v; want %v, and %q", got, err, tt.want, tt.says)
			}
			if _, err := os.Lstat(filepath.Join(w.dir, "keys")); err == nil {
				t.Error("the file is in the other folder")
			}
			if err := errors.Join(os.RemoveAll(w.dir), os.Rename(moved, w.dir)); err != nil {
				t.Fatal(err)
			}
			if got, err := w.undo(); err != nil {
				t.Errorf("with the folder back: Undo = %+v, %v; want it undone", got, err)
			}
		})
	}
}
