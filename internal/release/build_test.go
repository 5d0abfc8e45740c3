//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeGo is a go that knows four packages, and compiles as many as it is told.
const fakeGo = `#!/bin/sh
case $1 in
list) echo "go: downloading example.com/x v1.0.0" >&2; [ -z "$BROKEN_LIST" ] || { echo "no such package" >&2; exit 3; }; printf 'a\nb\nc/d\ne\n' ;;
build)
	echo "$*" >>"$CALLS"
	[ "$2" = -v ] || exit 0
	[ -z "$BROKEN" ] || { echo a; echo "# b"; echo "b.go:1:2: undefined: x" >&2; exit 7; }
	printf 'a\nb\nc/d\ne\n' >&2 ;;
esac
`

// USE-7: a first build says how far it is, without a terminal; later ones say nothing. Errors and
// the exit code of go pass.
func TestBuildSaysHowFarItIs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go"), []byte(fakeGo), 0o755); err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(dir, "calls")
	build := func(env string) (string, int) {
		cmd := exec.CommandContext(t.Context(), "sh", "build.sh", filepath.Join(dir, "out"), "-trimpath", "./cmd/x")
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "CALLS="+calls, env)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	out, code := build("")
	want := "First build: go downloads the modules that are missing, then compiles.\ngo: downloading example.com/x v1.0.0\n4 packages to compile.\n1 of 4 packages\n2 of 4 packages\n3 of 4 packages\n4 of 4 packages, linking …\n"
	if code != 0 || out != want {
		t.Errorf("a first build says %q and exits with %d, want %q", out, code, want)
	}
	if out, code := build("BROKEN=1"); code != 7 || !strings.Contains(out, "# b\nb.go:1:2: undefined: x\n") {
		t.Errorf("a build that fails says %q and exits with %d, want go's error and 7", out, code)
	}
	if out, code := build("BROKEN_LIST=1"); code != 3 || !strings.Contains(out, "no such package") {
		t.Errorf("a list that fails says %q and exits with %d, want go's error and 3", out, code)
	}
	if err := os.WriteFile(filepath.Join(dir, "out"), nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, code := build(""); code != 0 || out != "" {
		t.Errorf("a later build says %q and exits with %d, want silence", out, code)
	}
	said, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(said)), "\n")
	if got, want := lines[len(lines)-1], "build -o "+filepath.Join(dir, "out")+" -trimpath ./cmd/x"; got != want {
		t.Errorf("a later build ran go %s, want go %s", got, want)
	}
}
