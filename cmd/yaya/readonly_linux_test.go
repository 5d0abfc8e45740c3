package main

import (
	"os/exec"
	"strings"
	"testing"
)

// On a read-only file system, the error names that and no sandbox; what only reads goes on,
// with an index of sessions and without one.
func TestReadOnlyFileSystem(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("token", "create", "one")
	b.must("run", "hello there")
	readOnly := func(args ...string) (string, error) {
		t.Helper()
		line := append([]string{"-m", "sh", "-c", `mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" || exit 77; exec "$@"`, b.file(), b.bin}, b.args(args...)...)
		c := exec.CommandContext(t.Context(), "unshare", line...)
		c.Env = b.environ()
		out, err := c.CombinedOutput()
		if exitCode(err) == 77 || err != nil && strings.HasPrefix(string(out), "unshare") {
			t.Skipf("no file system can be mounted here: %v, %s", err, out)
		}
		return string(out), err
	}
	said, err := readOnly("token", "create", "two")
	if err == nil || !strings.Contains(said, "is read-only: make it writable") || strings.Contains(said, "sandbox") {
		t.Errorf("token create: %v\n%s, want that the file system is read-only", err, said)
	}
	if said, err := readOnly("verify"); err != nil {
		t.Errorf("verify: %v\n%s, want it to read", err, said)
	}
	for _, index := range []string{"without an index", "with one"} {
		if said, err := readOnly("session", "list"); err != nil || !strings.Contains(said, "hello there") {
			t.Errorf("session list %s: %v\n%s, want the session", index, err, said)
		}
		b.must("session", "list") // makes the index
	}
}
