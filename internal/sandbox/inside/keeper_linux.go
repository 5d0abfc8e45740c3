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
	asked   int // where calls come that it answers, -1 without
}

// exitSignal is added to the number of the signal that ended the program.
const exitSignal = 128

func (k *keeper) keep() int {
	// Nobody in the sandbox looks into this process.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if k.asked >= 0 {
		go newJudge(k.asked, k.plan).work() // until this process ends, with which it has all that it asks about
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

// pass hands a signal on to the program's group. Signals that a terminal sends to
// its whole foreground group have already reached the program.
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

// endAll kills what is left, and returns when nothing is. The kernel does so by itself
// when the first process of a PID namespace ends; elsewhere orphans have come to this
// process. It stays as long as it has any, because nobody would end processes that
// outlived it. The owner waits for this process with its own timeout.
func (k *keeper) endAll() {
	if k.plan.Init {
		return
	}
	_ = unix.Kill(-k.child, unix.SIGKILL)
	for pause := shortPause; ; pause = min(2*pause, longPause) {
		killTree(os.Getpid())
		ended, none := reapEnded()
		if none {
			return
		}
		if ended { // others may have lost their parent, and come here
			pause = shortPause / 2
			continue
		}
		time.Sleep(pause)
	}
}

// Pauses between two looks for what is left: the kernel takes a moment to end a process,
// and long for one that waits for a disk or a network.
const (
	shortPause = 100 * time.Microsecond
	longPause  = 50 * time.Millisecond
)

// reapEnded waits for the children that have ended. It reports whether there was one, and
// whether there is no child at all.
func reapEnded() (ended, none bool) {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		switch {
		case err == unix.EINTR: //nolint:errorlint // an errno
		case err == unix.ECHILD: //nolint:errorlint // an errno
			return ended, true
		case err != nil || pid == 0:
			return ended, false
		default:
			ended = true
		}
	}
}

// killTree kills the descendants of a process. Some may start others meanwhile, and the
// children of one that has ended go to the nearest subreaper above.
func killTree(top int) {
	next := descend()
	for level := next(top); len(level) > 0; {
		var below []int
		for _, pid := range level {
			_ = unix.Kill(pid, unix.SIGKILL)
			below = append(below, next(pid)...)
		}
		level = below
	}
}

// descend returns a function for the ids of a process's children. A kernel that does not
// list them (CONFIG_PROC_CHILDREN) is asked once for the parents of all processes.
func descend() func(pid int) []int {
	if _, err := os.Stat(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid())); err == nil {
		return childrenOf
	}
	return byParent()
}

func byParent() func(pid int) []int {
	all := map[int][]int{}
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return func(int) []int { return nil }
	}
	for _, d := range dirs {
		if pid, err := strconv.Atoi(d.Name()); err == nil {
			if s, ok := readStatus(pid); ok {
				all[s.parent] = append(all[s.parent], pid)
			}
		}
	}
	return func(pid int) []int { return all[pid] }
}

// childrenOf returns the ids of a process's children, orphans that came to it among them.
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
