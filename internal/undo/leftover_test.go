package undo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/workspace"
)

// AGT-4: the temporary files of an undo in which yaya crashed are gone with the next use, what it had moved away
// is back, and those of others stay.
func TestLeftoversOfAnUndo(t *testing.T) {
	for name, next := range map[string]func(t *testing.T, s *Store, w *workspace.Workspace){
		"an undo": func(t *testing.T, s *Store, _ *workspace.Workspace) {
			t.Helper()
			if got, err := s.Undo(t.Context(), "s", (*workspace.Guard)(nil).Open); err != nil || len(got.Files) != 4 {
				t.Errorf("Undo = %+v, %v; want four files as before", got, err)
			}
		},
		"a call": func(t *testing.T, s *Store, w *workspace.Workspace) {
			t.Helper()
			c, err := s.Begin(t.Context(), "s", "tool", w)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Done(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			s, dir, w, write := b.s, b.dir, b.w, b.write
			names := []string{"a", "b", "c"}
			for _, n := range names {
				write(n, "before "+n)
			}
			c, err := s.Begin(t.Context(), "s", "tool", w)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range append(names, "new") {
				write(n, "after "+n)
			}
			if _, err := c.Done(t.Context()); err != nil {
				t.Fatal(err)
			}
			// a is undone, b is moved away, c has not begun, new is moved away to be removed.
			temp := func(n int) string { return fmt.Sprintf(".yaya-%s%c.tmp", strings.Repeat("A", 25), 'A'+n) }
			write("a", "before a")
			for n, text := range []string{"after a", "after b", "before b", "before c", "befo", "of somebody else"} {
				write(temp(n), text)
			}
			if err := errors.Join(os.Remove(filepath.Join(dir, "b")), os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, temp(6)))); err != nil {
				t.Fatal(err)
			}
			b.undoing()
			next(t, b.s, w)
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]bool{"a": true, "b": true, "c": true, temp(5): true}
			for _, e := range entries {
				if !want[e.Name()] {
					t.Errorf("%s is left", e.Name())
				}
				delete(want, e.Name())
			}
			if len(want) > 0 {
				t.Errorf("%v are gone", want)
			}
		})
	}
}
