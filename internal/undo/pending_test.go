package undo_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// crash runs f in a call that never ends, because the process does.
func (w *world) crash(f func(), paths ...string) {
	w.t.Helper()
	ws, err := open(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	if _, err := w.s.Begin(w.t.Context(), "s", "tool", ws, paths...); err != nil {
		w.t.Fatal(err)
	}
	f()
	w.start()
}

// AGT-4: the changes of a call in which yaya crashes are a step, whether the next use is an undo or another call:
// undo does not take an earlier one for the last.
func TestCrashInACall(t *testing.T) {
	for name, tc := range map[string]struct {
		paths []string
		next  func(w *world)
	}{
		"a command":                   {},
		"a command, and then another": {next: func(w *world) { w.change(func() { w.write("later", "x", 0o644) }) }},
		"a patch":                     {paths: []string{"a", "b", "new"}},
		"a patch, and then a command": {paths: []string{"a", "b", "new"}, next: func(w *world) { w.change(func() { w.write("later", "x", 0o644) }) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("a", "one", 0o644)
			w.write("b", "one", 0o600)
			w.write("c", "one", 0o644)
			states := []map[string]string{w.all()}
			w.change(func() { w.write("c", "two", 0o644) })
			states = append(states, w.all())
			w.crash(func() {
				w.write("a", "two", 0o755)
				if err := os.Rename(filepath.Join(w.dir, "b"), filepath.Join(w.dir, "new")); err != nil {
					t.Fatal(err)
				}
			}, tc.paths...)
			if tc.next != nil {
				states = append(states, w.all())
				tc.next(w)
			}
			for i := len(states) - 1; i >= 0; i-- {
				got, err := w.undo()
				if d := differ(states[i], w.all()); err != nil || d != "" || got.Left != i {
					t.Errorf("Undo = %+v, %v, %s; want the state %d", got, err, d, i)
				}
			}
		})
	}
}

// AGT-4: calls that overlap when yaya crashes are one step.
func TestCrashInOverlappingCalls(t *testing.T) {
	w := newWorld(t)
	w.write("a", "one", 0o644)
	w.write("b", "one", 0o644)
	start := w.all()
	s := w.s
	w.crash(func() {
		w.write("a", "two", 0o644)
		w.crash(func() { w.write("b", "two", 0o644) }, "b")
		w.s = s
		w.crash(func() { w.write("c", "new", 0o644) })
	})
	if got, err := w.undo(); err != nil || got.Left != 0 || differ(start, w.all()) != "" {
		t.Errorf("Undo = %+v, %v, %s; want everything as before", got, err, differ(start, w.all()))
	}
}

// AGT-4: undo says that changes stay whose call was interrupted, if the state before is lost, and only then
// goes on with the change before.
func TestLostChanges(t *testing.T) {
	w := newWorld(t)
	w.write("a", "one", 0o644)
	w.write("c", "one", 0o644)
	w.change(func() { w.write("c", "two", 0o644) })
	w.crash(func() { w.write("a", "two", 0o644) })
	err := fs.WalkDir(w.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "seen.json" {
			err = w.root.WriteFile(p, []byte("{}"), 0o600)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	left := w.all()
	if got, err := w.undo(); err != nil || got.Left != 1 || len(got.Files) > 0 || len(got.Remaining) != 1 || differ(left, w.all()) != "" {
		t.Errorf("Undo = %+v, %v, %s; want that the changes stay, and that it says so", got, err, differ(left, w.all()))
	}
	if got, err := w.undo(); err != nil || len(got.Files) != 1 || got.Files[0] != "c" {
		t.Errorf("Undo = %+v, %v; want c undone", got, err)
	}
}
