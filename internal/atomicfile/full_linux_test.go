package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/internal/atomicfile"
)

// small is a folder on a file system of its own, with room for 16 KiB and 8 inodes.
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=16k,nr_inodes=8"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// On a full disk the error names the folder, and says that the file is as it was, which it is.
func TestFullDisk(t *testing.T) {
	for name, fill := range map[string]func(dir string) error{
		"no bytes": func(dir string) error {
			err := os.WriteFile(filepath.Join(dir, "rest"), make([]byte, 64<<10), 0o600)
			if !errors.Is(err, syscall.ENOSPC) {
				return errors.Join(errors.New("the disk is not full"), err)
			}
			return nil
		},
		"no inodes": func(dir string) error {
			for i := range 20 {
				if err := os.WriteFile(filepath.Join(dir, "f"+string(rune('a'+i))), nil, 0o600); errors.Is(err, syscall.ENOSPC) {
					return nil
				}
			}
			return errors.New("there are inodes left")
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := small(t)
			path := filepath.Join(dir, "mcp.json")
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := fill(dir); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			_, err = atomicfile.Write(root, "mcp.json", make([]byte, 8<<10))
			want := "mcp.json was not written, and is as it was: no space is left on the device of " + dir + "; free some space there"
			for how, err := range map[string]error{"Write": err, "Replace": atomicfile.Replace(path, make([]byte, 8<<10))} {
				if !errors.Is(err, syscall.ENOSPC) || err.Error() != want {
					t.Errorf("%s: %v, want %s", how, err, want)
				}
			}
			if data, err := os.ReadFile(path); err != nil || string(data) != "old" {
				t.Errorf("the file holds %q, %v, want what it held", data, err)
			}
			if left, err := filepath.Glob(filepath.Join(dir, ".*.tmp")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
