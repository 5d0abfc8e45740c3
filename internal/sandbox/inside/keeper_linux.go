package inside

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// keeper stays beside the program: it passes signals on, reaps orphans, and ends
// everything when the program ends or the owner of the sandbox does.
type keeper struct {
	plan    *Plan
	control control
	signals chan os.Signal
	child   int
	asked   int // where calls about other processes come, -1 without
}

// exitSignal is added to the number of the signal that ended the program.
const exitSignal = 128

func (k *keeper) keep() int {
	// Nobody in the sandbox looks into this process.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if k.asked >= 0 {
		go judge(k.asked) // until this process ends, with which it has all that it asks about
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		var one [1]byte
		_, _ = k.control.Read(one[:]) // nothing is sent: it ends with the owner
	}()
	ended := make(chan int, 1)
	go func() { ended <- k.reap() }()
	var late <-chan time.Time
	if k.plan.Time > 0 {
		late = time.After(time.Duration(k.plan.Time))
	}
	code := exitSignal + int(unix.SIGKILL)
	for {
		select {
		case code = <-ended:
		case <-gone:
		case <-late:
		case s := <-k.signals:
			k.pass(s)
			continue
		}
		k.endAll()
		return code
	}
}

// reap waits for children and orphans until the program has ended.
func (k *keeper) reap() int {
	for {
		var st unix.WaitStatus
		pid, err := unix.Wait4(-1, &st, 0, nil)
		switch {
		case err == unix.EINTR: //nolint:errorlint // an errno
		case err != nil:
			return exitSetup
		case pid == k.child && st.Exited():
			return st.ExitStatus()
		case pid == k.child && st.Signaled():
			return exitSignal + int(st.Signal())
		}
	}
}

var (
	own        = []unix.Signal{unix.SIGCHLD, unix.SIGURG, unix.SIGPIPE, unix.SIGTTIN, unix.SIGTTOU, unix.SIGCONT} // about this process
	ofTerminal = []unix.Signal{unix.SIGINT, unix.SIGQUIT, unix.SIGTSTP, unix.SIGWINCH}
)

// pass hands a signal on to the program's group. What a terminal sends to its
// whole foreground group has reached the program already.
func (k *keeper) pass(s os.Signal) {
	to := -k.child
	if k.plan.Terminal {
		to = k.child
	}
	k.passTo(to, s)
}

func (k *keeper) passTo(pid int, s os.Signal) {
	sig, ok := s.(unix.Signal)
	if !ok || slices.Contains(own, sig) || k.plan.Terminal && slices.Contains(ofTerminal, sig) {
		return
	}
	_ = unix.Kill(pid, sig) // it may have ended
}

// endAll kills what is left. The kernel does so by itself when the first process of
// a PID namespace ends; elsewhere orphans have come to this process, and it kills
// until it has none.
func (k *keeper) endAll() {
	if k.plan.Init {
		return
	}
	_ = unix.Kill(-k.child, unix.SIGKILL)
	for range 2000 {
		kids := children()
		if len(kids) == 0 {
			return
		}
		for _, pid := range kids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		_, _ = unix.Wait4(-1, nil, unix.WNOHANG, nil)
		time.Sleep(time.Millisecond)
	}
}

// children returns the ids of this process's children, orphans among them.
func children() []int { return childrenOf(os.Getpid()) }

// childrenOf returns the ids of a process's children.
func childrenOf(pid int) []int {
	var ids []int
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	for _, t := range threads {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, t.Name())) //nolint:forbidigo // a kernel file
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(f); err == nil {
				ids = append(ids, pid)
			}
		}
	}
	return ids
}
