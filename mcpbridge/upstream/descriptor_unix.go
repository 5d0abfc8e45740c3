//go:build unix

package upstream

import (
	"errors"
	"syscall"
)

// canPeek says that quiet knows.
const canPeek = true

// quiet reports whether the other end of a connection has neither closed it nor sent anything
// that is still to be read.
func quiet(fd uintptr) bool {
	var b [1]byte
	_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT) //nolint:gosec // a descriptor fits
	return errors.Is(err, syscall.EAGAIN)
}

// writeNow writes as much as a pipe or a connection takes without waiting; EAGAIN says that it
// takes nothing.
func writeNow(fd uintptr, b []byte) (int, error) { return syscall.Write(int(fd), b) } //nolint:gosec // a descriptor fits
