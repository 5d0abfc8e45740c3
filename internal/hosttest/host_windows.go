package hosttest

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/windows"
)

const pipes = false

var stops, continues os.Signal

// User is a signal that a test may give a meaning to; nil on a system without one.
var User os.Signal

// MakePipe makes a named pipe that only its owner opens.
func MakePipe(string) error { return errors.ErrUnsupported }

// Alive reports whether there is a process with an id, even one that has ended and was not waited for.
func Alive(pid int) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid)) //nolint:gosec // an id of a process
	if err != nil {
		return false
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var code uint32
	const running = 259 // STILL_ACTIVE
	return windows.GetExitCodeProcess(h, &code) == nil && code == running
}

func processorTime() (time.Duration, error) {
	var made, ended, kernel, user windows.Filetime
	err := windows.GetProcessTimes(windows.CurrentProcess(), &made, &ended, &kernel, &user)
	return ticks(kernel) + ticks(user), err
}

// ticks returns a time that is counted in units of 100 ns.
func ticks(t windows.Filetime) time.Duration {
	return time.Duration(int64(t.HighDateTime)<<32|int64(t.LowDateTime)) * 100
}

// NeedFiles skips the test if this process may not have n files open. Windows has no such limit.
func NeedFiles(testing.TB, uint64) {}
