// Package hosttest hides from tests how Unix and Windows differ, and skips the tests whose subject
// a system does not have. It is not shipped.
package hosttest

import (
	"os"
	"testing"
	"time"
)

// Pipe makes a named pipe, or skips the test on a system without them.
func Pipe(t testing.TB, path string) {
	t.Helper()
	NeedPipes(t)
	if err := MakePipe(path); err != nil {
		t.Fatal(err)
	}
}

// NeedPipes skips the test on a system without named pipes, where [MakePipe] fails.
func NeedPipes(t testing.TB) {
	t.Helper()
	if !pipes {
		t.Skip("this system has no named pipes in its folders")
	}
}

// Kill ends a process by force.
func Kill(t testing.TB, pid int) {
	t.Helper()
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Freeze stops a process, and returns what lets it go on, which may be called again. It skips the
// test on a system that cannot stop one.
func Freeze(t testing.TB, p *os.Process) (thaw func()) {
	t.Helper()
	if stops == nil {
		t.Skip("this system cannot stop a process")
	}
	if err := p.Signal(stops); err != nil {
		t.Fatal(err)
	}
	return func() { _ = p.Signal(continues) } // of a process that may have ended
}

// ProcessorTime returns the processor time that this process has used.
func ProcessorTime(t testing.TB) time.Duration {
	t.Helper()
	used, err := processorTime()
	if err != nil {
		t.Fatal(err)
	}
	return used
}
