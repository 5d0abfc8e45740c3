//go:build unix

package systemd

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the time of the system's monotonic clock, by which the service manager
// tells a READY that follows a reload from one before it.
func monotonic() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// passedFile returns the file of a descriptor that this process was started with, which no
// program that it starts gets.
func passedFile(fd int, name string) (*os.File, error) {
	syscall.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), name), nil
}
