package undo_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// AGT-4: undoing deletes only files that a call has made. A file that was there, and could not be kept, is
// none of them, whatever the call has done to it.
func TestWhatWasThereStays(t *testing.T) {
	for name, tc := range map[string]struct {
		before, change func(w *world, p string) error
	}{
		"a file with another name that is replaced": {
			func(w *world, p string) error {
				w.write("mine", "one", 0o644)
				return os.Link(p, filepath.Join(filepath.Dir(p), "other"))
			},
			func(w *world, p string) error {
				w.write("tmp", "two", 0o644)
				return os.Rename(filepath.Join(w.dir, "tmp"), p)
			},
		},
		"a file whose other name goes": {
			func(_ *world, p string) error { return os.Link(p, filepath.Join(filepath.Dir(p), "other")) },
			func(_ *world, p string) error { return os.Remove(filepath.Join(filepath.Dir(p), "other")) },
		},
		"a link that becomes a file": {
			func(w *world, p string) error {
				w.write("to", "one", 0o644)
				return errors.Join(os.Remove(p), os.Symlink("to", p))
			},
			func(w *world, p string) error {
				w.write("tmp", "two", 0o644)
				return os.Rename(filepath.Join(w.dir, "tmp"), p)
			},
		},
		"a file that is no longer ignored": {
			func(w *world, _ string) error { w.write(".gitignore", "mine\n", 0o644); return nil },
			func(w *world, _ string) error {
				w.write(".gitignore", "else\n", 0o644)
				w.write("mine", "two", 0o644)
				return nil
			},
		},
		"a file in a folder that is no longer ignored": {
			func(w *world, p string) error {
				w.write(".gitignore", "dir/\n", 0o644)
				w.write("dir/mine", "one", 0o644)
				return os.Remove(p)
			},
			func(w *world, p string) error {
				w.write("dir/mine", "two", 0o644)
				return errors.Join(os.Remove(filepath.Join(w.dir, ".gitignore")), os.Symlink("dir/mine", p))
			},
		},
		"a file in a folder that was a link": {
			func(w *world, p string) error {
				w.write("real/mine", "one", 0o644)
				return errors.Join(os.Remove(p), os.Symlink("real", filepath.Join(w.dir, "dir")), os.Symlink("dir/mine", p))
			},
			func(w *world, _ string) error {
				if err := os.Remove(filepath.Join(w.dir, "dir")); err != nil {
					return err
				}
				return os.Rename(filepath.Join(w.dir, "real"), filepath.Join(w.dir, "dir"))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			p := filepath.Join(w.dir, "mine")
			w.write("mine", "one", 0o644)
			if err := tc.before(w, p); err != nil {
				t.Fatal(err)
			}
			w.change(func() {
				if err := tc.change(w, p); err != nil {
					t.Fatal(err)
				}
				w.write("new", "new", 0o644)
			})
			want, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			done, err := w.undo()
			if err != nil || !slices.Contains(done.Files, "new") {
				t.Errorf("Undo = %+v, %v; want that the new file is gone", done, err)
			}
			if got, err := os.ReadFile(p); err != nil || string(got) != string(want) {
				t.Errorf("the file is %q, %v; want %q, which was there before the call", got, err, want)
			}
		})
	}
}

// AGT-4: a name that is not text cannot be written down, so a file of that name is not covered: it is named
// when it has changed, and never taken for another one.
func TestNamesThatAreNotText(t *testing.T) {
	w := newWorld(t)
	w.write("a\xff", "one", 0o644)
	if _, err := os.Stat(filepath.Join(w.dir, "a\xff")); err != nil {
		t.Skip("the file system takes no such name")
	}
	w.write("b", "one", 0o644)
	w.change(func() {
		if err := os.Remove(filepath.Join(w.dir, "b")); err != nil {
			t.Fatal(err)
		}
		w.write("a\xff", "two and more", 0o644)
		w.write("c\xff", "new", 0o644)
	})
	got, err := w.undo()
	if err != nil || !slices.Equal(got.Files, []string{"b"}) || len(got.Without) != 2 {
		t.Errorf("got %+v, %v; want b, and two files that are not covered", got, err)
	}
	entries, err := os.ReadDir(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := "a\xff b c\xff"; strings.Join(names, " ") != want {
		t.Errorf("the folder has %q, want %q", names, want)
	}
}

// A file that a call moves out of what is not covered is not a new one: its content is nowhere else.
func TestMovedOutOfTheIgnored(t *testing.T) {
	w := newWorld(t)
	w.write(".gitignore", "kept/\n.env\n", 0o644)
	w.write(".env", "password", 0o600)
	w.write("kept/deep/file", "mine", 0o644)
	w.write("covered", "old", 0o644)
	old := time.Now().Add(-time.Hour)
	for _, p := range []string{".env", "kept/deep/file", "covered"} {
		if err := os.Chtimes(filepath.Join(w.dir, p), old, old); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(50 * time.Millisecond) // longer than the clock of files ticks
	w.change(func() {
		for from, to := range map[string]string{".env": "env", "kept": "moved", "covered": "renamed"} {
			if err := os.Rename(filepath.Join(w.dir, from), filepath.Join(w.dir, to)); err != nil {
				t.Fatal(err)
			}
		}
		w.write("new", "x", 0o644)
		if err := os.Chtimes(filepath.Join(w.dir, "new"), old, old); err != nil { // as tar does
			t.Fatal(err)
		}
	})
	got, err := w.undo()
	if err != nil || !slices.Contains(got.Without, "env") || !slices.Contains(got.Without, "moved/deep/file") {
		t.Errorf("Undo = %+v, %v; want env and moved/deep/file left as they are", got, err)
	}
	for p, want := range map[string]string{"env": "password", "moved/deep/file": "mine", "covered": "old"} {
		if data, err := os.ReadFile(filepath.Join(w.dir, p)); string(data) != want {
			t.Errorf("%s is %q, %v; want %q", p, data, err, want)
		}
	}
	for _, p := range []string{"renamed", "new"} {
		if _, err := os.Stat(filepath.Join(w.dir, p)); runtime.GOOS == "linux" && !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v, want that it is gone", p, err)
		}
	}
}
