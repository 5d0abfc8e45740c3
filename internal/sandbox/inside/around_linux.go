package inside

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	pid, code, err := startAround(p, int(c), signals)
	if err != nil {
		c.reply(&Reply{Error: err.Error()}, nil)
		return exitSetup
	}
	if pid == 0 {
		c.reply(&Reply{Error: fmt.Sprintf("%s ended with code %d", p.Path, code)}, nil)
		return code
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
			c.reply(&Reply{Error: fmt.Sprintf("what %s started ended with code %d", p.Path, code)}, nil)
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

// HiddenPerms is the mode of a hidden folder as bubblewrap takes it.
const HiddenPerms = "0111"

// maxStarts bounds how often the program is started. Where it complains of a path to hide, that
// path comes and goes, as sockets do, and the next start has a list of those that are there: such
// starts go on for longer, because a path can change in the moment between list and mount each time.
const (
	maxStarts = 20
	maxChurn  = 400
	churnTime = 10 * time.Second
)

// startAround starts the program with the control socket and, behind it, this program and
// standard error. It keeps what the program itself says of a start until that has failed for
// good: it says a lot about one that works the next time. It returns when this program runs
// inside, or the code of the program that has ended.
func startAround(p *Plan, control int, signals chan os.Signal) (pid, code int, err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, 0, fmt.Errorf("adopt orphans: %w", err)
	}
	self, err := unix.Open("/proc/self/exe", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("open this program: %w", err)
	}
	defer func() { _ = unix.Close(self) }()
	said, err := unix.MemfdCreate("stderr", unix.MFD_CLOEXEC)
	if err != nil {
		return 0, 0, fmt.Errorf("keep what %s says: %w", p.Path, err)
	}
	defer func() { _ = unix.Close(said) }()
	files := make([]uintptr, 0, 6+p.Keep)
	for i := range 3 + p.Keep {
		files = append(files, uintptr(i))
	}
	files = append(files, uintptr(control), uintptr(self), files[2])
	files[2] = uintptr(said)
	if p.Terminal { // what a terminal sends to all must not end the one between
		for _, s := range ofTerminal {
			signal.Ignore(s)
		}
	}
	defer signal.Notify(signals)
	// The plan of the process inside is there, so that its absence says that it was read.
	if err := pollin(control); err != nil {
		return 0, 0, err
	}
	begun, text := time.Now(), make([]byte, maxSaid)
	for n := 1; ; n++ {
		if err := unix.Ftruncate(said, 0); err != nil {
			return 0, 0, fmt.Errorf("keep what %s says: %w", p.Path, err)
		}
		if _, err := unix.Seek(said, 0, io.SeekStart); err != nil {
			return 0, 0, fmt.Errorf("keep what %s says: %w", p.Path, err)
		}
		pid, err := syscall.ForkExec(p.Path, existing(p.Argv), &syscall.ProcAttr{Env: os.Environ(), Files: files, Sys: &syscall.SysProcAttr{Setpgid: !p.Terminal}}) //nolint:gosec // named by the owner
		if err != nil {
			return 0, 0, fmt.Errorf("start %s: %w", p.Path, err)
		}
		ended, status := false, unix.WaitStatus(0)
		for !ended && pending(control) {
			if n, err := unix.Wait4(pid, &status, unix.WNOHANG, nil); n == pid || err == unix.ECHILD { //nolint:errorlint // an errno
				ended = true
			} else {
				time.Sleep(time.Millisecond)
			}
		}
		if !ended {
			release(p.Keep)
			return pid, 0, nil
		}
		code = status.ExitStatus()
		got, _ := unix.Pread(said, text, 0)
		text := text[:max(got, 0)]
		if pending(control) && (n < maxStarts || n < maxChurn && time.Since(begun) < churnTime && namesHidden(text, p.Argv)) {
			continue // it failed before it started this program
		}
		if len(text) > 0 {
			_, _ = os.Stderr.Write(text)
		}
		return 0, code, nil
	}
}

// namesHidden reports whether what the program said names a path that its arguments hide.
func namesHidden(said []byte, argv []string) bool {
	for i := range argv {
		if name, is := hides(argv, i); is && bytes.Contains(said, []byte(name)) {
			return true
		}
	}
	return false
}

// maxSaid bounds what is shown of it, in bytes.
const maxSaid = 4 << 10

// ownStderr puts standard error back in its place, in the process that the program has
// started. It lies behind the control socket and this program.
func ownStderr(control int) error {
	if err := unix.Dup3(control+2, 2, 0); err != nil {
		return fmt.Errorf("take standard error: %w", err)
	}
	return nil
}

// existing leaves out the files and folders to hide that have gone since the plan was
// made, such as the sockets of programs that have ended: bubblewrap would make them. A
// hidden folder has two places in the arguments, one that makes it and one that seals it.
func existing(argv []string) []string {
	gone := map[string]bool{}
	for i := range argv {
		if name, is := hides(argv, i); is {
			_, err := os.Lstat(name)
			gone[name] = errors.Is(err, fs.ErrNotExist)
		}
	}
	var kept []string
	for i := 0; i < len(argv); i++ {
		switch name, hidden := hides(argv, i); {
		case hidden && gone[name] && argv[i] == "--perms":
			i += 3
		case hidden && gone[name]:
			i += 2
		case argv[i] == "--remount-ro" && i+1 < len(argv) && gone[argv[i+1]]:
			i++
		default:
			kept = append(kept, argv[i])
		}
	}
	return kept
}

// hides returns the path that bubblewrap hides by the arguments at i, if they hide one.
func hides(argv []string, i int) (string, bool) {
	switch a := argv[i:]; {
	case len(a) > 2 && a[0] == "--ro-bind" && a[1] == "/dev/null":
		return a[2], true
	case len(a) > 3 && a[0] == "--perms" && a[1] == HiddenPerms && a[2] == "--tmpfs":
		return a[3], true
	}
	return "", false
}

// pollin waits until a socket can be read.
func pollin(fd int) error {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}} //nolint:gosec // a descriptor
	for {
		n, err := unix.Poll(fds, -1)
		switch {
		case n > 0:
			return nil
		case err != nil && err != unix.EINTR: //nolint:errorlint // an errno
			return fmt.Errorf("wait for the plan: %w", err)
		}
	}
}

// pending reports whether something in a socket was not read so far.
func pending(fd int) bool {
	n, err := unix.IoctlGetInt(fd, unix.TIOCINQ)
	return err == nil && n > 0
}
