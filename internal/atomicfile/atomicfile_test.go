package atomicfile_test

import (
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
