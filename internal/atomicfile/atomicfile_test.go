package atomicfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/yaya-ai/yaya/internal/atomicfile"
)

// A replaced file is new, complete and its owner's; a file that cannot be replaced
// stays, and nothing is left beside it.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte("old and longer"), 0o644); err != nil {
		t.Fatal(err)
	}
	want, err := atomicfile.Write(root, "f", []byte("new"))
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil || !os.SameFile(st, want) || st.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v; want the same file with mode 0600", st, err)
	}
	if data, _ := os.ReadFile(path); string(data) != "new" {
		t.Errorf(`got %q, want "new"`, data)
	}
	if st, err := atomicfile.WriteMode(root, "f", []byte("new"), 0o644); err != nil || st.Mode().Perm() != 0o644 {
		t.Errorf("with a mode: got %v, %v", st, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := atomicfile.Write(root, "d", []byte("x")); err == nil {
		t.Error("a directory was replaced")
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

// Write neither follows nor writes to a file in the place of the new one: a process that has died left
// it there, or somebody who wants a file of theirs to be written to.
func TestWriteOverLeftovers(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "theirs")
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	tmp := filepath.Join(dir, fmt.Sprintf(".f.%d.tmp", os.Getpid()))
	if err := os.WriteFile(other, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, leave := range map[string]func() error{
		"a file": func() error { return os.WriteFile(tmp, []byte("half of"), 0o644) },
		"a link": func() error { return os.Symlink(other, tmp) },
	} {
		if err := leave(); err != nil {
			t.Skip(err)
		}
		if _, err := atomicfile.Write(root, "f", []byte(name)); err != nil {
			t.Errorf("%s in its place: Write = %v, want nil", name, err)
		}
		st, err := os.Lstat(filepath.Join(dir, "f"))
		if err != nil || !st.Mode().IsRegular() || st.Mode().Perm() != 0o600 {
			t.Errorf("%s in its place: got %v, %v; want a file with mode 0600", name, st, err)
		}
		if data, _ := os.ReadFile(filepath.Join(dir, "f")); string(data) != name {
			t.Errorf("%s in its place: the file has %q", name, data)
		}
	}
	if data, _ := os.ReadFile(other); string(data) != "theirs" {
		t.Errorf("the file behind the link has %q, want what it had", data)
	}
}
