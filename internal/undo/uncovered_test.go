//go:build unix

package undo_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// AGT-4: undo names files that are not covered and go, not only those that change.
func TestRemovedFilesAreNamed(t *testing.T) {
	for name, text := range map[string]string{"large": strings.Repeat("x", 5<<20), ".env": "SECRET", "a\xff": "one"} {
		t.Run(fmt.Sprintf("%q", name), func(t *testing.T) {
			w := newWorld(t)
			w.write("dir/"+name, text, 0o644)
			if _, err := os.Stat(w.path("dir/" + name)); err != nil {
				t.Skip("the file system takes no such name")
			}
			w.write("dir/covered", "one", 0o644)
			w.change(func() { w.must(os.RemoveAll(w.path("dir"))) })
			got, err := w.undo()
			if err != nil || len(got.Without) != 1 || !slices.Equal(got.Files, []string{"dir/covered", "dir/"}) {
				t.Errorf("Undo = %+v, %v; want the covered file back, and the other one named", got, err)
			}
		})
	}
}

// AGT-4: names of files that are not covered are bounded, and how many more there are is told.
func TestManyFilesThatAreNotCovered(t *testing.T) {
	w := newWorld(t)
	w.change(func() {
		for i := range 130 {
			w.write(fmt.Sprintf("key%03d", i), "SECRET", 0o600)
		}
	})
	if got, err := w.undo(); err != nil || len(got.Without) != 100 || got.More != 30 || got.Without[99] != "key099" {
		t.Errorf("Undo = %+v, %v; want 100 names and 30 more", got, err)
	}
}

// AGT-4: a covered file that gets a secret, or too large, in one change and changes again in the next ones is
// as before them when all are undone. The later ones say that it is not covered.
func TestChangesAfterUncoveredContent(t *testing.T) {
	large := strings.Repeat("x", 5<<20)
	remove := func(w *world) { w.must(os.RemoveAll(w.path("d"))) }
	write := func(text string) func(w *world) {
		return func(w *world) { w.write("d/a", text, 0o644) }
	}
	for name, changes := range map[string][]func(w *world){
		"a secret, removed":            {write("SECRET"), remove},
		"a secret, and another":        {write("SECRET"), write("SECRET two"), remove},
		"large, larger and removed":    {write(large), write(large + "y"), remove},
		"large, small, and large":      {write(large), write("small"), write(large)},
		"large, gone, and there again": {write(large), remove, write("SECRET")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("d/a", "precious", 0o640)
			start := w.all()
			for _, change := range changes {
				w.change(func() { change(w) })
			}
			for i := range changes {
				if got, err := w.undo(); err != nil {
					t.Fatalf("undo %d = %+v, %v; want all undone", i+1, got, err)
				}
			}
			if d := differ(start, w.all()); d != "" {
				t.Errorf("%s; want all as before", d)
			}
		})
	}
}

// AGT-4: such a file that somebody else has changed since stays as it is.
func TestOthersChangeUncoveredContent(t *testing.T) {
	for name, between := range map[string]bool{"between the changes": true, "after them": false} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("a", "one", 0o644)
			w.change(func() { w.write("a", "SECRET", 0o644) })
			if between {
				w.write("a", "SECRET of mine", 0o644)
			}
			w.change(func() { w.write("a", "SECRET of the second change", 0o644) })
			if !between {
				w.write("a", "SECRET and precious", 0o644)
			}
			there := w.all()
			if got, err := w.undo(); err != nil || !slices.Equal(got.Without, []string{"a"}) {
				t.Errorf("Undo = %+v, %v; want a named", got, err)
			}
			if got, err := w.undo(); err == nil || !strings.Contains(err.Error(), `["a"]`) || differ(there, w.all()) != "" {
				t.Errorf("Undo = %+v, %v, %s; want that a is refused, and stays", got, err, differ(there, w.all()))
			}
		})
	}
}
