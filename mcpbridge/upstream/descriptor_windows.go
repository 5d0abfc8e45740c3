package upstream

import "syscall"

// canPeek says that quiet does not know, so no connection is used directly.
const canPeek = false

func quiet(uintptr) bool { return false }

// writeNow says that nothing is taken without waiting, which nobody can tell here: a goroutine
// writes, and waits.
func writeNow(uintptr, []byte) (int, error) { return 0, syscall.EAGAIN }
