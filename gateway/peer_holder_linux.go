package gateway

import (
	"os"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// maxRecent is how many processes are remembered that held a socket lately.
const maxRecent = 32

// holders finds the process that holds a socket. The kernel does not say, so the
// descriptors of our user's processes are looked through: first of those that held
// one before, then of the youngest, which most clients are that connect once.
type holders struct {
	mu     sync.Mutex
	recent []int // the last one last
}

// find returns a process that holds the socket of that inode, to be closed.
func (h *holders) find(inode uint32) (process, bool) {
	want := "socket:[" + strconv.FormatUint(uint64(inode), 10) + "]"
	h.mu.Lock()
	first := slices.Clone(h.recent)
	h.mu.Unlock()
	slices.Reverse(first)
	for _, pid := range first {
		if p, ok := holds(pid, want, false); ok {
			return h.remember(p), true
		}
	}
	all := ownProcesses()
	// A thread can have descriptors of its own (CLONE_FILES): it is looked at when
	// none of the processes is it.
	for _, threads := range []bool{false, true} {
		for _, pid := range all {
			if p, ok := holds(pid, want, threads); ok {
				return h.remember(p), true
			}
		}
	}
	return process{}, false
}

func (h *holders) remember(p process) process {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.recent, p.pid); i >= 0 {
		h.recent = slices.Delete(h.recent, i, i+1)
	}
	if len(h.recent) == maxRecent {
		h.recent = slices.Delete(h.recent, 0, 1)
	}
	h.recent = append(h.recent, p.pid)
	return p
}

// ownProcesses returns the ids of our user's processes, the highest first.
func ownProcesses() []int {
	f, err := os.Open("/proc") //nolint:forbidigo // a kernel directory
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil
	}
	uid := uint32(os.Getuid()) //nolint:gosec // a user's id
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstatat(int(f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) == nil && st.Uid == uid { //nolint:gosec // a descriptor
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	slices.Reverse(pids)
	return pids
}

// holds reports whether a process has a descriptor of that name, or with threads
// whether one of its threads has that does not share the process's descriptors.
func holds(pid int, want string, threads bool) (process, bool) {
	p, err := openProcess(pid)
	if err != nil {
		return p, false
	}
	if !threads {
		if hasDescriptor(p.fd, "fd", want) {
			return p, true
		}
	} else {
		for _, tid := range namesIn(p.fd, "task") {
			id, err := strconv.Atoi(tid)
			if err == nil && id != pid && !sameFiles(pid, id) && hasDescriptor(p.fd, "task/"+tid+"/fd", want) {
				return p, true
			}
		}
	}
	p.close()
	return p, false
}

// sameFiles reports whether two threads are known to share their descriptors.
func sameFiles(pid, tid int) bool {
	const kcmpFiles = 2 // linux/kcmp.h
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(pid), uintptr(tid), kcmpFiles, 0, 0, 0)
	return errno == 0 && r == 0
}

func namesIn(dir int, name string) []string {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil
	}
	return names
}

// hasDescriptor looks for a descriptor in a directory of them.
func hasDescriptor(dir int, name, want string) bool {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return false
	}
	var to [64]byte
	for _, n := range names {
		if k, err := unix.Readlinkat(fd, n, to[:]); err == nil && string(to[:k]) == want {
			return true
		}
	}
	return false
}
