package inside

import (
	"slices"

	"golang.org/x/sys/unix"
)

// Landlock has no right for the mode, the owner, the times and the attributes of a file:
// whoever owns it changes them, wherever it lies. The filter of system calls sees no
// paths, so the keeper looks at the file, and makes the change itself.

const none = -1 // no such argument

// change is the change that a call makes to a file.
type change int

const (
	changeMode change = iota
	changeOwner
	changeTimes
	setAttribute
	removeAttribute
)

// unit is that of a call's times.
type unit int

const (
	nanoseconds unit = iota
	microseconds
	seconds
)

// attribute is a system call that changes what is said of a file, with the numbers of its
// arguments: the folder or the file, the path, the flags, and the first of the rest.
type attribute struct {
	nr                     uint32
	dir, path, flags, rest int
	change                 change
	unit                   unit
	link                   bool // a symbolic link itself
}

var attributes = []attribute{
	{nr: unix.SYS_FCHMOD, dir: 0, path: none, flags: none, rest: 1, change: changeMode},
	{nr: unix.SYS_FCHMODAT, dir: 0, path: 1, flags: none, rest: 2, change: changeMode},
	{nr: unix.SYS_FCHMODAT2, dir: 0, path: 1, flags: 3, rest: 2, change: changeMode},
	{nr: unix.SYS_FCHOWN, dir: 0, path: none, flags: none, rest: 1, change: changeOwner},
	{nr: unix.SYS_FCHOWNAT, dir: 0, path: 1, flags: 4, rest: 2, change: changeOwner},
	{nr: unix.SYS_UTIMENSAT, dir: 0, path: 1, flags: 3, rest: 2, change: changeTimes},
}

// extended are the calls for extended attributes, such as lists of access (ACL).
var extended = []attribute{
	{nr: unix.SYS_SETXATTR, dir: none, path: 0, flags: none, rest: 1, change: setAttribute},
	{nr: unix.SYS_LSETXATTR, dir: none, path: 0, flags: none, rest: 1, change: setAttribute, link: true},
	{nr: unix.SYS_FSETXATTR, dir: 0, path: none, flags: none, rest: 1, change: setAttribute},
	{nr: unix.SYS_REMOVEXATTR, dir: none, path: 0, flags: none, rest: 1, change: removeAttribute},
	{nr: unix.SYS_LREMOVEXATTR, dir: none, path: 0, flags: none, rest: 1, change: removeAttribute, link: true},
	{nr: unix.SYS_FREMOVEXATTR, dir: 0, path: none, flags: none, rest: 1, change: removeAttribute},
}

// narrow says that what programs do without is refused, not answered.
func (f Filter) narrow() bool { return f.Files && f.Bounded && !f.foreign }

// answered are the calls about files that the keeper answers.
func (f Filter) answered() []attribute {
	if f.narrow() {
		return slices.Concat(attributes, archAttributes)
	}
	return slices.Concat(attributes, archAttributes, extended)
}

// attributes are the parts of the filter about them.
func (f Filter) attributes() (prog []unix.SockFilter) {
	if !f.Files {
		return nil // mounts bound them
	}
	for _, a := range f.answered() {
		if a.change == changeMode && f.Bounded {
			prog = append(prog, when(a.nr, load(low(a.rest)), set(unix.S_ISUID, 0, 1), ret(fail(unix.EPERM)), ret(f.ask()))...)
		} else {
			prog = append(prog, when(a.nr, ret(f.ask()))...)
		}
	}
	return prog
}

// unsupported are said not to be supported, as by some file systems. Programs go on
// without extended attributes.
func (f Filter) unsupported() (nrs []uint32) {
	if f.narrow() {
		for _, a := range extended {
			nrs = append(nrs, a.nr)
		}
	}
	return nrs
}

// missing returns the calls that the filter reports as missing, in addition to those of
// every filter. The first are newer forms of calls that the keeper answers, with their
// arguments behind a pointer; then come memory, semaphores and
// messages of System V and POSIX, where those of the host are shared.
func (f Filter) missing() (nrs []uint32) {
	if f.Files {
		nrs = append(nrs, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT, unix.SYS_FILE_SETATTR)
	}
	if f.Shared && f.Bounded {
		nrs = append(nrs, unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
			unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK)
	}
	return nrs
}

// Requests of ioctl about a file.
var (
	// snapshots make a subvolume like another one, of Btrfs and bcachefs, with all that is
	// hidden in that: no mount is looked at.
	snapshots = []uint32{0x50009401, 0x50009417, 0x4020bc10, 0x4030bc1d}
	// fileRequests change the flags, the version, the project and the encryption of a file,
	// or make it read-only for good (verity), by a descriptor that can only read it.
	fileRequests = []uint32{unix.FS_IOC_SETFLAGS, 0x40046602, 0x401c5820, 0x40087602, 0x40047602, unix.FS_IOC_ENABLE_VERITY, unix.FS_IOC_SET_ENCRYPTION_POLICY}
	// volumeTypes are who defines requests about subvolumes, fileTypes those about files:
	// most file systems, XFS, versions, Ceph, CIFS, F2FS.
	volumeTypes = []uint32{0x94 << 8, 0xbc << 8}
	fileTypes   = []uint32{'f' << 8, 'X' << 8, 'v' << 8, 0x97 << 8, 0xcf << 8, 0xf5 << 8}
	// plainRequests of these read, or write by a descriptor that can: FS_IOC_GETFLAGS,
	// FS_IOC_FSGETXATTR, FS_IOC_GETVERSION and FS_IOC_FIEMAP, and those that share blocks.
	plainRequests = []uint32{unix.FS_IOC_GETFLAGS, 0x801c581f, 0x80087601, 0xc020660b, unix.FICLONE, unix.FICLONERANGE, unix.FIDEDUPERANGE}
)

const requestType = 0xff00 // of a request: who defines it

// ioctl is the part of the filter about requests.
func (f Filter) ioctl() []unix.SockFilter {
	prog := []unix.SockFilter{load(low(1))}
	add := func(requests []uint32, action uint32) {
		for _, r := range requests {
			prog = append(prog, equal(r, 0, 1), ret(action))
		}
	}
	add([]uint32{unix.TIOCSTI, tioclinux}, fail(unix.EPERM))
	types := []uint32(nil)
	if f.Bounded {
		types = volumeTypes
	} else {
		add(snapshots, fail(unix.EPERM))
	}
	switch {
	case f.narrow():
		types = slices.Concat(types, fileTypes)
	case f.Files: // devices have requests of these types as well
		add(fileRequests, fail(unix.EOPNOTSUPP))
	}
	if types != nil {
		add(plainRequests, retAllow)
		prog = append(prog, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: requestType})
		add(types, fail(unix.EOPNOTSUPP))
	}
	return append(prog, ret(retAllow))
}

// makes is a system call that makes a file, with the numbers of its arguments.
type makes struct {
	nr          uint32
	flags, mode int
}

// asOwner are the bits of a mode that have a program run as the owner or the group of its
// file, and tmpfile is the bit of O_TMPFILE that says it.
const (
	asOwner = unix.S_ISUID | unix.S_ISGID
	tmpfile = unix.O_TMPFILE &^ unix.O_DIRECTORY
)

// special are the parts of the filter that keep such bits from files: outside the
// sandbox everybody could become the user by one. An ordinary user keeps S_ISGID, which
// folders have for their group, where no keeper tells these from files.
func (f Filter) special() (prog []unix.SockFilter) {
	if !f.Bounded {
		return nil
	}
	allow, refuse := ret(retAllow), ret(fail(unix.EPERM))
	if !f.Files {
		bits := uint32(unix.S_ISUID)
		if f.root {
			bits = asOwner
		}
		for _, a := range slices.Concat(attributes, archAttributes) {
			if a.change == changeMode {
				prog = append(prog, when(a.nr, load(low(a.rest)), set(bits, 0, 1), refuse, allow)...)
			}
		}
	}
	for _, m := range slices.Concat([]makes{{unix.SYS_OPENAT, 2, 3}, {unix.SYS_MKNODAT, none, 2}}, archMakes) {
		var part []unix.SockFilter
		if m.flags != none { // else the mode is whatever was in the register
			part = []unix.SockFilter{load(low(m.flags)), set(unix.O_CREAT|tmpfile, 1, 0), allow}
		}
		prog = append(prog, when(m.nr, append(part, load(low(m.mode)), set(asOwner, 0, 1), refuse, allow)...)...)
	}
	// Its mode is behind a pointer. Programs fall back, as before Linux 5.6.
	return append(prog, when(unix.SYS_OPENAT2, ret(fail(unix.ENOSYS)))...)
}
