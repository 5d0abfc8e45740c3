package proc

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// markBoxed gives a process the mark of programs in a sandbox.
func markBoxed(t *testing.T, pid int) {
	t.Helper()
	if selfBoxed() {
		t.Skip("in a sandbox, where the mark says nothing")
	}
	if err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, &unix.Rlimit{}, nil); err != nil {
		t.Fatal(err)
	}
}

// SEC-5: the mark alone identifies a program in a sandbox and its descendants, whoever
// its parents are, and whatever it has left behind.
func TestInSandboxByMark(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `read -r go; setsid env -i sleep 600 & echo $!; wait`)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if InSandbox(cmd.Process.Pid) {
		t.Error("InSandbox without the mark = true, want false")
	}
	markBoxed(t, cmd.Process.Pid)
	if _, err := in.Write([]byte("go\n")); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	for name, pid := range map[string]int{"a marked process": cmd.Process.Pid, "its child": child} {
		if !InSandbox(pid) {
			t.Errorf("InSandbox of %s = false, want true", name)
		}
	}
	_ = unix.Kill(child, unix.SIGKILL)
	_ = cmd.Wait()
	if !InSandbox(child) {
		t.Error("InSandbox of a process that has ended = false, want true")
	}
}

// SEC-5: an orphan that carries the mark has lost the first process of its sandbox. It is
// killed with all below it, though it has joined the group of a process that lives, and
// the owner is told; an orphan without the mark lives on.
func TestEscapeesAreKilled(t *testing.T) {
	told := make(chan int, 100)
	m := &Manager{Escaped: func(n int) { told <- n }}
	defer m.Close(t.Context())
	other, err := m.Start(Spec{Path: "sleep", Args: []string{"600"}, Env: []string{"PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	// The shell's child starts another and both stay when the shell ends.
	const script = `read -r go; sh -c 'sleep 600 & echo $!; echo $$; wait' & read -r go`
	orphans := func(marked bool) (pids []int) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", script)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: other.PID()}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if marked {
			markBoxed(t, cmd.Process.Pid)
		}
		if _, err := in.Write([]byte("go\n")); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		for range 2 {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
		_ = in.Close()
		_ = cmd.Wait()
		return pids
	}
	bare := orphans(false)
	for _, pid := range orphans(true) {
		for range 2000 {
			if err := unix.Kill(pid, 0); errors.Is(err, unix.ESRCH) {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		if err := unix.Kill(pid, 0); !errors.Is(err, unix.ESRCH) {
			t.Errorf("process %d of a sandbox without its first process lives: %v", pid, err)
		}
	}
	select {
	case n := <-told:
		if n < 1 {
			t.Errorf("told of %d processes, want at least 1", n)
		}
	default:
		t.Error("got no report of a killed process, want one")
	}
	for _, pid := range bare {
		if err := unix.Kill(pid, 0); err != nil {
			t.Errorf("an orphan without the mark: %v, want that it lives", err)
		}
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	select {
	case <-other.Done():
		t.Error("the process whose group was joined has ended")
	default:
	}
}

// The guard ends the processes of a sandbox after its first process has had time to
// do so.
func TestGuardWaitsForSandboxes(t *testing.T) {
	for _, c := range []struct {
		how  rune
		want string // what the group has written when the guard is done
	}{{guardKills, ""}, {guardWaits, "ended\n"}} {
		name := t.TempDir() + "/out"
		cmd := exec.CommandContext(t.Context(), "sh", "-c", `read -r end; sleep 0.2; echo ended >"$1"`, "sh", name)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		if c.how == guardWaits { // as the first process sees the owner's end
			_ = in.Close()
		}
		guard(strings.NewReader(string(c.how) + strconv.Itoa(cmd.Process.Pid) + " none\n"))
		<-ended
		_ = in.Close()
		data, _ := os.ReadFile(name)
		if string(data) != c.want {
			t.Errorf("after %c: got %q, want %q", c.how, data, c.want)
		}
	}
}
