package inside

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel lets a process change limits, priorities and processors of every other one
// of its user. Where a sandbox shares the ids of the host's processes, the filter of
// system calls hands such calls to the keeper. It knows which processes are the
// sandbox's, and a filter does not: threads set their own by their ids, not by 0.

// ask is what becomes of a call about another process.
func (f Filter) ask() uint32 {
	if f.refuse {
		return fail(unix.EPERM)
	}
	return unix.SECCOMP_RET_USER_NOTIF
}

// others are the parts of the filter about other processes.
func (f Filter) others() (prog []unix.SockFilter) {
	if !f.Shared {
		return nil // it has no ids of others
	}
	allow, ask := ret(retAllow), ret(f.ask())
	prog = append(prog, when(unix.SYS_PRLIMIT64,
		load(low(0)), equal(0, 0, 1), allow,
		load(low(2)), equal(0, 0, 3), load(low(2)+4), equal(0, 0, 1), allow, // it only reads them
		ask)...)
	for _, nr := range []uint32{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR} {
		prog = append(prog, when(nr, load(low(0)), equal(0, 0, 1), allow, ask)...)
	}
	// A group, and all of the user's, may hold processes of both sides.
	for _, c := range []struct{ nr, process uint32 }{{unix.SYS_SETPRIORITY, unix.PRIO_PROCESS}, {unix.SYS_IOPRIO_SET, ioprioProcess}} {
		prog = append(prog, when(c.nr, load(low(0)), equal(c.process, 1, 0), ret(fail(unix.EPERM)), load(low(1)), equal(0, 0, 1), allow, ask)...)
	}
	return prog
}

const ioprioProcess = 1 // IOPRIO_WHO_PROCESS

// notice is the kernel's struct seccomp_notif, and ruling its struct seccomp_notif_resp.
type notice struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type ruling struct {
	id    uint64
	val   int64
	errno int32
	flags uint32
}

// judge answers the calls that the filter hands over, until this process ends. It lets
// through those about processes of the sandbox. The process that is named may end
// meanwhile, and its id become another's: then one change gets through, after a search
// through all ids of the system.
func judge(asked int) {
	// Without an answer the caller would wait for ever; without this it gets an error.
	defer func() { _ = unix.Close(asked) }()
	for {
		var n notice
		// It is EINTR or ENOENT when the caller was interrupted, and calls again.
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(asked), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))) //nolint:gosec // the kernel's interface
		if errno == unix.EINTR || errno == unix.ENOENT {
			continue
		}
		if errno != 0 {
			return
		}
		v := ruling{id: n.id, errno: -int32(unix.EPERM)}
		if within(int(n.pid), n.named()) {
			v.errno, v.flags = 0, unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
		}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(asked), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&v))) //nolint:gosec // the kernel's interface; the caller may have ended
	}
}

// named is the process that a call is about.
func (n *notice) named() int {
	arg := n.args[0]
	if nr := uint32(n.nr); nr == unix.SYS_SETPRIORITY || nr == unix.SYS_IOPRIO_SET { //nolint:gosec // a number of the filter's
		arg = n.args[1]
	}
	return int(int32(arg)) //nolint:gosec // the kernel looks at no more of it
}

// maxAncestors bounds how far ancestors are looked for.
const maxAncestors = 1000

// within reports whether a thread that another one names is of this process's sandbox:
// its orphans come to this process, so all have it as an ancestor. A caller with a
// namespace of its own below names only what is in there.
func within(caller, named int) bool {
	top := os.Getpid()
	of, ok := readStatus(caller)
	if !ok {
		return false
	}
	if mine, ok := readStatus(top); ok && of.depth > mine.depth {
		return true
	}
	for range maxAncestors {
		at, ok := readStatus(named)
		if !ok || at.parent <= 0 {
			return false
		}
		if named = at.parent; named == top {
			return true
		}
	}
	return false
}

// status is what the kernel says of a thread.
type status struct {
	parent int // process
	depth  int // of PID namespaces
}

func readStatus(tid int) (s status, ok bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid)) //nolint:forbidigo // a kernel file
	if err != nil {
		return s, false
	}
	for line := range bytes.Lines(data) {
		key, value, _ := strings.Cut(strings.TrimSpace(string(line)), ":")
		switch key { // the name of the program comes before, with its line ends escaped
		case "PPid":
			s.parent, err = strconv.Atoi(strings.TrimSpace(value))
			ok = err == nil
		case "NSpid":
			s.depth = len(strings.Fields(value))
		}
	}
	return s, ok
}
