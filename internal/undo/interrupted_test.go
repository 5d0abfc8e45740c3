//go:build unix

package undo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
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
				b.undoing()
				b.must(os.Rename(b.path("a"), b.path(".yaya-"+strings.Repeat("A", 26)+".tmp")))
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

// AGT-4: an undo that ended between the two names of a file leaves it with one, and no file of its own.
func TestUndoEndsBetweenNames(t *testing.T) {
	temp := func(c string) string { return ".yaya-" + strings.Repeat(c, 26) + ".tmp" }
	for name, tc := range map[string]struct{ change, end func(b *bench) }{
		"the new content has its name": {
			func(b *bench) { b.write("a", "two") },
			func(b *bench) {
				b.must(os.Rename(b.path("a"), b.path(temp("A"))))
				b.write("a", "one")
				b.must(os.Link(b.path("a"), b.path(temp("B"))))
			},
		},
		"what was moved away is back": {
			func(b *bench) { b.write("a", "two") },
			func(b *bench) { b.must(os.Link(b.path("a"), b.path(temp("A")))) },
		},
		"a folder is where the step had made a file": {
			func(b *bench) {
				b.must(os.RemoveAll(b.path("dir")))
				b.write("dir", "two")
			},
			func(b *bench) {
				b.must(os.Rename(b.path("dir"), b.path(temp("A"))), os.Mkdir(b.path("dir"), 0o755))
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write("a", "one")
			b.must(os.Mkdir(b.path("dir"), 0o755))
			b.write("dir/file", "one")
			b.change(func() { tc.change(b) })
			b.undoing()
			tc.end(b)
			if got, err := b.undo(); err != nil {
				t.Errorf("Undo = %+v, %v", got, err)
			}
			names, err := filepath.Glob(b.path("*"))
			b.must(err)
			if len(names) != 2 {
				t.Errorf("there are %q, want a and dir", names)
			}
			if c, err := state(b.w, "a"); err != nil || c == nil || c.SHA != sum([]byte("one")) {
				t.Errorf("a: %+v, %v; want its first content under one name", c, err)
			}
		})
	}
}

// AGT-4: an undo that ended half-way goes on when its folder is used again, whatever the session has done in
// other folders since.
func TestUndoEndsBeforeAnotherFolder(t *testing.T) {
	b := newBench(t)
	b.write("a", "one")
	want := b.tree()
	b.change(func() { b.write("a", "two") })
	b.undoing()
	b.must(os.Rename(b.path("a"), b.path(".yaya-"+strings.Repeat("A", 26)+".tmp")))
	here, w := b.w, t.TempDir()
	for i := range 2 {
		var err error
		b.w, err = (*workspace.Guard)(nil).Open(w)
		b.must(err)
		b.change(func() { b.must(os.WriteFile(filepath.Join(w, "a"), []byte{'0' + byte(i)}, 0o600)) })
		b.must(b.w.Close())
	}
	b.w = here
	for left := 2; left >= 0; left-- {
		if got, err := b.undo(); err != nil || got.Left != left {
			t.Fatalf("Undo = %+v, %v; want %d left", got, err, left)
		}
	}
	if !slices.Equal(b.tree(), want) {
		t.Errorf("the files are %q, want %q", b.tree(), want)
	}
}

// AGT-4: an undo opens a closed folder only when that is written down: it is closed again if yaya ends.
func TestUndoEndsWithOpenFolders(t *testing.T) {
	b := newBench(t)
	b.must(os.MkdirAll(b.path("d/e"), 0o755))
	b.write("d/e/f", "one")
	want := []fs.FileMode{0o755, 0o755}
	modes := func() (all []fs.FileMode) {
		for _, p := range []string{"d", "d/e"} {
			mode, _, err := folderMode(b.w, p)
			b.must(err)
			all = append(all, mode)
		}
		return all
	}
	b.change(func() {
		b.write("d/e/f", "two")
		b.must(os.Chmod(b.path("d/e"), 0o555), os.Chmod(b.path("d"), 0o500))
	})
	closed := modes()
	at, err := b.s.folder("s")
	b.must(err)
	defer at.close()
	steps, err := at.steps()
	b.must(err)
	shut := &opened{b.w, map[string]fs.FileMode{}}
	if err := openFolders(shut, steps[0], func() error {
		if !slices.Equal(modes(), closed) {
			t.Errorf("the modes are %v before the undo is written down, want %v", modes(), closed)
		}
		steps[0].Undoing, steps[0].Opened = true, shut.was
		return at.store(stepsFile, steps)
	}); err != nil || slices.Equal(modes(), closed) {
		t.Fatalf("openFolders: %v, and the modes are %v", err, modes())
	}
	b.crash()
	if got, err := b.undo(); err != nil || !slices.Equal(modes(), want) {
		t.Errorf("Undo = %+v, %v, and the modes are %v; want %v", got, err, modes(), want)
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

// AGT-4: the changes of a call are one step, whether yaya ends in the middle of writing it down or just after.
func TestCrashAtTheEndOfACall(t *testing.T) {
	for name, tc := range map[string]struct{ before, after func(b *bench, at *kept) }{
		"before the step is written down": {
			func(b *bench, at *kept) {
				b.must(at.root.MkdirAll(fmt.Sprintf(".%s.%d.tmp/x", stepsFile, os.Getpid()), 0o700))
			},
			func(b *bench, at *kept) {
				b.must(at.root.RemoveAll(fmt.Sprintf(".%s.%d.tmp", stepsFile, os.Getpid())))
			},
		},
		"after that": {
			func(b *bench, at *kept) { b.must(at.root.Link(openFile, "kept")) },
			func(b *bench, at *kept) { b.must(at.root.Rename("kept", openFile)) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.write("a", "one")
			want := b.tree()
			c, err := b.begin()
			b.must(err)
			at, err := b.s.folder("s")
			b.must(err)
			defer at.close()
			b.write("a", "two")
			b.write("new", "two")
			tc.before(b, at)
			_, _ = c.Done(t.Context()) // yaya ends in it
			tc.after(b, at)
			b.crash()
			if got, err := b.undo(); err != nil || got.Left != 0 || !slices.Equal(b.tree(), want) {
				t.Errorf("Undo = %+v, %v, and the files are %q; want %q", got, err, b.tree(), want)
			}
		})
	}
}

// AGT-4: nothing is lost if yaya ends at the end of a call that has changed nothing.
func TestCrashAtTheEndOfAnIdleCall(t *testing.T) {
	b := newBench(t)
	b.write("a", "one")
	c, err := b.begin()
	b.must(err)
	at, err := b.s.folder("s")
	b.must(err)
	defer at.close()
	b.must(os.Chtimes(b.path("a"), time.Now(), time.Now())) // the list of seen files changes
	later(t)
	b.must(at.root.Remove(openFile), at.root.MkdirAll(openFile+"/x", 0o700)) // it cannot be removed
	seen, err := at.seenSum()
	b.must(err)
	if _, err := c.Done(t.Context()); err == nil {
		t.Error("Done has no error")
	}
	if now, err := at.seenSum(); err != nil || now != seen {
		t.Errorf("the list of seen files is another one, %v, before the call has ended", err)
	}
}

// AGT-4: content that a power failure has taken is kept again when its file is seen the next time.
func TestContentGoneWithThePower(t *testing.T) {
	b := newBench(t)
	b.write("a", "one")
	b.write("empty", "")
	want := b.tree()
	later(t)
	b.change(func() {})
	at, err := b.s.folder("s")
	b.must(err)
	defer at.close()
	b.must(at.root.Remove(blobName(sum(nil))), at.root.WriteFile(blobName(sum([]byte("one"))), nil, 0o600))
	b.crash()
	b.change(func() {
		b.write("a", "two")
		b.must(os.Remove(b.path("empty")))
	})
	if got, err := b.undo(); err != nil || !slices.Equal(b.tree(), want) {
		t.Errorf("Undo = %+v, %v, and the files are %q; want %q", got, err, b.tree(), want)
	}
}

// A call may end after its session is forgotten, and a new session may have the same id: nothing of the old one
// is kept, and the new one has its own changes.
func TestForgetDuringACall(t *testing.T) {
	b := newBench(t)
	b.write("a", "one")
	old, err := b.begin()
	b.must(err)
	b.must(b.s.Forget("s"))
	next, err := b.begin()
	b.must(err)
	b.write("a", "two")
	for _, c := range []*Change{old, next} {
		_, err := c.Done(t.Context())
		b.must(err)
	}
	if got, err := b.undo(); err != nil || got.Left != 0 || !slices.Equal(got.Files, []string{"a"}) {
		t.Errorf("Undo = %+v, %v; want the change of the new session", got, err)
	}
	last, err := b.begin()
	b.must(err)
	b.must(b.s.Forget("s"))
	_, err = last.Done(t.Context())
	b.must(err)
	if left, err := fs.ReadDir(b.root.FS(), "."); err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left of a session that is forgotten", left, err)
	}
}
