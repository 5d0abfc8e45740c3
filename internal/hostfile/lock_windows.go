package hostfile

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockedAt is the byte that is locked: the last that a file could have.
var lockedAt = windows.Overlapped{Offset: 0xffffffff, OffsetHigh: 0x7fffffff}

// Lock waits for the lock of an open file.
func Lock(f *os.File) error { return lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// TryLock takes the lock of an open file, or fails with [ErrLocked].
func TryLock(f *os.File) error {
	err := lock(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return ErrLocked
	}
	return err
}

func lock(f *os.File, flags uint32) error {
	at := lockedAt
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
}

// Unlock lets go of the lock of an open file.
func Unlock(f *os.File) error {
	at := lockedAt
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &at)
}
