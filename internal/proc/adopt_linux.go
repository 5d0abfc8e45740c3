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
	"sync/atomic"
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

	told atomic.Pointer[func(killed int)] // of escapees; nil without

	// hands is held while a child is reaped or ended: ids stay what they are.
	hands sync.Mutex
}

var orphanage adopter

// adopt begins to adopt, for as long as release has not been called as often. It
// reports false where Linux or a sandbox has no pidfds. told is called for escapees,
// unless it is nil.
func (a *adopter) adopt(told func(killed int)) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if told != nil {
		a.told.Store(&told)
	}
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
				a.escapees()
			case <-end:
				return
			}
		}
	}()
	a.users, a.stop = 1, func() {
		signal.Stop(died)
		close(end)
		<-ended
		for range 100 { // nobody would end them after this
			if a.escapees() == 0 {
				break
			}
			time.Sleep(5 * time.Millisecond)
			a.reap()
		}
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
		a.told.Store(nil)
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
		// Linux names that one again and again until it has been waited for;
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
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), at))) //nolint:gosec // the layout of Linux
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
		info, err := os.ReadFile(filepath.Join("/proc/self/fdinfo", fd)) //nolint:forbidigo,gosec // a file of /proc
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

// escapees kills the adopted processes that carry the mark of a sandbox, and returns how
// many it found: the first process of a sandbox adopts what its programs leave, so one
// that comes here has lost it. No group or environment of its choice keeps it.
func (a *adopter) escapees() int {
	if selfBoxed() {
		return 0
	}
	a.hands.Lock()
	defer a.hands.Unlock()
	keepers := firstProcesses()
	var found []procDir
	for _, pid := range childIDs() {
		if keepers[pid] {
			continue
		}
		d, err := openProc(pid)
		if err != nil {
			continue
		}
		if yes, err := d.boxed(); err == nil && yes {
			found = append(found, d)
		} else {
			d.close()
		}
	}
	if len(found) == 0 {
		return 0
	}
	// One that is about to be started has a descriptor once the lock is free.
	syscall.ForkLock.RLock()
	ours := started()
	syscall.ForkLock.RUnlock()
	n, self := 0, os.Getpid()
	for _, d := range found {
		if parent, err := d.parent(); err == nil && parent == self && !ours[d.pid] && d.killBoxed() {
			n++
		}
		d.close()
	}
	if n > 0 {
		if told := a.told.Load(); told != nil {
			(*told)(n)
		}
	}
	return n
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
