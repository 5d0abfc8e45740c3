//go:build unix

package undo_test

import (
	"errors"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/undo"
)

// has reports whether a regular file has a text, among others.
func (w *world) has(text string) bool {
	w.t.Helper()
	for _, is := range w.tree() {
		if strings.HasPrefix(is, "-") && strings.Contains(is, text) {
			return true
		}
	}
	return false
}

// AGT-4: a file that was not covered and that a call has moved stays where it is, whatever its times and its
// content are: it is named, or nothing is undone while it is in the place of another one.
func TestMovedFilesOfOthers(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("the system does not tell when a file was made")
	}
	ignored := func(w *world) { w.write(".gitignore", "keep/\n", 0o644); w.write("keep/p", "precious", 0o644) }
	large := func(w *world) { w.write("big", strings.Repeat("x", 5<<20)+"precious", 0o644) }
	move := func(from, to string) func(w *world) {
		return func(w *world) { w.must(os.Rename(w.path(from), w.path(to))) }
	}
	touch := func(name string, at time.Time) func(w *world) {
		return func(w *world) { w.must(os.Chtimes(w.path(name), at, at)) }
	}
	all := func(fs ...func(w *world)) func(w *world) {
		return func(w *world) {
			for _, f := range fs {
				f(w)
			}
		}
	}
	for name, tc := range map[string]struct {
		before, change func(w *world)
		named          string
		away           string // the path in whose way it is
	}{
		"over a covered file":                    {ignored, move("keep/p", "a"), "", "a"},
		"over a covered file, and changed":       {ignored, all(move("keep/p", "a"), func(w *world) { w.write("a", "precious, and more", 0o644) }), "", "a"},
		"over a covered file, with another name": {ignored, all(func(w *world) { w.must(os.Remove(w.path("a")), os.Link(w.path("keep/p"), w.path("a"))) }, func(w *world) { w.must(os.Remove(w.path("keep/p"))) }), "", "a"},
		"beside it, and changed":                 {ignored, all(move("keep/p", "p"), func(w *world) { w.write("p", "precious, and more", 0o644) }), "p", ""},
		"with a time to come":                    {all(ignored, touch("keep/p", time.Now().Add(time.Hour))), move("keep/p", "p"), "p", ""},
		"a large one with a new time":            {large, all(touch("big", time.Now().Add(time.Hour)), move("big", "a")), "", "a"},
		"a large one that becomes small":         {large, all(move("big", "b"), func(w *world) { w.write("b", "precious", 0o644) }), "b", ""},
		"the last name of one with two":          {func(w *world) { w.write("h", "precious", 0o644); w.must(os.Link(w.path("h"), w.path("h2"))) }, all(func(w *world) { w.must(os.Remove(w.path("h2"))) }, move("h", "a")), "", "a"},
		"over a file that an edit has named":     {ignored, func(w *world) { w.change(func() {}, "a"); move("keep/p", "a")(w) }, "", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("a", "mine", 0o644)
			tc.before(w)
			w.age()
			w.change(func() { tc.change(w); w.write("new", "x", 0o644) })
			got, err := w.undo()
			if !w.has("precious") {
				t.Fatalf("Undo = %+v, %v, and the content that was moved is lost", got, err)
			}
			if tc.away != "" {
				if !errors.Is(err, undo.ErrInTheWay) || !strings.Contains(err.Error(), `["`+tc.away+`"]`) {
					t.Errorf("Undo = %+v, %v; want %v with the name of %s", got, err, undo.ErrInTheWay, tc.away)
				}
				w.must(os.Rename(w.path(tc.away), w.path("elsewhere")))
				got, err = w.undo()
			}
			if err != nil || tc.named != "" && !slices.Contains(got.Without, tc.named) || !w.has("precious") || !w.has("mine") {
				t.Errorf("Undo = %+v, %v; want both contents, and that %q is named", got, err, tc.named)
			}
			if _, err := os.Lstat(w.path("new")); err == nil {
				t.Error("the new file is still there")
			}
		})
	}
}

// AGT-4: after a crash, too, a file that the call has moved out of what is not covered stays where it is.
func TestCrashAfterAMove(t *testing.T) {
	w := newWorld(t)
	w.write("a", "one", 0o644)
	w.write("big", strings.Repeat("x", 5<<20), 0o644)
	w.age()
	w.crash(func() {
		w.write("a", "two", 0o644)
		w.must(os.Rename(w.path("big"), w.path("moved")), os.Truncate(w.path("moved"), 3))
	})
	got, err := w.undo()
	if err != nil || !slices.Equal(got.Files, []string{"a"}) || !slices.Contains(got.Without, "moved") || w.all()[w.path("moved")] == "" {
		t.Errorf("Undo = %+v, %v; want a as before, and moved named and left", got, err)
	}
}
