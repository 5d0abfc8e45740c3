//go:build unix

package undo_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/internal/undo"
)

// AGT-4: undo gives folders the permissions back that a call has changed, brings those back that it has
// removed, and removes those that it has made, empty ones, too. It refuses, and changes nothing, if somebody has changed them since.
func TestFolders(t *testing.T) {
	chmod := func(name string, mode fs.FileMode) func(w *world) {
		return func(w *world) { w.must(os.Chmod(w.path(name), mode)) }
	}
	for name, tc := range map[string]struct {
		change, since func(w *world)
		files         []string // that are named
		err           error
		stays         string // a folder with what is in it
	}{
		"other permissions":         {change: chmod("d", 0o711), files: []string{"d/"}},
		"of an empty folder":        {change: chmod("empty", 0o700|fs.ModeSticky), files: []string{"empty/"}},
		"out of reach":              {change: func(w *world) { chmod("d/sub", 0)(w); chmod("d", 0)(w) }, files: []string{"d/", "d/sub/"}},
		"read-only":                 {change: func(w *world) { w.write("d/x", "new", 0o600); chmod("d", 0o555)(w) }, files: []string{"d/x", "d/"}},
		"removed":                   {change: func(w *world) { w.must(os.RemoveAll(w.path("d")), os.Remove(w.path("empty"))) }, files: []string{"d/sub/y", "d/x", "d/", "d/sub/", "empty/"}},
		"a file in its place":       {change: func(w *world) { w.must(os.RemoveAll(w.path("d"))); w.write("d", "x", 0o644) }, files: []string{"d/sub/y", "d/x", "d", "d/", "d/sub/"}},
		"renamed":                   {change: func(w *world) { w.must(os.Rename(w.path("empty"), w.path("other"))) }, files: []string{"empty/", "other/"}},
		"made":                      {change: func(w *world) { w.must(os.MkdirAll(w.path("new/er"), 0o755)); w.write("new/f", "x", 0o644) }, files: []string{"new/f", "new/", "new/er/"}},
		"made, and used since":      {change: func(w *world) { w.must(os.MkdirAll(w.path("new/er"), 0o755)) }, since: func(w *world) { w.write("new/mine", "x", 0o644) }, files: []string{"new/er/"}, stays: "new"},
		"as before since":           {change: chmod("d", 0o711), since: chmod("d", 0o750), files: []string{"d/"}},
		"changed since":             {change: func(w *world) { chmod("d", 0o711)(w); chmod("empty", 0o711)(w) }, since: chmod("empty", 0o770), err: undo.ErrChanged},
		"a file in it, since":       {change: func(w *world) { w.write("d/x", "new", 0o644); chmod("d", 0o711)(w) }, since: func(w *world) { w.write("d/x", "mine", 0o644) }, err: undo.ErrChanged},
		"another kind since":        {change: chmod("empty", 0o711), since: func(w *world) { w.must(os.Remove(w.path("empty"))); w.write("empty", "x", 0o644) }, err: undo.ErrChanged},
		"a link in its place since": {change: chmod("empty", 0o711), since: func(w *world) { w.must(os.Remove(w.path("empty")), os.Symlink("d", w.path("empty"))) }, err: undo.ErrChanged},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			defer func() { // whoever removes the folder has to get in
				for _, p := range []string{"d", "d/sub"} {
					_ = os.Chmod(w.path(p), 0o700) // it may be gone
				}
			}()
			w.write("d/x", "old", 0o644)
			w.write("d/sub/y", "old", 0o600)
			w.must(os.Mkdir(w.path("empty"), 0o700))
			for _, p := range []string{"d", "d/sub", "empty"} {
				chmod(p, 0o750)(w)
			}
			before := modes(w)
			w.change(func() { tc.change(w) })
			if tc.since != nil {
				tc.since(w)
			}
			want := before
			if tc.err != nil {
				want = modes(w)
			}
			got, err := w.undo()
			if name == "out of reach" { // root sees that the files are as before
				got.Files = slices.DeleteFunc(got.Files, func(p string) bool { return !strings.HasSuffix(p, "/") })
			}
			if !errors.Is(err, tc.err) || !slices.Equal(got.Files, tc.files) {
				t.Errorf("Undo = %q, %v; want %q, %v", got.Files, err, tc.files, tc.err)
			}
			now := modes(w)
			if (tc.stays != "") != (len(got.Remaining) > 0) {
				t.Errorf("Undo names %q, want %q", got.Remaining, tc.stays)
			}
			if tc.stays != "" {
				if now[w.path(tc.stays)] == "" {
					t.Errorf("%s is gone, want that it stays", tc.stays)
				}
				maps.DeleteFunc(now, func(p, _ string) bool { return strings.HasPrefix(p, w.path(tc.stays)) })
			}
			if !maps.Equal(now, want) {
				t.Errorf("after undo the folder has %v, want %v", now, want)
			}
		})
	}
}

// AGT-4: a folder that was empty, and in whose place something is that undo does not remove, is named, and so
// are folders in it and those with a name that is not text.
func TestFoldersThatAreNotCovered(t *testing.T) {
	for name, tc := range map[string]struct {
		before, change func(w *world)
		named          []string
	}{
		"other permissions": {
			func(w *world) { w.must(os.Mkdir(w.path("a\xff"), 0o755)) },
			func(w *world) { w.must(os.Chmod(w.path("a\xff"), 0o711)) },
			[]string{`"a\xff/"`},
		},
		"renamed": {
			func(w *world) { w.must(os.Mkdir(w.path("a\xff"), 0o755)) },
			func(w *world) { w.must(os.Rename(w.path("a\xff"), w.path("b\xff"))) },
			[]string{`"a\xff/"`, `"b\xff/"`},
		},
		"the content of a repository": {
			func(w *world) { w.write("src/a", "one", 0o644) },
			func(w *world) {
				w.write("src/a", "two", 0o644)
				w.write("src/HEAD", "ref", 0o644)
				w.must(os.Mkdir(w.path("src/objects"), 0o755), os.Mkdir(w.path("src/refs"), 0o755))
			},
			[]string{"src/a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("f", "one", 0o644)
			if f, err := os.Create(w.path("c\xff")); err != nil {
				t.Skip("the file system takes no such name")
			} else {
				w.must(f.Close())
			}
			tc.before(w)
			w.change(func() { tc.change(w); w.write("f", "two", 0o644) })
			after := w.tree()
			got, err := w.undo()
			if err != nil || !slices.Equal(got.Files, []string{"f"}) || !slices.Equal(got.Without, tc.named) {
				t.Errorf("Undo = %+v, %v; want f, without %q", got, err, tc.named)
			}
			if d := differ(after, w.tree()); d != "f: -rw-r--r-- one, want -rw-r--r-- two" {
				t.Errorf("%s; want nothing else changed", d)
			}
		})
	}
}

// AGT-4: a folder without covered files that becomes something else is back; one that the step has made stays
// with what the change does not cover in it, and is named; and so is one whose place somebody has taken.
func TestFoldersWithoutFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		before, change, since func(w *world)
		rest                  string // the path that is not as before
		why                   string
		err                   error
	}{
		"a link": {
			before: func(w *world) { w.must(os.Mkdir(w.path("d"), 0o711)) },
			change: func(w *world) { w.must(os.Remove(w.path("d")), os.Symlink("/", w.path("d"))) },
		},
		"a pipe in the place of a tree": {
			before: func(w *world) { w.must(os.MkdirAll(w.path("d/sub"), 0o711)) },
			change: func(w *world) { w.must(os.RemoveAll(w.path("d")), syscall.Mkfifo(w.path("d"), 0o600)) },
		},
		"a link of somebody else": {
			before: func(w *world) { w.must(os.MkdirAll(w.path("d/sub"), 0o711)) },
			change: func(w *world) { w.must(os.RemoveAll(w.path("d"))) },
			since:  func(w *world) { w.must(os.Symlink("/", w.path("d"))) },
			err:    undo.ErrInTheWay,
		},
		"renamed, with ignored files": {
			before: func(w *world) {
				w.write(".gitignore", "ignored\n", 0o644)
				w.write("d/ignored", "mine", 0o644)
				w.write("d/file", "x", 0o644)
			},
			change: func(w *world) { w.must(os.Rename(w.path("d"), w.path("e"))) },
			rest:   "e/", why: "ignored",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("file", "one", 0o644)
			tc.before(w)
			want := modes(w)
			w.change(func() { tc.change(w); w.write("file", "two", 0o644) })
			if tc.since != nil {
				tc.since(w)
			}
			if tc.err != nil {
				want = modes(w)
			}
			got, err := w.undo()
			if !errors.Is(err, tc.err) {
				t.Errorf("Undo = %+v, %v; want %v", got, err, tc.err)
			}
			if tc.rest != "" {
				if len(got.Remaining) != 1 || got.Remaining[0].Path != tc.rest || !strings.Contains(got.Remaining[0].Why, tc.why) || slices.Contains(got.Files, tc.rest) {
					t.Errorf("Undo = %+v, want that %s is named, with %s", got, tc.rest, tc.why)
				}
			} else if d := differ(want, modes(w)); d != "" || len(got.Remaining) > 0 {
				t.Errorf("Undo = %+v, %s; want everything as before", got, d)
			}
		})
	}
}

// AGT-4: the folders that a patch has made go with its files, those of an interrupted one, too, unless somebody
// uses them since.
func TestFoldersOfPatches(t *testing.T) {
	for name, change := range map[string]func(w *world, f func(), paths ...string){"made": (*world).change, "interrupted": (*world).crash} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("d/x", "one", 0o644)
			start := modes(w)
			patch := func() { w.write("d/e/f/new", "x", 0o644); w.write("n/new", "x", 0o644) }
			change(w, patch, "d/e/f/new", "n/new")
			got, err := w.undo()
			if d := differ(start, modes(w)); err != nil || d != "" || !slices.Contains(got.Files, "d/e/") {
				t.Errorf("Undo = %+v, %v, %s; want everything as before", got, err, d)
			}
			change(w, patch, "d/e/f/new", "n/new")
			w.write("n/mine", "x", 0o644)
			got, err = w.undo()
			if d := differ(start, modes(w)); err != nil || d != "mine is new; n is new" || len(got.Remaining) != 1 {
				t.Errorf("Undo = %+v, %v, %s; want n left, and named", got, err, d)
			}
		})
	}
}

// modes returns everything in the folder, with the modes of folders, too.
func modes(w *world) map[string]string {
	w.t.Helper()
	out := map[string]string{}
	for p, is := range w.tree() {
		info, err := os.Lstat(p)
		if err != nil {
			w.t.Fatal(err)
		}
		if out[p] = is; info.IsDir() {
			out[p] = strings.TrimSpace(is + " " + info.Mode().String())
		}
	}
	return out
}
