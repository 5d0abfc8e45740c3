package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// The folders of a process stay as long as it holds them, and the next one removes those
// that a killed one has left, whatever rights they have.
func TestScratch(t *testing.T) {
	top := t.TempDir() + "/tmp"
	folder := func(s *Scratch, name string) string {
		t.Helper()
		dir, emptied, release, err := s.Use(name)
		if err != nil || emptied {
			t.Fatalf("Use(%q) = %v, emptied %v", name, err, emptied)
		}
		release()
		return dir
	}
	none := NewScratch(top)
	none.Remove("a")
	if err := errors.Join(none.Sweep(), none.Close()); err != nil {
		t.Errorf("one without folders: %v", err)
	}
	if _, err := os.Stat(top); err == nil {
		t.Error("one without folders has made some")
	}
	one, killed := NewScratch(top), NewScratch(top)
	a, b := folder(one, "a"), folder(one, "../b")
	if a == b || a != folder(one, "a") || filepath.Dir(a) != filepath.Dir(b) {
		t.Errorf("folders %s and %s, want two that stay", a, b)
	}
	left := folder(killed, "a")
	outside := t.TempDir()
	if err := errors.Join(os.MkdirAll(left+"/x/y", 0o700), os.WriteFile(left+"/x/y/f", nil, 0o600), os.Chmod(left+"/x", 0), os.Chmod(left, 0), os.WriteFile(a+"/f", nil, 0o600), os.WriteFile(outside+"/f", nil, 0o600), os.Symlink(outside, a+"/l")); err != nil {
		t.Fatal(err)
	}
	if err := killed.lock.Close(); err != nil { // as the kernel does when a process is killed
		t.Fatal(err)
	}
	if err := NewScratch(top).Sweep(); err != nil {
		t.Errorf("Sweep = %v", err)
	}
	if _, err := os.Stat(filepath.Dir(left)); err == nil {
		t.Error("what a killed process has left is there")
	}
	if _, err := os.Stat(a + "/f"); err != nil {
		t.Errorf("what another process holds is gone: %v", err)
	}
	one.Remove("a")
	one.Remove("a")
	if err := errors.Join(one.Close(), one.Close()); err != nil {
		t.Errorf("Close = %v", err)
	}
	if _, err := os.Stat(outside + "/f"); err != nil {
		t.Errorf("what a link leads to is gone: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(b)); err == nil {
		t.Error("the folders are there after Close")
	}
	if _, _, _, err := one.Use("a"); err == nil {
		t.Error("Use after Close = nil, want an error")
	}
}

// A process keeps so many folders, those that were used last, and replaces one that is
// too large.
func TestScratchIsBounded(t *testing.T) {
	s := newScratch(t)
	use := func(name string) (string, bool) {
		t.Helper()
		dir, emptied, release, err := s.Use(name)
		if err != nil {
			t.Fatal(err)
		}
		release()
		return dir, emptied
	}
	for i := range maxScratches + 10 {
		use(fmt.Sprint(i))
		use("first")
	}
	s.removals.Wait()
	all, err := os.ReadDir(s.own)
	if err != nil || len(all) != maxScratches+1 { // and the lock
		t.Errorf("there are %d folders, %v; want %d", len(all)-1, err, maxScratches)
	}
	many := func(dir string, n int) error {
		for i := range n {
			if err := os.WriteFile(fmt.Sprintf("%s/%d", dir, i), nil, 0o600); err != nil {
				return err
			}
		}
		return nil
	}
	for name, fill := range map[string]func(dir string, more int) error{
		"bytes": func(dir string, more int) error {
			return errors.Join(os.MkdirAll(dir+"/d", 0o700), os.WriteFile(dir+"/d/f", nil, 0o600), os.Truncate(dir+"/d/f", int64(maxScratchBytes+more)))
		},
		"files": func(dir string, more int) error {
			return errors.Join(os.MkdirAll(dir+"/d", 0o700), many(dir+"/d", maxScratchFiles-1+more))
		},
	} {
		dir, _ := use(name)
		if err := fill(dir, 0); err != nil {
			t.Fatal(err)
		}
		if again, emptied := use(name); again != dir || emptied {
			t.Errorf("%s: one that is large: %s, emptied %v; want %s as it was", name, again, emptied, dir)
		}
		if err := fill(dir, 1); err != nil {
			t.Fatal(err)
		}
		again, emptied := use(name)
		left, err := os.ReadDir(again)
		s.removals.Wait()
		if _, gone := os.Stat(dir); !emptied || err != nil || len(left) != 0 || gone == nil {
			t.Errorf("%s: one that is too large: %s, emptied %v, %v, holds %d files, was removed: %v", name, again, emptied, err, len(left), gone)
		}
	}
}

func newScratch(t *testing.T) *Scratch {
	s := NewScratch(t.TempDir())
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v, want no error", err)
		}
	})
	return s
}

// A folder in use stays until its program has ended: other names, its size and the end
// of its session change nothing.
func TestScratchInUseStays(t *testing.T) {
	for name, end := range map[string]func(s *Scratch, dir string) error{
		"many others": func(s *Scratch, _ string) error {
			for i := range 2 * maxScratches {
				_, _, release, err := s.Use(fmt.Sprint(i))
				if err != nil {
					return err
				}
				release()
			}
			return nil
		},
		"too large": func(s *Scratch, dir string) error {
			if err := os.Truncate(dir+"/f", maxScratchBytes+1); err != nil {
				return err
			}
			again, emptied, release, err := s.Use("mine")
			if err == nil {
				defer release()
			}
			if again != dir || emptied {
				err = errors.Join(err, fmt.Errorf("the next user has %s, emptied %v; want %s", again, emptied, dir))
			}
			return err
		},
		"end of the session": func(s *Scratch, dir string) error {
			s.Remove("mine")
			again, _, release, err := s.Use("mine")
			if err == nil {
				release()
			}
			if again == dir {
				err = errors.Join(err, errors.New("the next session has the folder of the last"))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScratch(t)
			dir, _, release, err := s.Use("mine")
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(os.WriteFile(dir+"/f", nil, 0o600), end(s, dir)); err != nil {
				t.Errorf("a file in the folder, and the end of its session = %v, want no error", err)
			}
			s.removals.Wait()
			if _, err := os.Stat(dir + "/f"); err != nil {
				t.Errorf("while it is used: %v", err)
			}
			release()
			release()
			s.Remove("mine")
			s.removals.Wait()
			if _, err := os.Stat(dir); err == nil {
				t.Error("afterwards it is there")
			}
		})
	}
}

// A process that another one keeps waiting starts its programs all the same.
func TestScratchWaitsForNoProcess(t *testing.T) {
	top := t.TempDir()
	lock, err := os.Create(top + "/lock")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if ours, err := flock(lock); err != nil || !ours {
		t.Fatalf("got %v, %v, want ours", ours, err)
	}
	s := NewScratch(top)
	_, _, release, err := s.Use("a")
	if err != nil {
		t.Fatal(err)
	}
	release()
	if err := errors.Join(s.Sweep(), s.Close()); err != nil {
		t.Errorf("Sweep and Close = %v while another process has the lock, want no error", err)
	}
}
