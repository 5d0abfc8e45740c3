package undo_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/yaya-ai/yaya/internal/undo"
)

// between is a context that calls f when its end is asked about for the n-th time: before each file is
// compared.
type between struct {
	context.Context
	n int
	f func()
}

func (b *between) Err() error {
	if b.n--; b.n == 0 {
		b.f()
	}
	return b.Context.Err()
}

// AGT-4: undo overwrites nothing that a person saves while it runs, after it has compared the file, and then
// undoes nothing.
func TestSavedDuringUndo(t *testing.T) {
	for name, at := range map[string]string{"a changed file": "changed", "a new file": "added", "a removed file": "removed", "a file in a folder that goes": "dir"} {
		t.Run(name, func(t *testing.T) {
			save := func(w *world) { w.write(at, "mine", 0o644) }
			reset := func(w *world) {
				if at == "changed" || at == "added" {
					w.write(at, "two", 0o644)
				} else if err := os.Remove(w.dir + "/" + at); err != nil {
					t.Fatal(err)
				}
			}
			w := newWorld(t)
			for _, n := range []string{"changed", "removed", "dir/file", "zz"} {
				w.write(n, "one", 0o644)
			}
			w.change(func() {
				for _, n := range []string{"removed", "dir/file", "dir"} {
					if err := os.Remove(w.dir + "/" + n); err != nil {
						t.Fatal(err)
					}
				}
				for _, n := range []string{"added", "changed", "zz"} {
					w.write(n, "two", 0o644)
				}
			})
			var want map[string]string
			ctx := &between{context.Background(), 5, func() { save(w); want = w.all() }}
			if got, err := w.s.Undo(ctx, "s", open); !errors.Is(err, undo.ErrChanged) && !errors.Is(err, undo.ErrInTheWay) {
				t.Errorf("Undo = %+v, %v; want a refusal", got, err)
			}
			if d := differ(want, w.all()); d != "" {
				t.Errorf("after undo: %s; want the saved file, and nothing else undone", d)
			}
			reset(w)
			if got, err := w.undo(); err != nil || len(got.Files) == 0 {
				t.Errorf("when the saved file is away, Undo = %+v, %v; want the change undone", got, err)
			}
		})
	}
}
