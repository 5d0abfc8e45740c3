//go:build unix

package fastpath

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// gone reports whether the other end of a connection has closed it, or at least its writing
// half, which net/http takes for the same. It waits for nothing.
func gone(raw syscall.RawConn) bool {
	var left bool
	err := raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT) //nolint:gosec // a descriptor fits
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		case err != nil:
			left = true
		default:
			left = n == 0
		}
	})
	return left || err != nil
}
