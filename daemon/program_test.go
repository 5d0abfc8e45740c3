package daemon

import (
	"os"
	"path/filepath"
	"testing"
)

// USE-7: printed commands name yaya as the reader's shell finds it.
func TestTyped(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	linked, other := t.TempDir(), t.TempDir()
	if err := os.Symlink(self, filepath.Join(linked, "yaya")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "yaya"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, path, want string }{
		{"on PATH", linked, "yaya"},
		{"not on PATH", t.TempDir(), shellLine(self, nil)},
		{"another yaya is on PATH", other + ":" + linked, shellLine(self, nil)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("PATH", tc.path)
			if got := Typed(); got != tc.want {
				t.Errorf("Typed() = %q, want %q", got, tc.want)
			}
		})
	}
}
