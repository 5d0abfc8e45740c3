//go:build !unix

package fastpath

import "syscall"

// gone cannot be told here: a client that has left is noticed when it is written to.
func gone(syscall.RawConn) bool { return false }
