package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A remembered path leads where a look at it leads.
func TestResolved(t *testing.T) {
	dir := real(t.TempDir())
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.MkdirAll(in("a/b"), 0o700), os.Symlink("a", in("to-a")), os.Symlink(in("to-a/b"), in("to-b")), os.Symlink("nowhere", in("dangling")),
		os.Symlink("loop", in("loop")), os.WriteFile(in("a/file"), nil, 0o600), os.Symlink("../a/file", in("a/b/to-file"))); err != nil {
		t.Fatal(err)
	}
	seen := resolved{}
	for range 2 {
		for _, name := range []string{"/", dir, in("a"), in("to-a"), in("to-a/b"), in("to-b"), in("to-b/missing/x"), in("dangling"), in("dangling/x"), in("loop"), in("loop/x"), in("to-a/b/to-file"), in("missing"), in("a/file/x")} {
			if got, want := seen.real(name), real(name); got != want {
				t.Errorf("real(%q) = %q, want %q", name, got, want)
			}
		}
	}
}
