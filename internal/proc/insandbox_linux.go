package proc

import (
	"bytes"
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// InSandbox reports whether a process is one that a yaya has started in a sandbox, or
// was started by such a one. Each carries a mark, with all that it has started, whoever
// its parent is now (see boxed). Where this process carries it itself, being in a sandbox,
// ancestors decide, and for sandboxes of this process the marker in the environment: what
// a sandbox has left behind stays below its first process, which is known by its command
// line whichever yaya has started it. A process that ends while it is looked at is in
// one. A sandbox that this process is in itself does not count.
func InSandbox(pid int) bool {
	living.mu.Lock()
	pids, markers := map[int]bool{}, map[string]bool{}
	for p := range living.procs {
		if p.sandboxed() {
			pids[p.PID()], markers[p.marker] = true, true
		}
	}
	living.mu.Unlock()
	self := os.Getpid()
	above := ancestors(self)
	at, err := openProc(pid)
	if err != nil {
		return true
	}
	defer func() { at.close() }()
	for range maxDepth {
		if at.pid == self || slices.Contains(above, at.pid) {
			return false
		}
		if pids[at.pid] || at.keepsSandbox() {
			return true
		}
		if !selfBoxed() {
			if yes, err := at.boxed(); yes || err != nil {
				return true
			}
		}
		if len(markers) > 0 {
			if marker, found := at.marker(); found && markers[marker] {
				return true
			}
		}
		parent, err := at.parent()
		if err != nil {
			return true
		}
		if parent <= 1 {
			return false
		}
		up, hidden := openProc(parent)
		if hidden == nil {
			if _, err := up.parent(); errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
				hidden = err
			}
		}
		// Parents do not come back: what was opened is the parent if it is the parent
		// before and after.
		if again, err := at.parent(); err != nil || again != parent {
			up.close()
			if err != nil {
				return true
			}
			continue
		}
		if hidden != nil {
			// Linux was told to hide processes (hidepid in proc(5)): those of others,
			// and the first ones of sandboxes, into which nobody may look.
			up.close()
			return !slices.Contains(above, parent) && parent != self && (pids[parent] || selfBoxed() && at.filtered())
		}
		at.close()
		at = up
	}
	return true
}

// keeper is how the command line of the first process of a sandbox begins. That process
// adopts the orphans of the sandbox, and nobody in there can change it, or end it where
// the sandbox has process ids of its own or Landlock bounds signals (version 6). Elsewhere
// what outlives it is known by [Descends], as long as the yaya that has started it runs.
var keeper = []byte("yaya\x00__sandbox\x00")

// keepsSandbox reports whether a process is the first one of a sandbox.
func (d procDir) keepsSandbox() bool {
	line, err := d.read("cmdline", int64(len(keeper)))
	return err == nil && bytes.Equal(line, keeper)
}

// filtered reports whether a process can be in a sandbox, where the mark does not say it:
// no program gets rid of these two, nor does what it starts.
func (d procDir) filtered() bool {
	status, err := d.read("status", 16<<10)
	return err != nil || bytes.Contains(status, []byte("\nNoNewPrivs:\t1\n")) && bytes.Contains(status, []byte("\nSeccomp:\t2\n"))
}
