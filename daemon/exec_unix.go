//go:build unix

package daemon

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// noRestart says why this system has no restart in place, nil where it has.
var noRestart error

// inherited returns the file of a descriptor, nil for 0.
func inherited(fd int, name string) *os.File {
	if fd <= 2 {
		return nil
	}
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), name)
}

// inheritable lets the program that replaces this one have an open file.
func inheritable(f *os.File) error {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETFD, 0)
	return err
}

// replaceProcess runs a program in this process. It returns only with an error.
func replaceProcess(path string, args, env []string) error {
	return syscall.Exec(path, args, env) //nolint:gosec // the program that was checked
}

// duplicate returns another descriptor of an open file, with its lock.
func duplicate(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, fmt.Errorf("duplicate %s: %w", f.Name(), err)
	}
	return os.NewFile(uintptr(fd), f.Name()), nil
}
