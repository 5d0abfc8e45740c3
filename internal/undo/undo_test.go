package undo_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/undo"
	"github.com/yaya-ai/yaya/internal/workspace"
)

type world struct {
	t    *testing.T
	dir  string
	s    *undo.Store
	root *os.Root // of the store
}

func newWorld(t *testing.T) *world {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	w := &world{t: t, dir: t.TempDir(), root: root}
	w.start()
	return w
}

// start opens the store, as a process does that starts.
func (w *world) start() {
	w.s = undo.New(w.root, func(data []byte) bool { return strings.Contains(string(data), "SECRET") })
}

func open(dir string) (*workspace.Workspace, error) {
	var g *workspace.Guard
	return g.Open(dir)
}

func (w *world) write(name, text string, mode fs.FileMode) {
	w.t.Helper()
	p := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(p, []byte(text), 0o600), os.Chmod(p, mode)); err != nil {
		w.t.Fatal(err)
	}
}

// change runs f as a call that names paths, or none.
func (w *world) change(f func(), paths ...string) {
	w.t.Helper()
	ws, err := open(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = ws.Close() }()
	c, err := w.s.Begin(w.t.Context(), "s", "tool", ws, paths...)
	if err != nil {
		w.t.Fatal(err)
	}
	f()
	if _, err := c.Done(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) undo() (undo.Undone, error) { return w.s.Undo(context.Background(), "s", open) }

// age waits until the times of files that are made from now on are later than those of the files there.
func (w *world) age() {
	w.t.Helper()
	start := time.Now()
	eventually.True(w.t, "the times of files are later", func() bool { return time.Since(start) > 30*time.Millisecond })
}

// all returns every file with its mode and content.
func (w *world) all() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(w.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(p)
		out[p] = fmt.Sprintf("%v %q", info.Mode(), data)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func differ(a, b map[string]string) string {
	var out []string
	for k, v := range a {
		if b[k] != v {
			out = append(out, fmt.Sprintf("%s: %.80s, want %.80s", filepath.Base(k), b[k], v))
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			out = append(out, filepath.Base(k)+" is new")
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// AGT-4: whatever a history of calls does to files, undoing it step by step leads back through
// every state, with all bytes and modes.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a history that can be repeated
		w := newWorld(t)
		names := []string{"a", "b.sh", "sub/c", "sub/deep/d", "e e", "é"}
		for _, n := range names[:3] {
			w.write(n, "start "+n, 0o644)
		}
		act := func(name string) {
			p := filepath.Join(w.dir, name)
			switch r.IntN(5) {
			case 0:
				_ = os.Remove(p) // it may not be there
			case 1:
				_ = os.Chmod(p, []fs.FileMode{0o600, 0o644, 0o755}[r.IntN(3)])
			case 2:
				to := names[r.IntN(len(names))]
				if _, err := os.Stat(p); err == nil && to != name {
					_ = os.MkdirAll(filepath.Dir(filepath.Join(w.dir, to)), 0o755)
					_ = os.Rename(p, filepath.Join(w.dir, to))
				}
			default:
				data := make([]byte, r.IntN(2000))
				for i := range data {
					data[i] = byte(r.Uint32())
				}
				w.write(name, string(data), []fs.FileMode{0o600, 0o755}[r.IntN(2)])
			}
		}
		states := []map[string]string{w.all()}
		for range 12 {
			if r.IntN(3) == 0 { // an edit
				name := names[r.IntN(len(names))]
				w.change(func() { w.write(name, fmt.Sprint("edited ", r.Uint32()), 0o644) }, name)
			} else {
				w.change(func() {
					for range 1 + r.IntN(4) {
						act(names[r.IntN(len(names))])
					}
				})
			}
			if now := w.all(); differ(states[len(states)-1], now) != "" { // only a change makes a step
				states = append(states, now)
			}
		}
		for i := len(states) - 2; i >= 0; i-- {
			got, err := w.undo()
			if err != nil || got.Left != i {
				t.Fatalf("seed %d: undoing step %d: %+v, %v; want no error and %d left", seed, i+1, got, err, i)
			}
			if d := differ(states[i], w.all()); d != "" {
				t.Fatalf("seed %d: before step %d: %s", seed, i+1, d)
			}
		}
		if _, err := w.undo(); !errors.Is(err, undo.ErrNothing) {
			t.Errorf("seed %d: undoing nothing: %v", seed, err)
		}
	}
}

// AGT-4: a file that somebody else has changed since stays as it is, and so do the others of the
// step; once it is put back, the step can be undone.
func TestChangesOfOthersStay(t *testing.T) {
	for name, other := range map[string]func(*world){
		"content": func(w *world) { w.write("a", "mine", 0o644) },
		"mode":    func(w *world) { w.write("a", "two", 0o755) },
		"gone":    func(w *world) { _ = os.Remove(filepath.Join(w.dir, "a")) },
		"a link": func(w *world) {
			_ = os.Remove(filepath.Join(w.dir, "a"))
			_ = os.Symlink("b", filepath.Join(w.dir, "a"))
		},
	} {
		w := newWorld(t)
		w.write("a", "one", 0o644)
		w.write("b", "one", 0o644)
		start := w.all()
		w.change(func() { w.write("a", "two", 0o644); w.write("b", "two", 0o644); w.write("c", "new", 0o644) })
		after := w.all()
		other(w)
		before := w.all()
		if got, err := w.undo(); err == nil || differ(before, w.all()) != "" {
			t.Errorf("%s: got %+v, %v, and %s; want a refusal, and nothing changed", name, got, err, differ(before, w.all()))
		} else if !errors.Is(err, undo.ErrChanged) || !strings.Contains(err.Error(), `["a"]`) {
			t.Errorf("%s: %v, want the name of the file", name, err)
		}
		_ = os.Remove(filepath.Join(w.dir, "a"))
		w.write("a", "two", 0o644)
		if d := differ(after, w.all()); d != "" {
			t.Fatal(d)
		}
		if _, err := w.undo(); err != nil || differ(start, w.all()) != "" {
			t.Errorf("%s: put back: %v, %s; want it undone", name, err, differ(start, w.all()))
		}
	}
}

// AGT-4: undoing touches nothing that is not covered: ignored files, even when a command changes what is
// ignored, large files and those with secrets, which are named, and Git's own.
func TestNotCovered(t *testing.T) {
	w := newWorld(t)
	w.write(".gitignore", "secret\nbuild/\n", 0o644)
	w.write("secret", "mine", 0o600)
	w.write("large", strings.Repeat("x", 5<<20), 0o644)
	w.write(".git/config", "one", 0o644)
	w.write("key", "SECRET 1", 0o644)
	w.write("a", "one", 0o644)
	w.change(func() {
		w.write(".gitignore", "a\n", 0o644) // secret is no longer ignored, and a is
		w.write("large", strings.Repeat("y", 5<<20), 0o644)
		w.write("key", "SECRET 2", 0o644)
		w.write(".git/config", "two", 0o644)
		w.write("a", "two", 0o644)
	})
	got, err := w.undo()
	if err != nil || !slices.Equal(got.Files, []string{".gitignore", "a"}) || !slices.Equal(got.Without, []string{"key", "large"}) {
		t.Errorf("got %+v, %v; want .gitignore and a, without key and large", got, err)
	}
	all := w.all()
	for name, want := range map[string]string{"secret": `"mine"`, "a": `"one"`, ".git/config": `"two"`} {
		if !strings.Contains(all[filepath.Join(w.dir, name)], want) {
			t.Errorf("%s is %s, want %s", name, all[filepath.Join(w.dir, name)], want)
		}
	}
}

// AGT-4: calls that overlap are one step.
func TestOverlappingCalls(t *testing.T) {
	w := newWorld(t)
	w.write("a", "one", 0o644)
	start := w.all()
	w.change(func() {
		w.write("b", "new", 0o644)
		w.change(func() { w.write("a", "two", 0o644) }, "a")
		if _, err := w.undo(); err == nil {
			t.Error("it undoes while a call runs")
		}
		w.write("a", "three", 0o644)
	})
	if got, err := w.undo(); err != nil || got.Left != 0 || differ(start, w.all()) != "" {
		t.Errorf("got %+v, %v, %s; want one step, and all of it undone", got, err, differ(start, w.all()))
	}
	w.change(func() {
		w.write("c", "new", 0o644)
		w.change(func() { w.write("c", "edited", 0o644) }, "c")
	})
	if got, err := w.undo(); err != nil || differ(start, w.all()) != "" {
		t.Errorf("got %+v, %v, %s; want that a file of both calls is gone", got, err, differ(start, w.all()))
	}
	if err := w.s.Forget("s"); err != nil {
		t.Fatal(err)
	}
}

// AGT-4: a snapshot of a call that overlaps an edit leaves out the edit's temporary file.
func TestTemporaryFilesOfEdits(t *testing.T) {
	const tmp = ".yaya-ABCDEFGHIJKLMNOPQRSTUVWXYZ.tmp"
	w := newWorld(t)
	w.write("a", "one", 0o644)
	start := w.all()
	w.change(func() {
		w.write(tmp, "two", 0o644)
		w.change(func() {
			if err := os.Rename(filepath.Join(w.dir, tmp), filepath.Join(w.dir, "a")); err != nil {
				t.Fatal(err)
			}
		})
	}, "a")
	if got, err := w.undo(); err != nil || !slices.Equal(got.Files, []string{"a"}) || differ(start, w.all()) != "" {
		t.Errorf("Undo = %+v, %v, %s; want a as before, and no other file", got, err, differ(start, w.all()))
	}
}
