package inside

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mark gives this process, and everything that it starts, a resource limit that tells
// who is in a sandbox: RLIMIT_LOCKS of 0, hard and soft. The kernel enforces that limit
// no longer (since Linux 2.4.25), every child inherits it, only CAP_SYS_RESOURCE outside
// all user namespaces raises it, and everybody reads it in /proc/<pid>/limits. So it
// stays with a program when the keeper, its parents, its group and its environment are
// gone. The gateway takes no process with it for its user.
func mark() error {
	var now unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &now); err != nil {
		return fmt.Errorf("mark the sandbox: %w", err)
	}
	if now == (unix.Rlimit{}) { // in a sandbox, whose filter refuses to set it
		return nil
	}
	if err := unix.Prlimit(0, unix.RLIMIT_LOCKS, &unix.Rlimit{}, nil); err != nil {
		return fmt.Errorf("mark the sandbox: %w", err)
	}
	return nil
}

// limits are the parts of the filter about resource limits: nobody sets that of the
// mark, whatever rights it has.
func (f Filter) limits() []unix.SockFilter {
	allow, refuse := ret(retAllow), ret(fail(unix.EPERM))
	prog := when(unix.SYS_SETRLIMIT, load(low(0)), equal(unix.RLIMIT_LOCKS, 0, 1), refuse, allow)
	part := []unix.SockFilter{
		load(low(1)), equal(unix.RLIMIT_LOCKS, 0, 5),
		load(low(2)), equal(0, 0, 2), load(low(2) + 4), equal(0, 1, 0), refuse, // it may be read
		allow,
	}
	if f.Shared {
		part = append(part[:len(part)-1],
			load(low(0)), equal(0, 0, 1), allow,
			load(low(2)), equal(0, 0, 3), load(low(2)+4), equal(0, 0, 1), allow, // it only reads them
			ret(f.ask()))
	}
	return append(prog, when(unix.SYS_PRLIMIT64, part...)...)
}
