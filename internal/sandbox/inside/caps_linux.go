package inside

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// securebits that take the special meaning from user 0, and lock that: SECBIT_NOROOT
// and its lock.
const secureNoRoot = 1<<0 | 1<<1

// dropCapabilities gives up every capability but those to keep, in all sets, so that
// no program that is executed gains one.
func dropCapabilities(keep []uint) error {
	for c := uint(0); c <= unix.CAP_LAST_CAP; c++ {
		if slices.Contains(keep, c) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && err != unix.EINVAL && err != unix.EPERM { //nolint:errorlint // errnos; EINVAL: an older kernel has not got it
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if len(keep) == 0 {
		// Only who may set it has anything to lose by it.
		_ = unix.Prctl(unix.PR_SET_SECUREBITS, secureNoRoot, 0, 0, 0)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have, data [2]unix.CapUserData
	if err := unix.Capget(&hdr, &have[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	for _, c := range keep {
		bit := have[c/32].Permitted & (1 << (c % 32))
		data[c/32].Permitted |= bit
		data[c/32].Effective |= bit
		data[c/32].Inheritable |= bit
	}
	// This is about one thread, the one that starts the program. The filter of system
	// calls leaves the other threads of this process little to do with theirs, and
	// nobody inside can trace it.
	if err := unix.Capset(&hdr, &data[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return nil
}

// dropAll gives up all capabilities of this thread.
func dropAll() error {
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capset(&hdr, &data[0])
}

// limit sets the resource limits of the program.
func limit(p *Plan) error {
	set := func(what string, resource int, n uint64) error {
		if n == 0 {
			return nil
		}
		var now unix.Rlimit
		if err := unix.Prlimit(0, resource, nil, &now); err != nil {
			return fmt.Errorf("limit %s: %w", what, err)
		}
		n = min(n, now.Max)
		if err := unix.Prlimit(0, resource, &unix.Rlimit{Cur: n, Max: n}, nil); err != nil {
			return fmt.Errorf("limit %s: %w", what, err)
		}
		return nil
	}
	if err := set("memory", unix.RLIMIT_DATA, p.Data); err != nil {
		return err
	}
	tasks := p.Tasks
	if tasks > 0 { // those of this process count, too
		tasks += spareThreads
	}
	if err := set("processes", unix.RLIMIT_NPROC, tasks); err != nil {
		return err
	}
	// A core file is a copy of a program's memory.
	return unix.Prlimit(0, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
}
