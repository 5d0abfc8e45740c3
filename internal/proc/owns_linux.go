package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	maxDepth  = 256 // parents that are walked up
	walkAgain = 16  // walks in which a parent died
)

// Descends reports whether a process was started by this one, by one of its
// descendants, or by another yaya. Programs started by [StartForUser] do not count,
// nor does this process itself. If the descent of a process is unknown, it counts
// as a descendant.
//
// The answer is certain while this process adopts orphans (see [Manager.Adopt]): a
// descendant cannot leave its ancestors then. The marker in the environment is a
// second proof, for descendants of a yaya that has died.
func Descends(pid int) bool {
	for range walkAgain {
		if yes, ok := walkUp(pid); ok {
			return yes
		}
	}
	return true
}

// walkUp walks from a process to its ancestors. It reports ok false when one of them
// died on the way.
func walkUp(pid int) (descends, ok bool) {
	self := os.Getpid()
	switch {
	case pid == self:
		return false, true
	case pid <= 0:
		return true, true
	}
	above := ancestors(self)
	at, err := openProc(pid)
	if err != nil {
		return true, true
	}
	defer func() { at.close() }()
	for n := range maxDepth {
		switch {
		case at.pid == self:
			return true, true
		case forUser(at.pid):
			return false, true
		case at.pid == 1 || slices.Contains(above, at.pid):
			return false, true // where our own ancestors begin, nothing is ours
		case n > 0 && at.isYaya(), at.marked():
			return true, true
		}
		parent, err := at.parent()
		if err != nil {
			return true, n == 0
		}
		if parent == 0 { // it came into our namespace from outside
			return false, true
		}
		up, err := openProc(parent)
		if err != nil && parent != self && parent != 1 && !slices.Contains(above, parent) {
			// It has died, or it is hidden from us: then it may be anybody's.
			again, perr := at.parent()
			return true, perr == nil && again == parent
		}
		// Parents do not come back: if it is the parent before and after it was
		// opened, then what was opened is the parent.
		if again, err := at.parent(); err != nil || again != parent {
			up.close()
			return true, false
		}
		at.close()
		up.pid, at = parent, up
	}
	return true, true
}

// ancestors of a process as far as they can be seen.
func ancestors(pid int) []int {
	var all []int
	for range maxDepth {
		d, err := openProc(pid)
		if err != nil {
			return all
		}
		pid, err = d.parent()
		d.close()
		if err != nil || pid <= 1 {
			return all
		}
		all = append(all, pid)
	}
	return all
}

// procDir is an open /proc/<pid>. All that is read by way of it is about the process
// that had the id when it was opened, and fails once that has gone.
type procDir struct {
	pid int
	fd  int
}

func openProc(pid int) (procDir, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return procDir{pid: pid, fd: -1}, err
	}
	return procDir{pid: pid, fd: fd}, nil
}

func (d procDir) close() {
	if d.fd >= 0 {
		_ = unix.Close(d.fd)
	}
}

func (d procDir) read(name string, limit int64) ([]byte, error) {
	fd, err := unix.Openat(d.fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, limit)) //nolint:forbidigo // bounded by the reader
}

func (d procDir) parent() (int, error) {
	st, err := d.stat()
	return st.parent, err
}

// procStat is a part of proc_pid_stat(5).
type procStat struct {
	state   byte
	parent  int
	group   int
	started uint64 // in ticks since the machine was booted
}

var errStat = errors.New("stat of a process cannot be read")

// statFields returns the fields from the third on, the state.
func (d procDir) statFields() ([]string, error) {
	data, err := d.read("stat", 4096)
	if err != nil {
		return nil, err
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])) // the name before it may hold anything
	if len(fields) < 20 {
		return nil, errStat
	}
	return fields, nil
}

func (d procDir) stat() (procStat, error) {
	fields, err := d.statFields()
	if err != nil {
		return procStat{}, err
	}
	parent, err1 := strconv.Atoi(fields[1])
	group, err2 := strconv.Atoi(fields[2])
	started, err3 := strconv.ParseUint(fields[19], 10, 64)
	return procStat{fields[0][0], parent, group, started}, errors.Join(err1, err2, err3)
}

// self is our own program's file.
var selfExe = sync.OnceValues(func() (st unix.Stat_t, err error) {
	err = unix.Stat("/proc/self/exe", &st)
	return st, err
})

// isYaya reports whether a process runs this program: then what it has started was
// started by an agent of its own.
func (d procDir) isYaya() bool {
	own, err := selfExe()
	var st unix.Stat_t
	return err == nil && unix.Fstatat(d.fd, "exe", &st, 0) == nil && st.Dev == own.Dev && st.Ino == own.Ino
}

// marked reports whether a process has a marker in its environment which this one
// has not.
func (d procDir) marked() bool {
	marker, found := d.marker()
	return found && marker != os.Getenv(markerEnv)
}

func (d procDir) marker() (string, bool) {
	env, err := d.read("environ", 4<<20)
	if err != nil {
		return "", false
	}
	for kv := range bytes.SplitSeq(env, []byte{0}) {
		if m, ok := bytes.CutPrefix(kv, []byte(markerEnv+"=")); ok {
			return string(m), true
		}
	}
	return "", false
}

// children returns the processes whose parent is this one.
func children() []procDir {
	var all []procDir
	self := os.Getpid()
	for _, pid := range childIDs() {
		d, err := openProc(pid)
		if err != nil {
			continue
		}
		if parent, err := d.parent(); err == nil && parent == self {
			all = append(all, d)
		} else {
			d.close()
		}
	}
	return all
}

// childIDs returns the ids of our children, or of all processes where Linux
// does not list children.
func childIDs() []int {
	var ids []int
	threads, err := readDirNames("/proc/self/task")
	for _, t := range threads {
		var data []byte
		if data, err = os.ReadFile(fmt.Sprintf("/proc/self/task/%s/children", t)); err != nil { //nolint:forbidigo // a file of /proc
			break
		}
		ids = append(ids, numbers(strings.Fields(string(data)))...)
	}
	if err == nil {
		return ids
	}
	all, err := readDirNames("/proc")
	if err != nil {
		return nil
	}
	return numbers(all)
}

func numbers(names []string) []int {
	ids := make([]int, 0, len(names))
	for _, n := range names {
		if id, err := strconv.Atoi(n); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

func readDirNames(dir string) ([]string, error) {
	f, err := os.Open(dir) //nolint:forbidigo,gosec // a folder of /proc
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return f.Readdirnames(-1)
}
