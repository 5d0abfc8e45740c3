package inside

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Inherited descriptors lead to mounts of the host, which bypass those of the sandbox:
// through a descriptor that only reads a file, a program can change its mode, owner and
// times, and through a folder it can read everything around it.

// inherited is the number of descriptors that the program gets.
func (p *Plan) inherited() int { return 3 + p.Keep }

// streams opens the devices that the program inherits once more, by mounts that are
// read-only. Read-only is the file, not the device. A device that cannot be opened so
// stays, and lookAtInherited finds it.
func (b *builder) streams() error {
	for fd := range b.plan.inherited() {
		var st unix.Stat_t
		if !b.plan.HostWrites && unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && same(st.Rdev) {
			_ = reopen(fd, &st)
		}
	}
	return nil
}

// same reports whether a device is the same when it is opened once more: memory, such as
// /dev/null, and terminals. Of others, each open one may have a state.
func same(device uint64) bool {
	const memory, terminals, pts, lastPts = 1, 4, 136, 143
	major := unix.Major(device)
	return major == memory || major == terminals || major >= pts && major <= lastPts
}

var errOther = errors.New("another file has taken its place")

// reopen puts the same device in the place of a descriptor.
func reopen(fd int, st *unix.Stat_t) error {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0) //nolint:gosec // a descriptor
	if err != nil {
		return err
	}
	name, err := os.Readlink(byDescriptor(fd))
	if err != nil {
		return err
	}
	tree, err := clone(unix.AT_FDCWD, name)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(tree) }()
	var got unix.Stat_t
	if err := unix.Fstat(tree, &got); err != nil {
		return err
	}
	if got.Ino != st.Ino || got.Dev != st.Dev || got.Rdev != st.Rdev {
		return errOther
	}
	if err := setAttr(tree, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_RDONLY); err != nil {
		return err
	}
	next, err := unix.Open(byDescriptor(tree), flags&(unix.O_ACCMODE|unix.O_APPEND|unix.O_NONBLOCK)|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(next) }()
	return unix.Dup3(next, fd, unix.O_CLOEXEC) // who starts the program hands it on
}

// lookAtInherited finds files that the program inherits by mounts of the host, and has the keeper
// look at what is changed of them. A folder is refused.
func (p *Plan) lookAtInherited() error {
	if !p.Mounts && !p.Mounted {
		return nil // Landlock goes by the file
	}
	for fd := range p.inherited() {
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil {
			continue // there is none
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			return fmt.Errorf("descriptor %d is a folder: by it a program sees what the sandbox hides; give it a file", fd)
		case unix.S_IFREG, unix.S_IFIFO, unix.S_IFCHR, unix.S_IFBLK:
			if p.HostWrites || !changeable(fd, &st) {
				continue
			}
			id, err := mountOf(fd)
			if err != nil {
				return fmt.Errorf("look at descriptor %d: %w", fd, err)
			}
			if p.foreign = append(p.foreign, id); !p.Filter.Files {
				p.Filter.Files, p.Filter.foreign = true, true
			}
		}
	}
	return nil
}

// changeable reports whether more can be changed of a file by a descriptor than by what
// it was given for: what is open for writing was given to be written, but for devices.
func changeable(fd int, st *unix.Stat_t) bool {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err == nil && (fs.Flags&unix.ST_RDONLY != 0 || fs.Type == unix.PIPEFS_MAGIC) {
		return false
	}
	if kind := st.Mode & unix.S_IFMT; kind == unix.S_IFCHR || kind == unix.S_IFBLK {
		user := unix.Geteuid()
		return user == 0 || int(st.Uid) == user
	}
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0) //nolint:gosec // a descriptor
	return err != nil || flags&unix.O_ACCMODE == unix.O_RDONLY || flags&unix.O_PATH != 0
}

// mountOf is the number of the mount that a file was opened by.
func mountOf(fd int) (uint64, error) {
	var st unix.Statx_t
	err := unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_MNT_ID, &st)
	return st.Mnt_id, err
}

// byForeign reports whether a file was opened by a mount that only a descriptor of the
// program's leads to.
func (p *Plan) byForeign(fd int) bool {
	if len(p.foreign) == 0 {
		return false
	}
	id, err := mountOf(fd)
	return err != nil || slices.Contains(p.foreign, id)
}
