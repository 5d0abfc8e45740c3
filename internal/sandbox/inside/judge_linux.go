package inside

import (
	"runtime"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// maxAnswering bounds how many calls are answered at once. The others wait: a file system
// that does not answer, such as one of a network, holds up its own callers first.
const maxAnswering = 4

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

// judge answers the calls that the filter hands over, until this process ends, or no
// process is left that could call.
type judge struct {
	asked int
	plan  *Plan
	root  unix.Stat_t // of this process, zero if it is not known
	calls map[uint32]attribute

	mu               sync.Mutex
	workers, waiting int
}

func newJudge(asked int, plan *Plan) *judge {
	j := &judge{asked: asked, plan: plan, workers: 1}
	if plan.Filter.Files {
		_ = unix.Stat("/", &j.root) // without it no path is like the caller's
		j.calls = map[uint32]attribute{}
		for _, a := range plan.Filter.answered() {
			j.calls[a.nr] = a
		}
	}
	return j
}

// work answers one call after another. Another one begins when all are busy.
func (j *judge) work() {
	defer j.leave()
	if j.plan.Filter.Files { // what it changes, it changes with no more rights than the caller
		runtime.LockOSThread() // for good: the thread ends with this function
		if err := dropAll(); err != nil {
			return
		}
	}
	for {
		var n notice
		if !j.next(&n) {
			return
		}
		if j.allBusy() {
			go j.work()
		}
		v := j.rule(&n)
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(j.asked), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&v))) //nolint:gosec // the kernel's interface; the caller may have ended
	}
}

// next waits for a call.
func (j *judge) next(n *notice) bool {
	j.mu.Lock()
	j.waiting++
	j.mu.Unlock()
	for {
		*n = notice{}                                                                                                            // the kernel wants it so
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(j.asked), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(n))) //nolint:gosec // the kernel's interface
		switch {
		case errno == 0:
			return true
		case errno == unix.EINTR:
		case errno == unix.ENOENT && !hungUp(j.asked): // the caller was interrupted, and calls again
		default:
			return false
		}
	}
}

// allBusy reports whether nobody waits for the next call, and somebody may.
func (j *judge) allBusy() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.waiting--
	if j.waiting > 0 || j.workers == maxAnswering {
		return false
	}
	j.workers++
	return true
}

// leave closes the descriptor with the last one. Without an answer a caller would wait
// forever; without the descriptor it gets an error.
func (j *judge) leave() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.workers--; j.workers == 0 {
		_ = unix.Close(j.asked)
	}
}

// hungUp reports whether the last process with a filter has ended.
func hungUp(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd)}} //nolint:gosec // a descriptor
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLHUP|unix.POLLNVAL) != 0
}

// rule decides on a call. The arguments of those about processes are numbers in registers,
// so the kernel goes on with them. Those about files are behind pointers that the caller
// may change: they are made here, with what was read once.
func (j *judge) rule(n *notice) ruling {
	v := ruling{id: n.id}
	if a, ok := j.calls[uint32(n.nr)]; ok { //nolint:gosec // a number of the filter's
		v.errno = -int32(j.change(n, a)) //nolint:gosec // small
		return v
	}
	if n.lets() {
		v.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	} else {
		v.errno = -int32(unix.EPERM)
	}
	return v
}

// valid reports whether the caller still waits: until then its id is not another's.
func (j *judge) valid(n *notice) bool {
	id := n.id
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(j.asked), unix.SECCOMP_IOCTL_NOTIF_ID_VALID, uintptr(unsafe.Pointer(&id))) //nolint:gosec // the kernel's interface
	return errno == 0
}
