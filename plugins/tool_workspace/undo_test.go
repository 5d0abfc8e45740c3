package tool_workspace_test

import (
	"os"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/undo"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// AGT-4: an undo says that it does not undo a patch before which the files could not be noted, if the patch has
// changed any.
func TestUndoOfAPatchThatIsNotNoted(t *testing.T) {
	w := newWorld(t)
	w.write("a", "one\n")
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	s := undo.New(root, func([]byte) bool { return false })
	w.p.KeepsUndo(s)
	other, err := (*workspace.Guard)(nil).Open(w.outside)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	elsewhere, err := s.Begin(t.Context(), "s", "shell", other)
	if err != nil {
		t.Fatal(err)
	}
	if res := w.patch("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n"); !res.OK || !strings.Contains(res.Text(), "cannot be undone") {
		t.Errorf("the result says %q, want that the change cannot be undone", res.Text())
	}
	if res := w.patch("--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n"); res.OK {
		t.Errorf("the patch applies twice: %q", res.Text())
	}
	if _, err := elsewhere.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	for left := range 2 {
		got, err := s.Undo(t.Context(), "s", (*workspace.Guard)(nil).Open)
		if (err == nil) != (left == 0) || left == 0 && len(got.Remaining) != 1 {
			t.Errorf("Undo %d = %+v, %v; want one change that stays", left, got, err)
		}
	}
}
