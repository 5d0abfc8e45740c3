//go:build unix

package hostfile

import (
	"errors"
	"os"
	"syscall"
)

// Lock waits for the lock of an open file.
func Lock(f *os.File) error { return flock(f, syscall.LOCK_EX) }

// TryLock takes the lock of an open file, or fails with [ErrLocked].
func TryLock(f *os.File) error {
	err := flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

// Unlock lets go of the lock of an open file.
func Unlock(f *os.File) error { return flock(f, syscall.LOCK_UN) }

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how) //nolint:gosec // a descriptor fits
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
