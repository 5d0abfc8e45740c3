//go:build unix

package hosttest

import (
	"os"
	"syscall"
	"testing"
	"time"
)

const pipes = true

var stops, continues os.Signal = syscall.SIGSTOP, syscall.SIGCONT

// User is a signal that a test may give a meaning to; nil on a system without one.
var User os.Signal = syscall.SIGUSR1

// MakePipe makes a named pipe that only its owner opens.
func MakePipe(path string) error { return syscall.Mkfifo(path, 0o600) }

// Alive reports whether there is a process with an id, even one that has ended and was not waited for.
func Alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func processorTime() (time.Duration, error) {
	var u syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), err
}

// NeedFiles skips the test if this process may not have n files open.
func NeedFiles(t testing.TB, n uint64) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil || limit.Cur < n {
		t.Skipf("%d files may be open, and %d are needed", limit.Cur, n)
	}
}
