package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// GA-1: where the kernel has no openat2, a path is opened part by part, with the same
// result.
func TestWalk(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.MkdirAll(top+"/a/b", 0o755), os.WriteFile(top+"/a/f", nil, 0o600), os.Symlink("a", top+"/l"), os.Symlink("f", top+"/a/l")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"/": true, top: true, top + "/a/b": true, top + "/a/f": true, top + "/a/b/": true, top + "/l": false, top + "/l/b": false, top + "/a/l": false, top + "/a/none": false, top + "/a/f/x": false} {
		f, err := openPath(name)
		fd, werr := walk(name)
		if (err == nil) != want || (werr == nil) != want {
			t.Errorf("%s: openPath = %v, walk = %v; want it opened: %v", name, err, werr, want)
		}
		if err != nil || werr != nil {
			continue
		}
		other := os.NewFile(uintptr(fd), name)
		is, err := f.Stat()
		also, aerr := other.Stat()
		if err = errors.Join(err, aerr, f.Close(), other.Close()); err != nil || !os.SameFile(is, also) {
			t.Errorf("%s: openPath and walk opened different files (%v)", name, err)
		}
	}
}
