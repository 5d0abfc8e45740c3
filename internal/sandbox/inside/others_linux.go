package inside

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The kernel lets a process change limits, priorities and processors of every other one
// of its user. Where a sandbox shares the ids of the host's processes, the filter of
// system calls hands such calls to the keeper. It knows which processes are the
// sandbox's, and a filter does not: threads set their own by their ids, not by 0.

// others are the parts of the filter about other processes, but for their limits.
func (f Filter) others() (prog []unix.SockFilter) {
	if !f.Shared {
		return nil // it has no ids of others
	}
	allow, ask := ret(retAllow), ret(f.ask())
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

// lets reports whether a call is about a process of the sandbox. The process that is named
// may end meanwhile, and its id become another's: then one change gets through, after a
// search through all ids of the system.
func (n *notice) lets() bool { return within(int(n.pid), n.named()) }

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

// status is the status of a thread in /proc.
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
