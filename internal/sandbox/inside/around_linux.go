package inside

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Where another program makes the namespaces, such as bubblewrap, two processes of
// ours are around it: the first starts it and stays outside, because that program
// passes no signals on; the second is started by it, inside, and does what is left.
// Both have the control socket. The first reads its own plan from it, and from then on
// only looks for its end.

// endWithin bounds how long what is inside takes to end after the owner has.
const endWithin = 5 * time.Second

// around starts the program that makes the namespaces, and returns its exit code.
func around(p *Plan, c control, signals chan os.Signal) int {
	pid, err := startAround(p, int(c), signals)
	if err != nil {
		c.reply(&Reply{Error: err.Error()}, nil)
		return exitSetup
	}
	k := &keeper{plan: p, child: pid}
	ended := make(chan int, 1)
	go func() { ended <- k.reap() }()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		fds := []unix.PollFd{{Fd: int32(c), Events: unix.POLLRDHUP}} //nolint:gosec // a descriptor
		for {
			if n, err := unix.Poll(fds, -1); n > 0 || err != nil && err != unix.EINTR { //nolint:errorlint // an errno
				return
			}
		}
	}()
	for {
		select {
		case code := <-ended:
			// It matters only where nobody inside has answered.
			c.reply(&Reply{Error: fmt.Sprintf("%s ended with code %d; it says why on standard error", p.Path, code)}, nil)
			k.endAll()
			return code
		case <-gone:
			select {
			case <-ended: // the second process ends with the owner, too
			case <-time.After(endWithin):
			}
			k.endAll()
			return exitSignal + int(unix.SIGKILL)
		case s := <-signals:
			for _, inner := range childrenOf(pid) {
				k.passTo(inner, s)
			}
		}
	}
}

// startAround starts the program with the control socket and, behind it, this program.
func startAround(p *Plan, control int, signals chan os.Signal) (int, error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("adopt orphans: %w", err)
	}
	self, err := unix.Open("/proc/self/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open this program: %w", err)
	}
	defer func() { _ = unix.Close(self) }()
	files := make([]uintptr, 0, 5+p.Keep)
	for i := range 3 + p.Keep {
		files = append(files, uintptr(i))
	}
	files = append(files, uintptr(control), uintptr(self))
	if p.Terminal { // what a terminal sends to all must not end the one between
		for _, s := range ofTerminal {
			signal.Ignore(s)
		}
	}
	pid, err := syscall.ForkExec(p.Path, p.Argv, &syscall.ProcAttr{Env: os.Environ(), Files: files, Sys: &syscall.SysProcAttr{Setpgid: !p.Terminal}}) //nolint:gosec // named by the owner
	signal.Notify(signals)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", p.Path, err)
	}
	release(p.Keep)
	return pid, nil
}
