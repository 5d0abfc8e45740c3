package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
)

// result is the result of a program in a sandbox.
type result struct {
	out      string
	code     int
	enforced Enforced
}

// start runs a program in a sandbox until it ends.
func (b *Box) start(t *testing.T, p Policy, dir string, env []string, argv ...string) (result, error) {
	t.Helper()
	return b.startWith(t, nil, p, dir, env, argv...)
}

// startWith starts it with a file as its standard input, without one with /dev/null.
func (b *Box) startWith(t *testing.T, stdin *os.File, p Policy, dir string, env []string, argv ...string) (result, error) {
	t.Helper()
	r, err := b.Enter(p)
	if err != nil {
		return result{}, err
	}
	defer r.Ended()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startWithin*6)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.Home}, env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if stdin != nil {
		cmd.Stdin = stdin
	}
	if err := r.Wrap(cmd); err != nil {
		return result{}, err
	}
	if err := cmd.Start(); err != nil {
		return result{}, err
	}
	if err := r.Started(cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return result{}, err
	}
	err = cmd.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		t.Fatalf("Wait = %v, want no error, or an exit code", err)
	}
	return result{out.String(), cmd.ProcessState.ExitCode(), r.Enforced}, nil
}

func open(t *testing.T, names ...string) []Path {
	t.Helper()
	paths, err := OpenNamed("", names...)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// follow opens paths as yaya opens those of its own choice, whose links it follows.
func follow(t *testing.T, names ...string) (paths []Path) {
	t.Helper()
	for _, name := range names {
		path, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}
