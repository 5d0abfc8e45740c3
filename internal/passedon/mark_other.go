//go:build !linux

package passedon

import "syscall"

// Mark does nothing: nobody could read it here.
func Mark(string, syscall.RawConn) error { return nil }
