// Package journaltest injects failures and kills at chosen steps of a journal's
// work, for tests of durability.
package journaltest

import (
	"io/fs"
	"os"
	"sync/atomic"
	"syscall"

	"github.com/yaya-ai/yaya/internal/journal"
)

// Step is one call that changes the disk.
type Step struct {
	N    int    // counts from 1
	Op   string // write, sync, truncate, open, link, rename, remove, mkdir, syncdir
	Name string
	Len  int // of a write
}

// Faults is a file system that asks before each step. A hook's error is the
// step's; a write that fails so has written its first Partial bytes.
type Faults struct {
	journal.FS
	Before func(Step) error
	// Partial is how much of a failing write gets written.
	Partial func(Step) int

	n atomic.Int64
}

func (f *Faults) step(op, name string, length int) (Step, error) {
	s := Step{int(f.n.Add(1)), op, name, length}
	if f.Before == nil {
		return s, nil
	}
	return s, f.Before(s)
}

// Open implements [journal.FS].
func (f *Faults) Open(name string, mode journal.Mode) (journal.File, error) {
	if mode == journal.Create {
		if _, err := f.step("open", name, 0); err != nil {
			return nil, err
		}
	}
	file, err := f.FS.Open(name, mode)
	if err != nil {
		return nil, err
	}
	return &faultyFile{file, f, name}, nil
}

// Link implements [journal.FS].
func (f *Faults) Link(from, to string) error {
	if _, err := f.step("link", to, 0); err != nil {
		return err
	}
	return f.FS.Link(from, to)
}

// Rename implements [journal.FS].
func (f *Faults) Rename(from, to string) error {
	if _, err := f.step("rename", to, 0); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

// Remove implements [journal.FS].
func (f *Faults) Remove(name string) error {
	if _, err := f.step("remove", name, 0); err != nil {
		return err
	}
	return f.FS.Remove(name)
}

// MkdirAll implements [journal.FS].
func (f *Faults) MkdirAll(name string) error {
	if _, err := f.step("mkdir", name, 0); err != nil {
		return err
	}
	return f.FS.MkdirAll(name)
}

// ReadDir implements [journal.FS].
func (f *Faults) ReadDir(name string) ([]fs.DirEntry, error) { return f.FS.ReadDir(name) }

// SyncDir implements [journal.FS].
func (f *Faults) SyncDir(name string) error {
	if _, err := f.step("syncdir", name, 0); err != nil {
		return err
	}
	return f.FS.SyncDir(name)
}

type faultyFile struct {
	journal.File
	fs   *Faults
	name string
}

func (f *faultyFile) Write(p []byte) (int, error) {
	s, err := f.fs.step("write", f.name, len(p))
	if err == nil {
		return f.File.Write(p)
	}
	n := 0
	if f.fs.Partial != nil {
		n, _ = f.File.Write(p[:f.fs.Partial(s)])
	}
	return n, err
}

func (f *faultyFile) Sync() error {
	if _, err := f.fs.step("sync", f.name, 0); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *faultyFile) Truncate(size int64) error {
	if _, err := f.fs.step("truncate", f.name, 0); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

// Kill ends this process at once, as kill -9 does.
func Kill() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

// KillAt returns a file system that kills this process right before the n-th
// step; every other kill in the middle of a write.
func KillAt(inner journal.FS, n int) *Faults {
	f := &Faults{FS: inner}
	f.Before = func(s Step) error {
		if s.N == n {
			if s.Op == "write" && n%2 == 0 {
				return syscall.EINTR // the write is cut short, see Partial
			}
			Kill()
		}
		if s.N == n+1 {
			Kill() // before what was cut short can be taken back
		}
		return nil
	}
	f.Partial = func(s Step) int { return s.Len / 2 }
	return f
}
