package inside

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Bounds of what is read of a caller, as the kernel has them.
const (
	maxPath  = unix.PathMax
	maxName  = 256 // of an extended attribute, with its end
	maxValue = 64 << 10
)

// change makes a change to a file for a caller, if the plan lets it write the file.
// Everything of the caller is read once, and before its id can be another's. The
// opened file is the one that is checked and changed, wherever the path leads later.
func (j *judge) change(n *notice, a attribute) unix.Errno {
	c := caller("/proc/" + strconv.FormatUint(uint64(n.pid), 10))
	what, errno := c.ask(n, a)
	if errno != 0 {
		return errno
	}
	at, path, errno := j.seen(c, n, a)
	if errno != 0 {
		return errno
	}
	defer func() { _ = unix.Close(at) }()
	if !j.valid(n) {
		return unix.ENOENT // it has ended, and nobody gets this
	}
	file := at
	if path != "" {
		flags := uint64(unix.O_PATH | unix.O_CLOEXEC)
		if a.nofollow(n) {
			flags |= unix.O_NOFOLLOW
		}
		// Links of /proc lead this process to what the caller does not see.
		fd, err := unix.Openat2(at, path, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_MAGICLINKS})
		if err == unix.ENOSYS { //nolint:errorlint // an errno; in a sandbox, whose processes are all that /proc leads to
			fd, err = unix.Openat(at, path, int(flags), 0)
		}
		if err != nil {
			return number(err)
		}
		defer func() { _ = unix.Close(fd) }()
		file = fd
	}
	if errno := j.vet(file, n, a); errno != 0 {
		return errno
	}
	return what.apply(file, a)
}

// vet returns the error if a file must not be changed, else 0.
func (j *judge) vet(file int, n *notice, a attribute) unix.Errno {
	var st unix.Stat_t
	if err := unix.Fstat(file, &st); err != nil {
		return number(err)
	}
	if (j.plan.Landlock || j.plan.byForeign(file)) && !j.writes(file) {
		return unix.EACCES
	}
	if kind := st.Mode & unix.S_IFMT; a.change == changeMode && kind == unix.S_IFLNK {
		return unix.EOPNOTSUPP
	} else if j.plan.Filter.Bounded {
		if kind == unix.S_IFCHR || kind == unix.S_IFBLK {
			return unix.EACCES // it is everybody's
		}
		// For a folder, S_ISGID is about who owns what is made in it.
		if a.change == changeMode && kind != unix.S_IFDIR && n.args[a.rest]&asOwner != 0 {
			return unix.EPERM
		}
	}
	return 0
}

// writes reports whether the plan lets the program write a file. It goes by the name that
// the file was opened by, as Landlock does.
func (j *judge) writes(file int) bool {
	buf := make([]byte, maxPath)
	size, err := unix.Readlink(byDescriptor(file), buf)
	if err != nil || size == len(buf) {
		return false
	}
	opened := string(buf[:size])
	for _, name := range []string{opened, strings.TrimSuffix(opened, " (deleted)")} {
		if !strings.HasPrefix(name, "/") && j.plan.Filter.Bounded || Effective(j.plan.Rules, name, j.plan.Otherwise()) != Write {
			return false
		}
	}
	return true
}

// nofollow reports whether a call is about a link itself.
func (a attribute) nofollow(n *notice) bool {
	return a.link || a.flags != none && n.args[a.flags]&unix.AT_SYMLINK_NOFOLLOW != 0
}

func byDescriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// asked is the change of a call, read from its caller.
type asked struct {
	args  [6]uint64
	times []unix.Timespec // nil is now
	name  string
	value []byte
}

// apply makes the change.
func (w *asked) apply(file int, a attribute) unix.Errno {
	first, second := w.args[a.rest], w.args[min(a.rest+1, 5)]
	switch a.change {
	case changeMode:
		return number(unix.Chmod(byDescriptor(file), uint32(first)&0o7777)) //nolint:gosec // a mode
	case changeOwner:
		return number(unix.Fchownat(file, "", int(int32(first)), int(int32(second)), unix.AT_EMPTY_PATH)) //nolint:gosec // ids, and -1
	case changeTimes:
		var empty byte
		_, _, errno := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(file), uintptr(unsafe.Pointer(&empty)), uintptr(unsafe.Pointer(unsafe.SliceData(w.times))), unix.AT_EMPTY_PATH, 0, 0) //nolint:gosec // the kernel's interface
		return errno
	case setAttribute:
		return number(unix.Setxattr(byDescriptor(file), w.name, w.value, int(int32(w.args[a.rest+3])))) //nolint:gosec // flags
	case removeAttribute:
		return number(unix.Removexattr(byDescriptor(file), w.name))
	}
	return unix.ENOSYS
}

func number(err error) unix.Errno {
	if err == nil {
		return 0
	}
	if errno, ok := err.(unix.Errno); ok { //nolint:errorlint // of a system call
		return errno
	}
	return unix.EIO
}

// caller is the folder in /proc of a thread that waits for an answer.
type caller string

// ask reads the arguments of a call.
func (c caller) ask(n *notice, a attribute) (w asked, errno unix.Errno) {
	w.args = n.args
	switch at := n.args[a.rest]; {
	case a.change == changeTimes && at != 0:
		w.times, errno = c.times(at, a.unit)
	case a.change == setAttribute || a.change == removeAttribute:
		var name []byte
		if name, errno = c.text(at, maxName); errno == unix.ENAMETOOLONG || errno == 0 && len(name) == 0 {
			return w, unix.ERANGE
		}
		w.name = string(name)
		if size := w.args[min(a.rest+2, 5)]; a.change == setAttribute && errno == 0 {
			if size > maxValue {
				return w, unix.E2BIG
			}
			w.value = make([]byte, size)
			errno = c.read(n.args[a.rest+1], w.value)
		}
	}
	return w, errno
}

// times reads two times.
func (c caller) times(at uint64, u unit) ([]unix.Timespec, unix.Errno) {
	data := make([]byte, 32)
	if u == seconds {
		data = data[:16]
	}
	if errno := c.read(at, data); errno != 0 {
		return nil, errno
	}
	word := func(i int) int64 { return int64(binary.LittleEndian.Uint64(data[8*i:])) } //nolint:gosec // as the caller has it
	if u == seconds {
		return []unix.Timespec{{Sec: word(0)}, {Sec: word(1)}}, 0
	}
	times := []unix.Timespec{{Sec: word(0), Nsec: word(1)}, {Sec: word(2), Nsec: word(3)}}
	if u == microseconds {
		for i := range times {
			if times[i].Nsec < 0 || times[i].Nsec >= int64(time.Second/time.Microsecond) {
				return nil, unix.EINVAL
			}
			times[i].Nsec *= int64(time.Microsecond)
		}
	}
	return times, 0
}

// read fills a slice from the caller's memory.
func (c caller) read(at uint64, data []byte) unix.Errno {
	n, errno := c.some(at, data)
	if errno == 0 && n < len(data) {
		errno = unix.EFAULT
	}
	return errno
}

// text reads up to a zero, which has to come within so many bytes.
func (c caller) text(at uint64, limit int) ([]byte, unix.Errno) {
	data := make([]byte, limit)
	n, errno := c.some(at, data)
	if errno != 0 {
		return nil, errno
	}
	end := bytes.IndexByte(data[:n], 0)
	switch {
	case end >= 0:
		return data[:end], 0
	case n == limit:
		return nil, unix.ENAMETOOLONG
	default:
		return nil, unix.EFAULT
	}
}

// some reads the caller's memory as far as it is there.
func (c caller) some(at uint64, data []byte) (int, unix.Errno) {
	mem, err := unix.Open(string(c)+"/mem", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, unix.EPERM // it, or the system, lets nobody look
	}
	defer func() { _ = unix.Close(mem) }()
	n, err := unix.Pread(mem, data, int64(at)) //nolint:gosec // the kernel refuses what is no address
	if err != nil && len(data) > 0 {
		return 0, unix.EFAULT
	}
	return n, 0
}

// seen opens the file of a call as its caller sees it: the file itself, or the folder
// where a path starts.
func (j *judge) seen(c caller, n *notice, a attribute) (at int, path string, errno unix.Errno) {
	empty := a.path == none
	if !empty {
		if a.flags != none && uint32(n.args[a.flags])&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0 { //nolint:gosec // the kernel looks at no more of it
			return -1, "", unix.EINVAL
		}
		mayBe := a.flags != none && n.args[a.flags]&unix.AT_EMPTY_PATH != 0
		null := n.args[a.path] == 0
		// utimensat and futimesat take a descriptor without a path.
		if empty = null && (mayBe || a.change == changeTimes && a.dir != none && int32(n.args[a.dir]) != unix.AT_FDCWD); !empty { //nolint:gosec // a descriptor
			data, errno := c.text(n.args[a.path], maxPath)
			if errno != 0 {
				return -1, "", errno
			}
			if path = string(data); path == "" && !mayBe {
				return -1, "", unix.ENOENT
			}
		}
	}
	from, path, errno := c.from(n, a, path)
	if errno != 0 {
		return -1, "", errno
	}
	var root unix.Stat_t
	if path != "" { // one that has changed its root sees other files
		if err := unix.Stat(string(c)+"/root", &root); err != nil || root.Ino != j.root.Ino || root.Dev != j.root.Dev || root.Ino == 0 {
			return -1, "", unix.EPERM
		}
	}
	fd, err := unix.Open(from, unix.O_PATH|unix.O_CLOEXEC, 0)
	switch {
	case err == unix.ENOENT: //nolint:errorlint // an errno
		return -1, "", unix.EBADF
	case err != nil:
		return -1, "", unix.EPERM
	}
	return fd, path, 0
}

// from says where a path starts, and what is left of it then.
func (c caller) from(n *notice, a attribute, path string) (from, rest string, errno unix.Errno) {
	for _, own := range []string{"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/"} {
		// The C library has names for its descriptors, to change a link itself.
		if fd, rest, _ := strings.Cut(strings.TrimPrefix(path, own), "/"); strings.HasPrefix(path, own) {
			if _, err := strconv.ParseUint(fd, 10, 31); err != nil || rest == "" && a.nofollow(n) {
				return "", "", unix.EACCES
			}
			return string(c) + "/fd/" + fd, rest, 0
		}
	}
	dir := int32(unix.AT_FDCWD)
	if a.dir != none {
		dir = int32(n.args[a.dir]) //nolint:gosec // the kernel looks at no more of it
	}
	switch {
	case strings.HasPrefix(path, "/"):
		return "/", path, 0
	case dir == unix.AT_FDCWD && a.path != none:
		return string(c) + "/cwd", path, 0
	case dir < 0:
		return "", "", unix.EBADF
	default:
		return string(c) + "/fd/" + strconv.Itoa(int(dir)), path, 0
	}
}
