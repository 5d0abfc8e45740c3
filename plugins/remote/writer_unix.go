//go:build unix

package remote

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// writeNow writes as much as a pipe takes without waiting, and returns how much that is. It
// reports no errors: they come back when the rest is written.
func writeNow(raw syscall.RawConn, b []byte) (n int) {
	_ = raw.Write(func(fd uintptr) bool {
		n, _ = unix.Write(int(fd), b) //nolint:gosec // a descriptor fits
		return true
	})
	return max(n, 0)
}
