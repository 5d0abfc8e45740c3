// Package besidetmp gives tests folders outside /tmp: a sandbox has a private /tmp,
// so tests of its limits would prove nothing there.
package besidetmp

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// private are the folders of which each sandbox has its own.
var private = []string{"/tmp", "/var/tmp", "/run", "/dev"}

// Dir makes a folder that is removed at the end of the test: in the package's folder,
// or elsewhere if that lies below /tmp. Without a place for it the test is skipped.
func Dir(t *testing.T) string {
	t.Helper()
	for _, above := range []string{".", "/srv", "/var/lib", os.Getenv("HOME")} {
		above, err := filepath.Abs(above)
		if err != nil {
			t.Fatal(err)
		}
		if real, err := filepath.EvalSymlinks(above); err != nil || below(real) {
			continue
		}
		dir, err := os.MkdirTemp(above, ".escape-") //nolint:usetesting // not where the system has them
		if err != nil {
			continue // another one may do
		}
		t.Cleanup(func() { _ = os.RemoveAll(dir) }) //nolint:forbidigo,gosec // what was just made
		return dir
	}
	t.Skip("no folder outside /tmp can be written")
	return ""
}

func below(dir string) bool {
	for _, p := range private {
		if dir == p || strings.HasPrefix(dir, p+"/") {
			return true
		}
	}
	return false
}
