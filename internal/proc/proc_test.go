//go:build unix

package proc

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// ownerEnv makes the test binary an owner that starts a family and waits to be
// killed.
const ownerEnv = "YAYA_TEST_OWNER"

func TestMain(m *testing.M) {
	if GuardMain() {
		return
	}
	if os.Getenv(ownerEnv) != "" {
		owner()
		return
	}
	goleak.VerifyTestMain(m)
}

var env = []string{"PATH=" + os.Getenv("PATH")}

// family prints the ids of a child, a grandchild in its group and a grandchild
// that left the group, all of which ignore SIGTERM and the end of their input.
const family = `trap "" TERM
sh -c 'trap "" TERM; while :; do sleep 1; done' & echo $!
setsid sh -c 'trap "" TERM; echo $$; while :; do sleep 1; done' &
echo $$
while :; do sleep 1; done`

func owner() {
	m := &Manager{Guard: true}
	p, err := m.Start(Spec{Path: "sh", Args: []string{"-c", family}, Env: env})
	if err != nil {
		fmt.Println("error", err)
		return
	}
	in := bufio.NewScanner(p.Stdout)
	for range 3 {
		in.Scan()
		fmt.Println(in.Text())
	}
	select {}
}

func readPIDs(t *testing.T, s *bufio.Scanner) []int {
	t.Helper()
	var pids []int
	for len(pids) < 3 && s.Scan() {
		pid, err := strconv.Atoi(strings.TrimSpace(s.Text()))
		if err != nil {
			t.Fatalf("got %q, want a process id", s.Text())
		}
		pids = append(pids, pid)
	}
	if len(pids) != 3 {
		t.Fatalf("got %d process ids, want 3", len(pids))
	}
	return pids
}

func alive(pid int) bool {
	state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)) //nolint:forbidigo // a file of /proc
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	fields := strings.Fields(string(state[strings.LastIndexByte(string(state), ')')+1:]))
	return fields[0] != "Z"
}

func waitGone(t *testing.T, pids []int, within time.Duration) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		var left []int
		for _, pid := range pids {
			if alive(pid) {
				left = append(left, pid)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("still alive after %v: %v", within, left)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// UP-17: a stop ends the whole tree, including processes that ignore SIGTERM or
// left the process group.
func TestStopTakesTheWholeTree(t *testing.T) {
	m := new(Manager)
	p, err := m.Start(Spec{Path: "sh", Args: []string{"-c", family}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	pids := readPIDs(t, bufio.NewScanner(p.Stdout))
	m.Close(t.Context())
	waitGone(t, pids, 5*time.Second)
	if _, err := m.Start(Spec{Path: "true", Env: env}); !errors.Is(err, ErrClosed) {
		t.Errorf("start after close: got %v, want ErrClosed", err)
	}
}

// A crash of the child takes its own children along.
func TestCrashTakesTheWholeTree(t *testing.T) {
	m := new(Manager)
	defer m.Close(t.Context())
	p, err := m.Start(Spec{Path: "sh", Args: []string{"-c", family}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	pids := readPIDs(t, bufio.NewScanner(p.Stdout))
	_ = syscall.Kill(p.PID(), syscall.SIGKILL)
	<-p.Done()
	waitGone(t, pids, 5*time.Second)
	if got := p.Err().Error(); got != "ended with SIGKILL" {
		t.Errorf(`got %q, want "ended with SIGKILL"`, got)
	}
	p.Stop(t.Context())
}

// R20: kill -9 of the owner leaves nobody behind.
func TestOwnerKilledLeavesNobody(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), ownerEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pids := readPIDs(t, bufio.NewScanner(out))
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	waitGone(t, pids, 5*time.Second)
}

// keepInherited keeps descriptors that whoever started the test had open, such as
// make's, from children: those are not the ones that a test is about.
func keepInherited(t *testing.T) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range open {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}

// UP-19: the child sees exactly the environment and descriptors it was given.
func TestChildSeesOnlyItsEnvironment(t *testing.T) {
	keepInherited(t)
	t.Setenv("YAYA_SECRET_CANARY", "leak")
	m := new(Manager)
	defer m.Close(t.Context())
	p, err := m.Start(Spec{Path: "sh", Args: []string{"-c", `env; ls /proc/self/fd`}, Env: append(env, "A=1")})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	s := bufio.NewScanner(p.Stdout)
	for s.Scan() {
		out.WriteString(s.Text() + "\n")
	}
	<-p.Done()
	if got := out.String(); strings.Contains(got, "CANARY") || !strings.Contains(got, "A=1\n") {
		t.Errorf("environment of the child:\n%s", got)
	}
	if n := strings.Count(out.String(), "\n4\n"); n != 0 { // 3 is ls's own
		t.Errorf("a descriptor beyond 0..2 was inherited:\n%s", out.String())
	}
	p.Stop(t.Context())
}

// UP-13: standard error is drained whatever its size; the tail stays.
func TestStderrFloodIsDrained(t *testing.T) {
	m := new(Manager)
	defer m.Close(t.Context())
	p, err := m.Start(Spec{Path: "sh", Args: []string{"-c", `head -c 20000000 /dev/zero >&2; echo the end >&2`}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if got := p.Stderr(); len(got) > stderrTail || !strings.HasSuffix(got, "the end\n") {
		t.Errorf("kept %d bytes, ending in %q", len(got), got[max(0, len(got)-20):])
	}
	p.Stop(t.Context())
}

// UP-22: no shell, no lookup in the current directory, a clear error.
func TestCommandLookup(t *testing.T) {
	m := new(Manager)
	defer m.Close(t.Context())
	t.Chdir(t.TempDir())
	if err := os.WriteFile("tool", []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:forbidigo,gosec // test file
		t.Fatal(err)
	}
	for _, path := range []string{"tool", "echo hi; id", "no-such-command"} {
		_, err := m.Start(Spec{Path: path, Env: append([]string{"PATH=.:" + os.Getenv("PATH")}, "X=1")})
		if !errors.Is(err, exec.ErrNotFound) {
			t.Errorf("%q: got %v, want ErrNotFound", path, err)
		}
	}
}

func TestStopReturnsWhenContextIsOver(t *testing.T) {
	m := new(Manager)
	p, err := m.Start(Spec{Path: "sh", Args: []string{"-c", family}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	start := time.Now()
	p.Stop(ctx)
	if d := time.Since(start); d > graceStdin {
		t.Errorf("an impatient stop took %v", d)
	}
	m.Close(ctx)
}

// R18: a held program does nothing before it is released, and nothing at all when it is
// stopped or its owner is gone instead; it inherits nothing of that.
func TestHeld(t *testing.T) {
	m := new(Manager)
	defer m.Close(t.Context())
	start := func() *Process {
		t.Helper()
		p, err := m.Start(Spec{Path: "/bin/sh", Args: []string{"-c", "IFS= read -r _ <&3 || exit 126; exec 3<&-; echo ran; [ -e /proc/self/fd/3 ] && echo open; true"}, Env: env, Held: true})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	said := func(p *Process) string {
		t.Helper()
		var out strings.Builder
		s := bufio.NewScanner(p.Stdout)
		for s.Scan() {
			out.WriteString(s.Text() + " ")
		}
		<-p.Done()
		return out.String()
	}
	p := start()
	if err := p.Release(); err != nil {
		t.Fatal(err)
	}
	if got := said(p); got != "ran " || p.ExitCode() != 0 {
		t.Errorf("released: it said %q and ended with %d", got, p.ExitCode())
	}
	p.Stop(t.Context())

	p = start()
	_ = p.gate.Close() // as when the owner is gone
	if got := said(p); got != "" || p.ExitCode() != 126 {
		t.Errorf("without an owner: it said %q and ended with %d", got, p.ExitCode())
	}
	p.Stop(t.Context())

	p = start()
	p.Kill()
	if err := p.Release(); err == nil {
		t.Error("what was killed was released")
	}
}

// USE-10: a folder that is not there is not blamed on the program.
func TestFolderThatIsNotThere(t *testing.T) {
	m := new(Manager)
	defer m.Close(t.Context())
	for name, want := range map[string]string{"nowhere": "no such file or directory", "file": "is not a folder"} {
		dir := filepath.Join(t.TempDir(), name)
		if name == "file" {
			if err := os.WriteFile(dir, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := m.Start(Spec{Path: "/bin/sh", Dir: dir})
		if err == nil || !strings.Contains(err.Error(), "its folder: ") || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: got %v, want an error that names the folder %s", name, err, dir)
		}
	}
}
