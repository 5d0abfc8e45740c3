//go:build unix

package undo_test

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/undo"
)

// tree returns everything in the folder: its kind, the mode of a file, and its content or target.
func (w *world) tree() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(w.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		out[p] = info.Mode().Type().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(p)
			out[p] = info.Mode().String() + " " + string(data)
			return err
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(p)
			out[p] += " " + to
			return err
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func (w *world) must(errs ...error) {
	w.t.Helper()
	if err := errors.Join(errs...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// kinds are changes of what is at the path of a file f, or of a folder d.
var kinds = map[string]func(w *world){
	"a file becomes a folder": func(w *world) {
		w.must(os.Remove(w.path("f")))
		w.write("f/in", "q", 0o644)
	},
	"a file becomes an empty folder": func(w *world) {
		w.must(os.Remove(w.path("f")), os.Mkdir(w.path("f"), 0o700))
	},
	"a file becomes a tree of all kinds": func(w *world) {
		w.must(os.Remove(w.path("f")))
		w.write("f/sub/in", "q", 0o600)
		w.must(os.MkdirAll(w.path("f/empty/er"), 0o755), os.Symlink("../g", w.path("f/link")), os.Symlink("/", w.path("f/sub/out")), syscall.Mkfifo(w.path("f/pipe"), 0o600))
	},
	"a file moves into the folder in its place": func(w *world) {
		w.must(os.Rename(w.path("f"), w.path("tmp")), os.Mkdir(w.path("f"), 0o755), os.Rename(w.path("tmp"), w.path("f/f")), os.Rename(w.path("g"), w.path("f/g")))
	},
	"a folder becomes a file": func(w *world) {
		w.must(os.RemoveAll(w.path("d")))
		w.write("d", "x", 0o644)
	},
	"a folder in a folder becomes a file": func(w *world) {
		w.must(os.RemoveAll(w.path("d/deep")))
		w.write("d/deep", "x", 0o644)
		w.write("d/x", "changed", 0o644)
	},
	"a folder becomes a link": func(w *world) {
		w.must(os.RemoveAll(w.path("d")), os.Symlink("/", w.path("d")))
	},
	"a folder becomes a link to a copy": func(w *world) {
		w.must(os.Rename(w.path("d"), w.path("e")), os.Symlink("e", w.path("d")))
	},
	"a folder becomes a pipe": func(w *world) {
		w.must(os.RemoveAll(w.path("d")), syscall.Mkfifo(w.path("d"), 0o600))
	},
	"a file becomes a link": func(w *world) {
		w.must(os.Remove(w.path("f")), os.Symlink("g", w.path("f")))
	},
	"a file becomes a link to nothing": func(w *world) {
		w.must(os.Remove(w.path("f")), os.Symlink("/nowhere/at/all", w.path("f")))
	},
	"a file becomes a link to what is not text": func(w *world) {
		w.must(os.Remove(w.path("f")), os.Symlink("a\xff", w.path("f")))
	},
	"a file loses the rights of its owner": func(w *world) { w.must(os.Chmod(w.path("s"), 0o755)) },
	"a file keeps the rights of its owner": func(w *world) {
		w.write("s", "changed", 0o644)
		w.must(os.Chmod(w.path("s"), 0o755|fs.ModeSetuid))
	},
	"a file gets the rights of its owner": func(w *world) { w.must(os.Chmod(w.path("f"), 0o640|fs.ModeSetuid)) },
	"a file becomes a pipe": func(w *world) {
		w.must(os.Remove(w.path("f")), syscall.Mkfifo(w.path("f"), 0o600))
	},
	"a file becomes a large one": func(w *world) { w.write("f", strings.Repeat("x", 5<<20), 0o640) },
	"a file becomes a huge one":  func(w *world) { w.must(os.Truncate(w.path("f"), 20<<20)) },
	"a file gets a secret":       func(w *world) { w.write("f", "SECRET", 0o640) },
	"a file cannot be read": func(w *world) {
		w.write("f", "changed", 0o640)
		w.must(os.Chmod(w.path("f"), 0))
	},
	"a file only cannot be read": func(w *world) { w.must(os.Chmod(w.path("f"), 0)) },
	"a file and a folder change places": func(w *world) {
		w.must(os.Rename(w.path("d"), w.path("tmp")), os.Rename(w.path("f"), w.path("d")), os.Rename(w.path("tmp"), w.path("f")))
	},
}

func newKinds(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.write("f", "file", 0o640)
	w.write("g", "other", 0o644)
	w.write("s", "rights", 0o755)
	w.must(os.Chmod(w.path("s"), 0o755|fs.ModeSetuid))
	w.write("d/x", "x", 0o600)
	w.write("d/y", "y", 0o755)
	w.write("d/deep/z", "z", 0o644)
	return w
}

// AGT-4: a path that changes its kind, and what was there, is as before.
func TestChangedKinds(t *testing.T) {
	for name, change := range kinds {
		t.Run(name, func(t *testing.T) {
			w := newKinds(t)
			start := w.tree()
			w.change(func() { change(w) })
			got, err := w.undo()
			after := w.tree()
			if name == "a folder becomes a link to a copy" { // undo leaves empty folders
				delete(after, w.path("e"))
				delete(after, w.path("e/deep"))
			}
			if d := differ(start, after); err != nil || len(got.Without) > 0 || d != "" {
				t.Errorf("Undo = %+v, %v, %s; want everything as before", got, err, d)
			}
		})
	}
}

// AGT-4: undo removes nothing that others have put there since, or that was elsewhere before, and then changes
// nothing else; the change can be undone when that is gone.
func TestChangedKindsOfOthers(t *testing.T) {
	tree := kinds["a file becomes a tree of all kinds"]
	for name, c := range map[string]struct {
		before, change, since, away func(w *world)
		err                         error
		named                       string
	}{
		"a new file in the folder": {change: tree, err: undo.ErrInTheWay, named: `["f/sub/mine"]`,
			since: func(w *world) { w.write("f/sub/mine", "mine", 0o644) },
			away:  func(w *world) { w.must(os.Remove(w.path("f/sub/mine"))) }},
		"a new empty folder": {change: tree, err: undo.ErrInTheWay, named: `["f/mine"]`,
			since: func(w *world) { w.must(os.Mkdir(w.path("f/mine"), 0o755)) },
			away:  func(w *world) { w.must(os.Remove(w.path("f/mine"))) }},
		"a file in the folder is changed": {change: tree, err: undo.ErrChanged, named: `["f/sub/in"]`,
			since: func(w *world) { w.write("f/sub/in", "mine", 0o600) },
			away:  func(w *world) { w.write("f/sub/in", "q", 0o600) }},
		"a file in the folder gets another name": {change: tree, err: undo.ErrChanged, named: `["f/sub/in"], which have other names (hard links)`,
			since: func(w *world) { w.must(os.Link(w.path("f/sub/in"), w.path("mine"))) },
			away:  func(w *world) { w.must(os.Remove(w.path("mine"))) }},
		"a link in the folder leads elsewhere": {change: tree, err: undo.ErrChanged, named: `["f/link"]`,
			since: func(w *world) { w.must(os.Remove(w.path("f/link")), os.Symlink("mine", w.path("f/link"))) },
			away:  func(w *world) { w.must(os.Remove(w.path("f/link"))) }},
		"the link leads elsewhere": {change: kinds["a file becomes a link"], err: undo.ErrChanged, named: `["f"]`,
			since: func(w *world) { w.must(os.Remove(w.path("f")), os.Symlink("mine", w.path("f"))) },
			away:  func(w *world) { w.must(os.Remove(w.path("f")), os.Symlink("g", w.path("f"))) }},
		"the link is a file": {change: kinds["a file becomes a link"], err: undo.ErrInTheWay, named: `["f"]`,
			since: func(w *world) { w.must(os.Remove(w.path("f"))); w.write("f", "mine", 0o640) },
			away:  func(w *world) { w.must(os.Remove(w.path("f"))) }},
		"the file in the place of the folder is changed": {change: kinds["a folder becomes a file"], err: undo.ErrChanged, named: `["d"]`,
			since: func(w *world) { w.write("d", "mine", 0o644) },
			away:  func(w *world) { w.write("d", "x", 0o644) }},
		"a removed file is a link": {err: undo.ErrInTheWay, named: `["f"]`,
			change: func(w *world) { w.must(os.Remove(w.path("f"))) },
			since:  func(w *world) { w.must(os.Symlink("g", w.path("f"))) },
			away:   func(w *world) { w.must(os.Remove(w.path("f"))) }},
		"a file that is not covered in the folder": {err: undo.ErrInTheWay, named: `["f/key"]`,
			before: func(w *world) { w.write("key", "SECRET", 0o600) },
			change: func(w *world) {
				w.must(os.Remove(w.path("f")), os.Mkdir(w.path("f"), 0o755), os.Rename(w.path("key"), w.path("f/key")))
			},
			since: func(*world) {},
			away:  func(w *world) { w.must(os.Rename(w.path("f/key"), w.path("key"))) }},
		"a large file in the place of a folder": {err: undo.ErrInTheWay, named: `["d"]`,
			before: func(w *world) { w.write("large", strings.Repeat("x", 5<<20), 0o600) },
			change: func(w *world) {
				w.must(os.RemoveAll(w.path("d")), os.Rename(w.path("large"), w.path("d")))
			},
			since: func(*world) {},
			away:  func(w *world) { w.must(os.Rename(w.path("d"), w.path("large"))) }},
		"a large file in the place of a file": {err: undo.ErrInTheWay, named: `["f"]`,
			before: func(w *world) {
				w.write("large", strings.Repeat("x", 5<<20), 0o600)
				time.Sleep(100 * time.Millisecond)
			},
			change: func(w *world) { w.must(os.Rename(w.path("large"), w.path("f"))) },
			since:  func(*world) {},
			away:   func(w *world) { w.must(os.Rename(w.path("f"), w.path("large"))) }},
		"a file with a secret is changed": {err: undo.ErrChanged, named: `["f"]`,
			change: func(w *world) { w.write("f", "SECRET", 0o640) },
			since:  func(w *world) { w.write("f", "SECRET, and mine", 0o640) },
			away:   func(w *world) { w.write("f", "file", 0o640) }},
		"a link that was there before": {err: undo.ErrInTheWay, named: `["f"]`,
			before: func(w *world) {
				w.must(os.Symlink("g", w.path("link")))
				time.Sleep(100 * time.Millisecond) // more than the times of files are coarse
			},
			change: func(w *world) { w.must(os.Rename(w.path("link"), w.path("f"))) },
			since:  func(*world) {},
			away:   func(w *world) { w.must(os.Rename(w.path("f"), w.path("link"))) }},
		"a pipe that was there before, with a new time": {err: undo.ErrInTheWay, named: `["f"]`,
			before: func(w *world) {
				w.must(syscall.Mkfifo(w.path("pipe"), 0o600))
				w.age()
			},
			change: func(w *world) {
				at := time.Now().Add(time.Hour)
				w.must(os.Chtimes(w.path("pipe"), at, at), os.Rename(w.path("pipe"), w.path("f")))
			},
			since: func(*world) {},
			away:  func(w *world) { w.must(os.Rename(w.path("f"), w.path("pipe"))) }},
		"a repository": {err: undo.ErrInTheWay, named: `["f/.git"]`,
			change: func(w *world) { w.must(os.Remove(w.path("f"))); w.write("f/.git/config", "one", 0o644) },
			since:  func(*world) {},
			away:   func(w *world) { w.must(os.RemoveAll(w.path("f/.git"))) }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newKinds(t)
			if c.before != nil {
				c.before(w)
			}
			start := w.tree()
			w.change(func() { c.change(w); w.write("g", "changed", 0o600) })
			c.since(w)
			there := w.tree()
			got, err := w.undo()
			if d := differ(there, w.tree()); !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.named) || d != "" {
				t.Errorf("Undo = %+v, %v, %s; want %v, %s, and nothing changed", got, err, d, c.err, c.named)
			}
			c.away(w)
			if got, err := w.undo(); err != nil || differ(start, w.tree()) != "" {
				t.Errorf("Undo = %+v, %v, %s; want everything as before", got, err, differ(start, w.tree()))
			}
		})
	}
}

// AGT-4: the step before one that gives a file another name can be undone when that name is gone, and the
// error says so.
func TestOtherNames(t *testing.T) {
	w := newWorld(t)
	start := w.tree()
	w.change(func() { w.write("n", "new", 0o644) })
	w.change(func() { w.must(os.Link(w.path("n"), w.path("n2"))) })
	if got, err := w.undo(); err != nil || !slices.Equal(got.Without, []string{"n"}) {
		t.Errorf("Undo = %+v, %v; want that n is not covered", got, err)
	}
	if got, err := w.undo(); !errors.Is(err, undo.ErrChanged) || !strings.Contains(err.Error(), `["n"], which have other names (hard links)`) {
		t.Errorf("Undo = %+v, %v; want the other name of n as the reason", got, err)
	}
	w.must(os.Remove(w.path("n2")))
	if got, err := w.undo(); err != nil || differ(start, w.tree()) != "" {
		t.Errorf("Undo = %+v, %v, %s; want everything as before", got, err, differ(start, w.tree()))
	}
}

// AGT-4: the content of a file that is changed and gets another name in one call is not lost.
func TestChangedAndOtherName(t *testing.T) {
	w := newKinds(t)
	start := w.tree()
	w.change(func() { w.write("f", "changed", 0o640); w.must(os.Link(w.path("f"), w.path("n2"))) })
	if got, err := w.undo(); !errors.Is(err, undo.ErrChanged) || !strings.Contains(err.Error(), `["f"], which have other names (hard links)`) {
		t.Errorf("Undo = %+v, %v; want the other name of f as the reason", got, err)
	}
	w.must(os.Remove(w.path("n2")))
	if got, err := w.undo(); err != nil || differ(start, w.tree()) != "" {
		t.Errorf("Undo = %+v, %v, %s; want everything as before", got, err, differ(start, w.tree()))
	}
}

// AGT-4: whatever one call does to files, folders, links and pipes, undo restores every file, or refuses and
// changes nothing.
func TestRandomKinds(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a history that can be repeated
		w := newKinds(t)
		start := w.tree()
		names := []string{"f", "g", "d", "d/x", "d/deep", "d/deep/z", "f/in", "f/in/er", "new"}
		pick := func() string { return w.path(names[r.IntN(len(names))]) }
		w.change(func() {
			for range 2 + r.IntN(12) { // many of these fail, because of the others
				p := pick()
				if info, err := os.Lstat(filepath.Dir(p)); err != nil || !info.IsDir() {
					continue // os.RemoveAll would wait for a pipe
				}
				switch r.IntN(7) {
				case 0, 1:
					_ = os.RemoveAll(p)
				case 2:
					_ = os.MkdirAll(p, 0o755)
				case 3:
					_ = os.Symlink([]string{"f", "d", "../g", "/nowhere/at/all"}[r.IntN(4)], p)
				case 4:
					_ = syscall.Mkfifo(p, 0o600)
				case 5:
					_ = os.Rename(p, pick())
				default:
					if info, err := os.Lstat(p); err != nil || info.Mode().IsRegular() {
						_ = os.WriteFile(p, []byte{byte(r.IntN(256))}, 0o600)
					}
				}
			}
		})
		there := w.tree()
		got, err := w.undo()
		after := w.tree()
		if err != nil {
			if d := differ(there, after); !errors.Is(err, undo.ErrNothing) || differ(start, onlyFiles(start, there)) != "" || d != "" {
				t.Errorf("seed %d: Undo = %+v, %v, %s; want what nobody else has changed undone", seed, got, err, d)
			}
			continue
		}
		if d := differ(start, onlyFiles(start, after)); d != "" || len(got.Without) > 0 {
			t.Errorf("seed %d: Undo = %+v, %s; want every file as before", seed, got, d)
		}
	}
}

// onlyFiles returns a tree without the links, pipes and folders that start does not have: undo does not cover
// them where no file was.
func onlyFiles(start, tree map[string]string) map[string]string {
	out := map[string]string{}
	for p, s := range tree {
		if _, there := start[p]; there || strings.HasPrefix(s, "-rw") {
			out[p] = s
		}
	}
	return out
}

// AGT-4: files that somebody has restored by hand are as before, and undo restores the others; so it does when
// an earlier undo was interrupted.
func TestPartlyRestored(t *testing.T) {
	w := newKinds(t)
	start := w.tree()
	w.change(func() { kinds["a folder becomes a file"](w); kinds["a file becomes a tree of all kinds"](w) })
	w.must(os.Remove(w.path("d")), os.RemoveAll(w.path("f/sub")))
	w.write("d/x", "x", 0o600)
	if got, err := w.undo(); err != nil || differ(start, w.tree()) != "" {
		t.Errorf("Undo = %+v, %v, %s; want everything as before", got, err, differ(start, w.tree()))
	}
}

// AGT-4: undoing a change of a file's content leaves the bits that running it gives.
func TestRightsOfProgramsStay(t *testing.T) {
	w := newWorld(t)
	mode := fs.ModeSetuid | fs.ModeSetgid | 0o755
	w.write("program", "one", mode)
	start := w.tree()
	if !strings.HasPrefix(start[w.path("program")], "ug") {
		t.Skip("the file system has no such bits")
	}
	w.change(func() { w.write("program", "two", mode) })
	if got, err := w.undo(); err != nil || differ(start, w.tree()) != "" {
		t.Errorf("Undo = %+v, %v, %s; want everything as before", got, err, differ(start, w.tree()))
	}
}
