package proc

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// adopter makes this process the parent of its descendants' orphans, so that none of
// them can leave its ancestors (PR_SET_CHILD_SUBREAPER), and reaps them when they
// end.
//
// Children that os/exec has started are none of its business: those are known by the
// pidfd that os keeps open until it has waited for them.
type adopter struct {
	mu    sync.Mutex // of users and stop
	users int
	stop  func()

	// hands is held while a child is reaped or ended: ids stay what they are.
	hands sync.Mutex
}

var orphanage adopter

// adopt begins to adopt, for as long as release has not been called as often. It
// reports false where the kernel or a sandbox has no pidfds.
func (a *adopter) adopt() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.users > 0 {
		a.users++
		return true
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return false
	}
	defer func() { _ = self.Release() }()
	if self.WithHandle(func(uintptr) {}) != nil {
		return false
	}
	if becomeSubreaper() != nil {
		return false
	}
	died, end, ended := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(died, syscall.SIGCHLD)
	go func() {
		defer close(ended)
		for {
			select {
			case <-died:
				a.reap()
			case <-end:
				return
			}
		}
	}()
	a.users, a.stop = 1, func() {
		signal.Stop(died)
		close(end)
		<-ended
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) // it was possible to set it
		a.reap()
	}
	return true
}

func (a *adopter) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.users--; a.users == 0 {
		a.stop()
	}
}

// reap waits for the orphans that have ended.
func (a *adopter) reap() {
	a.hands.Lock()
	defer a.hands.Unlock()
	for {
		pid := exited()
		if pid == 0 {
			return
		}
		// It has ended, so its pidfd, if it has one, was open before we look.
		if !started()[pid] {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // it is there
			continue
		}
		// The kernel names that one again and again until it has been waited for;
		// orphans may have ended behind it.
		var zombies []int
		for _, d := range children() {
			if st, err := d.stat(); err == nil && st.state == 'Z' {
				zombies = append(zombies, d.pid)
			}
			d.close()
		}
		ours := started()
		for _, pid := range zombies {
			if !ours[pid] {
				_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
			}
		}
		return
	}
}

// exited returns a child that has ended and was not waited for, 0 without one.
func exited() int {
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil {
		return 0
	}
	at := uintptr(12) // of si_pid, behind three int32 and aligned like a pointer
	if unsafe.Sizeof(at) == 8 {
		at = 16
	}
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), at))) //nolint:gosec // the kernel's own layout
}

// started returns the processes of which this one has a pidfd: the children that
// somebody here waits for.
func started() map[int]bool {
	pids := map[int]bool{}
	fds, err := readDirNames("/proc/self/fd")
	if err != nil {
		return pids
	}
	for _, fd := range fds {
		if to, err := os.Readlink("/proc/self/fd/" + fd); err != nil || !strings.Contains(to, "pidfd") {
			continue
		}
		info, err := os.ReadFile(filepath.Join("/proc/self/fdinfo", fd)) //nolint:forbidigo,gosec // a kernel file
		if err != nil {
			continue
		}
		for line := range bytes.Lines(info) {
			if v, ok := bytes.CutPrefix(line, []byte("Pid:")); ok {
				if pid, err := strconv.Atoi(string(bytes.TrimSpace(v))); err == nil {
					pids[pid] = true
				}
			}
		}
	}
	return pids
}

// orphans kills the adopted processes that were started since a moment and show
// neither the group nor the marker of a live one, and returns how many it found. An
// orphan that has left all of these behind could belong to any process of ours that
// was there when it was started; it ends with the first of them.
func (a *adopter) orphans(since uint64, live func(group int, marker string) bool) int {
	if os.Getpid() == 1 { // orphans of others come here, too, and all end with us
		return 0
	}
	a.hands.Lock()
	defer a.hands.Unlock()
	// No child may be half-started while we look: it would have no pidfd yet.
	syscall.ForkLock.RLock()
	all := children()
	ours := started()
	syscall.ForkLock.RUnlock()
	found := 0
	for _, d := range all {
		st, err := d.stat()
		if err == nil && !ours[d.pid] && st.state != 'Z' && st.started >= since {
			marker, _ := d.marker()
			if !live(st.group, marker) && unix.Kill(d.pid, unix.SIGKILL) == nil {
				found++
			}
		}
		d.close()
	}
	return found
}

func becomeSubreaper() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// ticks is the time since the machine was booted, in the unit of [procStat].
func ticks() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	const perSecond = 100                                    // USER_HZ of every platform that Go knows
	return uint64(ts.Nano()) / uint64(time.Second/perSecond) //nolint:gosec // not negative
}

// sealDescriptors makes every descriptor above 2 close-on-exec.
func sealDescriptors() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	fds, rerr := readDirNames("/proc/self/fd")
	if rerr != nil {
		return fmt.Errorf("descriptors that were inherited: %w, %w", err, rerr)
	}
	for _, fd := range numbers(fds) {
		if fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
