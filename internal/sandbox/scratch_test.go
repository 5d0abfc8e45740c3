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
		dir, emptied, err := s.Folder(name)
		if err != nil || emptied {
			t.Fatalf("Folder(%q) = %v, emptied %v", name, err, emptied)
		}
		return dir
	}
	none := NewScratch(top)
	if err := errors.Join(none.Sweep(), none.Remove("a"), none.Close()); err != nil {
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
	if err := errors.Join(one.Remove("a"), one.Remove("a"), one.Close(), one.Close()); err != nil {
		t.Errorf("Close = %v", err)
	}
	if _, err := os.Stat(outside + "/f"); err != nil {
		t.Errorf("what a link leads to is gone: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(b)); err == nil {
		t.Error("the folders are there after Close")
	}
	if _, _, err := one.Folder("a"); err == nil {
		t.Error("Folder after Close = nil, want an error")
	}
}

// A process keeps so many folders, those that were used last, and empties one that is
// too large.
func TestScratchIsBounded(t *testing.T) {
	s := NewScratch(t.TempDir())
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i := range maxScratches + 10 {
		if _, _, err := s.Folder(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Folder("first"); err != nil {
			t.Fatal(err)
		}
	}
	all, err := os.ReadDir(s.own)
	if err != nil || len(all) != maxScratches+1 { // and the lock
		t.Errorf("there are %d folders, %v; want %d", len(all)-1, err, maxScratches)
	}
	dir, _, err := s.Folder("first")
	if err == nil {
		err = errors.Join(os.WriteFile(dir+"/f", nil, 0o600), os.Truncate(dir+"/f", maxScratchBytes))
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, emptied, err := s.Folder("first"); emptied || err != nil {
		t.Errorf("one that is large: emptied %v, %v", emptied, err)
	}
	if err := os.Truncate(dir+"/f", maxScratchBytes+1); err != nil {
		t.Fatal(err)
	}
	again, emptied, err := s.Folder("first")
	if left, rerr := os.ReadDir(again); again != dir || !emptied || err != nil || rerr != nil || len(left) != 0 {
		t.Errorf("one that is too large: %s, emptied %v, %v, holds %v", again, emptied, err, left)
	}
}
