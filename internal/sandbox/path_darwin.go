package sandbox

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openPath opens a file to hold it. No part of its name may be a symbolic link.
func openPath(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|unix.O_NOFOLLOW_ANY, 0) //nolint:forbidigo // what a policy names
}
