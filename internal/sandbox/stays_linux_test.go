package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// escapesToNobody are attempts to put off the mark of a sandbox, after which nobody
// would know a program for what it is.
var escapesToNobody = []escape{
	{"put off the mark", "check", func(*place) string { return "unmark" }, NeedTree},
	{"put off the mark", "plugin", func(*place) string { return "unmark" }, NeedTree},
	{"put off the mark, guarded", "guarded", func(*place) string { return "unmark" }, NeedTree},
	{"put off the mark by another call, guarded", "guarded", func(*place) string { return "unmarkold" }, NeedTree},
	{"put off the mark of a child, guarded", "guarded", func(*place) string { return "child unmark" }, NeedTree},
}

func init() {
	none := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	attempts["unmark"] = func(pid string) error {
		n := 0
		_, _ = fmt.Sscan(pid, &n)
		return unix.Prlimit(n, unix.RLIMIT_LOCKS, &none, nil)
	}
	attempts["unmarkold"] = func(string) error { return unix.Setrlimit(unix.RLIMIT_LOCKS, &none) }
	// deep leaves more processes, each the child of the one before, than anybody who ends
	// them by levels counts. The last one tells.
	attempts["deep"] = func(fifo string) error {
		const script = `if [ "$1" = 0 ]; then echo up >&3; exec sleep 300; fi; sh -c "$LINE" sh $(($1 - 1)) & wait`
		f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		cmd := exec.Command("sh", "-c", script, "sh", "2120")
		cmd.Env, cmd.ExtraFiles = append(os.Environ(), "LINE="+script), []*os.File{f}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		err = errors.Join(cmd.Start(), f.Close())
		for range 10 { // the line takes its time on a busy machine
			if up := waitFor(filepath.Join(filepath.Dir(fifo), "up")); up == nil {
				break
			}
		}
		return err
	}
	// full fills the process table of its user, has the sandbox's own process work
	// meanwhile, and leaves the table full.
	attempts["full"] = func(fifo string) error {
		fd, err := unix.Open(fifo, unix.O_WRONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		self, keeper := os.Getpid(), os.Getppid()
		var core unix.Rlimit
		if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &core); err != nil {
			return err
		}
		for round := range 8 {
			var pids []int
			for {
				pid, err := fork()
				if err != nil {
					break
				}
				if pid == 0 {
					stay()
				}
				if pids = append(pids, pid); len(pids) > 20000 {
					return fmt.Errorf("the process table has no end: %w", errNotDone)
				}
			}
			if len(pids) == 0 {
				return errors.New("no process can be started")
			}
			for range 2000 {
				if err := unix.Prlimit(self, unix.RLIMIT_CORE, &core, nil); err != nil {
					break
				}
			}
			if round == 7 || os.Getppid() != keeper {
				if _, err := unix.Write(fd, []byte("up\n")); err != nil {
					return err
				}
				return waitFor(filepath.Join(filepath.Dir(fifo), "up"))
			}
			for _, pid := range pids {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
			for range pids {
				_, _ = unix.Wait4(-1, nil, 0, nil)
			}
		}
		return nil
	}
}

// fork makes a process that has no Go runtime but its memory: it does raw system calls,
// in functions that no scheduler interrupts.
//
//go:nosplit
func fork() (int, error) {
	pid, _, errno := unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(pid), nil
}

// stay leaves the session of its parent and sleeps forever.
//
//go:nosplit
func stay() {
	_, _, _ = unix.RawSyscall(unix.SYS_SETSID, 0, 0, 0)
	for {
		_, _, _ = unix.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// SEC-5: a program cannot have more left than the sandbox's own process ends, nor can it
// keep that from its work by a full process table.
func TestNothingOutlivesItsKeeper(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	for _, backend := range []string{Namespaces, Bwrap, Landlock} {
		for _, c := range []struct {
			name, profile, attempt string
			processes              int
		}{
			{"a line of 2120 processes", "guarded", "deep", 0},
			{"a full process table", "guarded", "full", 600},
			{"a full process table", "check", "full", 0},
			{"a full process table", "plugin", "full", 600},
		} {
			t.Run(strings.Join([]string{backend, c.profile, c.name}, "/"), func(t *testing.T) {
				b := needs(t, backend)
				if c.attempt == "full" && os.Geteuid() == 0 {
					t.Skip("no limit holds for root's processes")
				}
				p := newPlace(t)
				b.Own = []string{p.own}
				f := fifo(t, p)
				pol := p.policy(t, c.profile)
				if c.processes != 0 {
					pol.Limits.Processes = c.processes
				}
				ended := make(chan result, 1)
				go func() {
					got, err := b.start(t, pol, p.ws, []string{attemptEnv + "=" + c.attempt + " " + p.ws + "/fifo"}, testBinary(t))
					if err != nil {
						t.Errorf("start of %q = %v, want no error", c.attempt, err)
					}
					ended <- got
				}()
				upThenEnd(t, f, p.ws+"/up", func() {
					if got := <-ended; got.code != didIt {
						t.Errorf("the program: code %d, output %q, want %d", got.code, got.out, didIt)
					}
				})
			})
		}
	}
}
