//go:build unix

package proc

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// tree is a child with everything that it has started: its process group, and what endTree
// finds elsewhere.
type tree struct{}

// start starts the child.
func (tree) start(cmd *exec.Cmd) error { return cmd.Start() }

// ask asks the group to end.
func (tree) ask(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) }

// kill ends the group.
func (tree) kill(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

// endTree kills the remaining descendants of the child, even those that left its
// group. A process may start another before it dies, and orphans come to us, so it
// searches until none is left. It reports whether that succeeded.
func (p *Process) endTree() bool {
	for range 100 {
		if killMarked(p.marker)+orphanage.escapees()+orphanage.orphans(p.since, p.belongsToOther) == 0 {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// openPipe makes a pipe.
func openPipe(end) (r, w *os.File, err error) { return os.Pipe() }

// Gone reports whether no process has an id.
func Gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
