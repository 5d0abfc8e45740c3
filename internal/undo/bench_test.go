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

// bench is a workspace with the store of a process that ends without a word.
type bench struct {
	t    *testing.T
	dir  string
	root *os.Root
	s    *Store
	w    *workspace.Workspace
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	var err error
	if b.root, err = os.OpenRoot(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.root.Close() })
	if b.w, err = (*workspace.Guard)(nil).Open(b.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.w.Close() })
	b.crash()
	return b
}

// crash is the end of the process, and the start of another one.
func (b *bench) crash() {
	b.s = New(b.root, func(data []byte) bool { return strings.Contains(string(data), "SECRET") })
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

func (b *bench) must(errs ...error) {
	b.t.Helper()
	if err := errors.Join(errs...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) write(name, text string) { b.must(os.WriteFile(b.path(name), []byte(text), 0o644)) }

func (b *bench) begin(paths ...string) (*Change, error) {
	return b.s.Begin(b.t.Context(), "s", "tool", b.w, paths...)
}

func (b *bench) change(f func()) {
	b.t.Helper()
	c, err := b.begin()
	b.must(err)
	f()
	_, err = c.Done(b.t.Context())
	b.must(err)
}

func (b *bench) undo() (Undone, error) {
	return b.s.Undo(b.t.Context(), "s", (*workspace.Guard)(nil).Open)
}

// undoing has the last step be one in whose undo yaya has ended.
func (b *bench) undoing() {
	b.t.Helper()
	at, err := b.s.folder("s")
	b.must(err)
	defer at.close()
	steps, err := at.steps()
	b.must(err)
	steps[len(steps)-1].Undoing = true
	b.must(at.store(stepsFile, steps))
	b.crash()
}

// tree returns what the files are.
func (b *bench) tree() (all []string) {
	b.t.Helper()
	entries, err := os.ReadDir(b.dir)
	b.must(err)
	for _, e := range entries {
		info, err := e.Info()
		b.must(err)
		data, err := os.ReadFile(b.path(e.Name()))
		b.must(err)
		all = append(all, fmt.Sprintf("%s %v %.9s %d", e.Name(), info.Mode(), data, len(data)))
	}
	return all
}
