//go:build unix

package openfiles

import (
	"sync"
	"syscall"
)

// least is the usual limit of open files, for systems where the limit is unknown.
const least = 1024

// Limit returns how many files this process may have open. The Go runtime has raised the soft limit
// to the hard one when the program began.
var Limit = sync.OnceValue(func() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return least
	}
	return uint64(l.Cur) //nolint:gosec,unconvert,nolintlint // signed on some systems, and not negative
})

// Left reports whether so many more files can be opened now.
func Left(n int) bool {
	fds := make([]int, 0, n)
	defer func() {
		for _, fd := range fds {
			_ = syscall.Close(fd)
		}
	}()
	for range n {
		fd, err := syscall.Open("/", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
		if err != nil {
			return !Exhausted(err)
		}
		fds = append(fds, fd)
	}
	return true
}
