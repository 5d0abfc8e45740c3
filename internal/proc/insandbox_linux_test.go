package proc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// boxed is a sandbox that does nothing.
type boxed struct{ ended chan struct{} }

func (boxed) Wrap(*exec.Cmd) error { return nil }
func (boxed) Started(int) error    { return nil }
func (boxed) Keeps() bool          { return false }
func (boxed) End()                 {}
func (b boxed) Ended()             { close(b.ended) }

// SEC-5: a process that was started in a sandbox is recognized, and so are its
// descendants, even after they have left parents, group and environment behind; no other
// process is.
func TestInSandbox(t *testing.T) {
	m := &Manager{}
	defer m.Close(t.Context())
	const script = `setsid env -i sleep 600 & echo $!; sh -c 'sleep 600 & echo $!'; read -r line`
	start := func(in Sandbox) []int {
		t.Helper()
		p, err := m.Start(Spec{Path: "sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Sandbox: in})
		if err != nil {
			t.Fatal(err)
		}
		pids := []int{p.PID()}
		out := bufio.NewReader(p.Stdout)
		for range 2 {
			line, err := out.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			// A process that is becoming another program has no environment to be known by.
			eventually.True(t, "the program runs", func() bool {
				name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
				return err == nil && string(name) == "sleep\n"
			})
			pids = append(pids, pid)
		}
		return pids
	}
	bare := start(nil)
	for _, pid := range bare {
		if InSandbox(pid) {
			t.Errorf("InSandbox of a process without one = true")
		}
	}
	in := boxed{make(chan struct{})}
	for i, pid := range start(in) {
		if !InSandbox(pid) {
			t.Errorf("InSandbox of process %d of a sandbox = false", i)
		}
	}
	for _, pid := range append(bare, os.Getpid(), os.Getppid(), 1) {
		if InSandbox(pid) {
			t.Errorf("InSandbox(%d) = true beside a sandbox", pid)
		}
	}
	m.Close(t.Context())
	<-in.ended
}

// The end of a program in a sandbox reads as without one.
func TestEndInSandbox(t *testing.T) {
	for _, c := range []struct{ script, bare, sandboxed string }{
		{"exit 3", "exited with status 3", "exited with status 3"},
		{"exit 137", "exited with status 137", "ended with SIGKILL"},
	} {
		m := &Manager{}
		for in, want := range map[Sandbox]string{nil: c.bare, boxed{make(chan struct{})}: c.sandboxed} {
			p, err := m.Start(Spec{Path: "sh", Args: []string{"-c", c.script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Sandbox: in})
			if err != nil {
				t.Fatal(err)
			}
			<-p.Done()
			if got := p.Err().Error(); got != want {
				t.Errorf("%s in %v: got %q, want %q", c.script, in, got, want)
			}
		}
		m.Close(t.Context())
	}
}

// A command with a path that is not absolute is found below its folder, as without a
// sandbox.
func TestRelativeCommandInSandbox(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/run", []byte("#!/bin/sh\nexit 5\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	m := &Manager{}
	defer m.Close(t.Context())
	p, err := m.Start(Spec{Path: "./run", Dir: dir, Env: []string{"PATH=" + os.Getenv("PATH")}, Sandbox: boxed{make(chan struct{})}})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if p.ExitCode() != 5 {
		t.Errorf("exit code %d, want 5", p.ExitCode())
	}
}

// failing is a sandbox that cannot be made, as its first process says on standard error.
type failing struct {
	boxed
	said func() bool
}

var errUnmade = errors.New("no sandbox")

func (f failing) Started(int) error {
	for !f.said() {
		time.Sleep(time.Millisecond)
	}
	return errUnmade
}

// The error of a sandbox that cannot be made has its reason.
func TestReasonOfSandboxes(t *testing.T) {
	m := &Manager{}
	defer m.Close(t.Context())
	mark := filepath.Join(t.TempDir(), "said")
	p, err := m.Start(Spec{Path: "sh", Args: []string{"-c", "echo no namespaces here >&2; >$MARK; exit 1"}, Env: []string{"PATH=" + os.Getenv("PATH"), "MARK=" + mark}, Sandbox: failing{boxed{make(chan struct{})}, func() bool {
		_, err := os.Stat(mark)
		return err == nil || t.Context().Err() != nil
	}}})
	if p != nil || !errors.Is(err, errUnmade) || !strings.HasSuffix(fmt.Sprint(err), ": no namespaces here") {
		t.Errorf("Start() = %v, %v; want no process, and the reason", p, err)
	}
}
