package gateway

import (
	"cmp"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	// maxRecent is how many processes are remembered that held a socket lately.
	maxRecent = 32
	// maxSightings is how many descriptors are remembered of each.
	maxSightings = 4096
)

// holders finds the process that holds a socket. Linux does not say, so the
// descriptors of our user's processes are looked through: first of those that held
// one before, then of the youngest, which most clients are that connect once.
//
// A client with many connections has many descriptors, and to read them all for each connection
// would keep the connections of other clients waiting. So those that ask meanwhile share one look:
// each waits for at most two, that of others and its own. A look leaves hints, which are read
// again to prove them; descriptors that were not seen before are read first.
type holders struct {
	mu      sync.Mutex
	recent  []int // the last one last
	known   map[int]sightings
	looking bool      // somebody looks
	waiting []*wanted // for the next look
	clock   uint64    // of sightings
}

// wanted is a socket whose holder somebody waits for.
type wanted struct {
	inode uint32
	at    place
	found bool
	turn  chan bool // true means that it is its turn to look, false that others have
}

// place is a descriptor: a directory of descriptors below /proc/<pid>, and the name there.
type place struct {
	pid       int
	dir, name string
}

// sightings are the descriptors of a process: what they were when they were last read.
type sightings struct {
	names   map[string]sighting
	sockets map[uint32]string // by inode
}

type sighting struct {
	inode uint32 // 0 for what is not a socket
	when  uint64
}

// find returns a process that holds the socket of that inode, to be closed.
func (h *holders) find(inode uint32) (process, bool) {
	for range 2 { // a descriptor may move while it is looked for
		if p, ok := h.remembered(inode).proved(inode); ok {
			return p, true
		}
		at, ok := h.search(inode)
		if !ok {
			return process{}, false
		}
		if p, ok := at.proved(inode); ok {
			return p, true
		}
	}
	return process{}, false
}

// remembered returns where a socket was seen.
func (h *holders) remembered(inode uint32) place {
	h.mu.Lock()
	defer h.mu.Unlock()
	for pid, s := range h.known {
		if name, ok := s.sockets[inode]; ok {
			return place{pid, "fd", name}
		}
	}
	return place{}
}

// proved opens the process of a place if it holds the socket there now.
func (at place) proved(inode uint32) (process, bool) {
	if at.pid == 0 {
		return process{}, false
	}
	p, err := openProcess(at.pid)
	if err != nil {
		return process{}, false
	}
	if socketAt(p.fd, at.dir+"/"+at.name) != inode {
		p.close()
		return process{}, false
	}
	return p, true
}

// search looks for a socket, together with all others that are waited for.
func (h *holders) search(inode uint32) (place, bool) {
	w := &wanted{inode: inode, turn: make(chan bool, 1)}
	h.mu.Lock()
	h.waiting = append(h.waiting, w)
	mine := !h.looking
	h.looking = true
	h.mu.Unlock()
	if !mine && !<-w.turn {
		return w.at, w.found
	}
	h.mu.Lock()
	now := h.waiting
	h.waiting = nil
	h.mu.Unlock()
	h.look(now)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.waiting) > 0 {
		h.waiting[0].turn <- true
	} else {
		h.looking = false
	}
	return w.at, w.found
}

// look looks for sockets until all are found, and tells each waiting one as soon as it is.
func (h *holders) look(all []*wanted) {
	open := make(map[uint32][]*wanted, len(all))
	for _, w := range all {
		open[w.inode] = append(open[w.inode], w)
	}
	h.mu.Lock()
	pids := slices.Clone(h.recent)
	h.mu.Unlock()
	slices.Reverse(pids)
	for _, pid := range pids {
		h.lookAt(pid, false, open)
	}
	if len(open) > 0 {
		pids = ownProcesses()
	}
	// A thread can have descriptors of its own (CLONE_FILES): threads are searched only
	// if no process holds the socket.
	for _, threads := range []bool{false, true} {
		for _, pid := range pids {
			h.lookAt(pid, threads, open)
		}
	}
	for _, left := range open {
		for _, w := range left {
			w.turn <- false
		}
	}
}

// lookAt looks for sockets in a process, or with threads in those of its threads that do not share
// the process's descriptors.
func (h *holders) lookAt(pid int, threads bool, open map[uint32][]*wanted) {
	if len(open) == 0 {
		return
	}
	p, err := openProcess(pid)
	if err != nil {
		h.forget(pid)
		return
	}
	defer p.close()
	if !threads {
		h.read(p, open)
		return
	}
	for _, tid := range namesIn(p.fd, "task") {
		id, err := strconv.Atoi(tid)
		if err != nil || id == pid || sameFiles(pid, id) {
			continue
		}
		dir := "task/" + tid + "/fd"
		for _, name := range namesIn(p.fd, dir) {
			settle(open, socketAt(p.fd, dir+"/"+name), place{pid, dir, name})
		}
	}
}

// settle tells those that wait for a socket where it is.
func settle(open map[uint32][]*wanted, inode uint32, at place) (found bool) {
	for _, w := range open[inode] {
		w.at, w.found, found = at, true, true
		w.turn <- false
	}
	delete(open, inode)
	return found
}

// read reads the descriptors of a process: first those that were not there before, which it remembers,
// and then, until all sockets are found, those that were read last, because a process uses numbers again.
func (h *holders) read(p process, open map[uint32][]*wanted) {
	names := namesIn(p.fd, "fd")
	h.mu.Lock()
	old, known := h.known[p.pid]
	h.mu.Unlock()
	slices.SortFunc(names, func(a, b string) int {
		x, seen := old.names[a]
		y, other := old.names[b]
		if seen != other {
			if seen {
				return 1
			}
			return -1
		}
		return cmp.Compare(y.when, x.when)
	})
	s := sightings{make(map[string]sighting, len(names)), make(map[uint32]string, len(names))}
	h.clock++
	for _, name := range names {
		seen, ok := old.names[name]
		if len(open) > 0 || !ok && len(s.names) < maxSightings {
			seen, ok = sighting{socketAt(p.fd, "fd/"+name), h.clock}, true
			if settle(open, seen.inode, place{p.pid, "fd", name}) {
				known = true
				h.remember(p.pid)
			}
		}
		if ok && len(s.names) < maxSightings {
			s.names[name] = seen
			if seen.inode != 0 {
				s.sockets[seen.inode] = name
			}
		}
	}
	if known {
		h.mu.Lock()
		h.known[p.pid] = s
		h.mu.Unlock()
	}
}

// remember notes a process that holds a socket.
func (h *holders) remember(pid int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil {
		h.known = map[int]sightings{}
	}
	if i := slices.Index(h.recent, pid); i >= 0 {
		h.recent = slices.Delete(h.recent, i, i+1)
	}
	if len(h.recent) == maxRecent {
		delete(h.known, h.recent[0])
		h.recent = slices.Delete(h.recent, 0, 1)
	}
	h.recent = append(h.recent, pid)
}

// forget forgets a process that has ended.
func (h *holders) forget(pid int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, pid)
	if i := slices.Index(h.recent, pid); i >= 0 {
		h.recent = slices.Delete(h.recent, i, i+1)
	}
}

// ownProcesses returns the ids of our user's processes, the highest first.
func ownProcesses() []int {
	f, err := os.Open("/proc") //nolint:forbidigo // a folder of the system
	if noted(err) != nil {
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

// sameFiles reports whether two threads are known to share their descriptors.
func sameFiles(pid, tid int) bool {
	const kcmpFiles = 2 // linux/kcmp.h
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(pid), uintptr(tid), kcmpFiles, 0, 0, 0)
	return errno == 0 && r == 0
}

func namesIn(dir int, name string) []string {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if noted(err) != nil {
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

// socketAt returns the inode of the socket that a descriptor is, or 0.
func socketAt(dir int, name string) uint32 {
	var to [64]byte
	n, err := unix.Readlinkat(dir, name, to[:])
	if noted(err) != nil {
		return 0
	}
	digits, ok := strings.CutPrefix(string(to[:n]), "socket:[")
	if !ok {
		return 0
	}
	inode, err := strconv.ParseUint(strings.TrimSuffix(digits, "]"), 10, 32)
	if err != nil {
		return 0
	}
	return uint32(inode)
}
