//go:build unix

package undo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/workspace"
)

// AGT-4: an undo that ended while files were moved away loses none of them, whatever the step has changed:
// the next one restores everything, even after another call.
func TestUndoEndsWhileFilesAreAway(t *testing.T) {
	for name, change := range map[string]func(b *bench){
		"the mode alone": func(b *bench) { b.must(os.Chmod(b.path("a"), 0o755)) },
		"two files swapped": func(b *bench) {
			b.must(os.Rename(b.path("a"), b.path("x")), os.Rename(b.path("b"), b.path("a")), os.Rename(b.path("x"), b.path("b")))
		},
		"too large now": func(b *bench) {
			b.write("a", strings.Repeat("x", maxFile+1))
			b.write("b", strings.Repeat("y", maxFile+1))
		},
		"a secret": func(b *bench) { b.write("a", "SECRET") },
	} {
		for _, call := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, with a call: %v", name, call), func(t *testing.T) {
				b := newBench(t)
				b.write("a", "one")
				b.write("b", "two")
				want := b.tree()
				b.change(func() { change(b) })
				at, err := b.s.folder("s")
				b.must(err)
				b.must(at.begins(&opened{b.w, map[string]fs.FileMode{}}))
				at.close()
				b.must(os.Rename(b.path("a"), b.path(".yaya-"+strings.Repeat("A", 26)+".tmp")))
				b.crash()
				if call {
					b.change(func() {})
				}
				if got, err := b.undo(); err != nil || !slices.Equal(b.tree(), want) {
					t.Errorf("Undo = %+v, %v, and the files are %q; want %q", got, err, b.tree(), want)
				}
			})
		}
	}
}

// AGT-4: a file that a call named and that could not be kept counts as unknown after a crash, not as new.
func TestNamedInVain(t *testing.T) {
	b := newBench(t)
	b.write("a", "one")
	b.must(os.Link(b.path("a"), b.path("other")))
	b.write("z", "one")
	later(t)
	if _, err := b.begin(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.begin("a"); !errors.Is(err, workspace.ErrShared) {
		t.Fatalf("Begin of a file with two names = %v, want %v", err, workspace.ErrShared)
	}
	if _, err := b.begin("z"); err != nil {
		t.Fatal(err)
	}
	b.must(os.Remove(b.path("other")))
	b.write("z", "two")
	b.crash()
	if got, err := b.undo(); err != nil || !strings.HasPrefix(b.tree()[0], "a ") {
		t.Errorf("Undo = %+v, %v, and the files are %q; want a, which was there", got, err, b.tree())
	}
}

// later waits until the times of files that are made from now on are later than those of the files there.
func later(t *testing.T) {
	t.Helper()
	start := time.Now()
	eventually.True(t, "the times of files are later", func() bool { return time.Since(start) > 30*time.Millisecond })
}

// AGT-4: after a crash, the step is known although the device of the folder has another number.
func TestCrashBeforeAnotherMount(t *testing.T) {
	b := newBench(t)
	b.write("a", "one")
	want := b.tree()
	later(t)
	if _, err := b.begin(); err != nil {
		t.Fatal(err)
	}
	at, err := b.s.folder("s")
	b.must(err)
	defer at.close()
	var p pending
	b.must(at.load(openFile, &p))
	for _, all := range [][]identity{p.IDs, p.Rest} {
		for i := range all {
			all[i].Dev++
		}
	}
	if len(p.IDs) == 0 {
		t.Skip("the system does not tell the identity of files")
	}
	b.must(at.store(openFile, p))
	b.write("a", "two")
	b.write("new", "two")
	b.crash()
	if got, err := b.undo(); err != nil || !slices.Equal(b.tree(), want) {
		t.Errorf("Undo = %+v, %v, and the files are %q; want %q", got, err, b.tree(), want)
	}
}

// AGT-4: a group that is too long to keep is lost in a crash, and says so; undo goes on.
func TestCrashOfALongGroup(t *testing.T) {
	b := newBench(t)
	at, err := b.s.folder("s")
	b.must(err)
	defer at.close()
	here, err := whereIs(b.w)
	b.must(err)
	g := &group{dir: b.w.Dir(), at: here, tools: []string{"tool"}, first: newPicture(), looks: 2}
	for i := range maxPending / 100 {
		g.first.rest[hostfile.ID{Ino: uint64(i) + 1}] = fmt.Sprintf("%0100d", i)
	}
	b.must(at.hold(g))
	if got, err := b.undo(); err != nil || len(got.Files) > 0 || len(got.Remaining) != 1 {
		t.Errorf("Undo = %+v, %v; want that changes stay", got, err)
	}
	if _, err := b.undo(); !errors.Is(err, ErrNothing) {
		t.Errorf("the next Undo = %v, want %v", err, ErrNothing)
	}
}
