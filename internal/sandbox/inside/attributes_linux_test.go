package inside

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestFilterOfFiles(t *testing.T) {
	const allow = uint32(retAllow)
	asked := uint32(unix.SECCOMP_RET_USER_NOTIF)
	eperm, enosys, unsupported := fail(unix.EPERM), fail(unix.ENOSYS), fail(unix.EOPNOTSUPP)
	mounts, root := Filter{Bounded: true}, Filter{Bounded: true, root: true}
	landlock, guarded := Filter{Files: true, Bounded: true, Shared: true}, Filter{Files: true, Shared: true}
	nested := Filter{Files: true, Bounded: true, refuse: true}
	free := Filter{Shared: true}
	const at = uint64(0xffffff9c) // AT_FDCWD
	for _, c := range []struct {
		name   string
		filter Filter
		nr     uint32
		args   []uint64
		want   uint32
	}{
		{"mode", landlock, unix.SYS_FCHMODAT, []uint64{at, 1, 0o755}, asked},
		{"mode, guarded", guarded, unix.SYS_FCHMODAT, []uint64{at, 1, 0o4755}, asked},
		{"mode, with mounts", mounts, unix.SYS_FCHMODAT, []uint64{at, 1, 0o755}, allow},
		{"mode, guarded with mounts", free, unix.SYS_FCHMODAT, []uint64{at, 1, 0o4755}, allow},
		{"mode, nobody to ask", nested, unix.SYS_FCHMODAT2, []uint64{at, 1, 0o755}, eperm},
		{"set-user-ID", landlock, unix.SYS_FCHMOD, []uint64{3, 0o4755}, eperm},
		{"set-user-ID with high bits", landlock, unix.SYS_FCHMOD, []uint64{3, 1<<32 | 0o4755}, eperm},
		{"set-user-ID, with mounts", mounts, unix.SYS_FCHMODAT2, []uint64{at, 1, 0o4755}, eperm},
		{"set-group-ID, with mounts", mounts, unix.SYS_FCHMODAT, []uint64{at, 1, 0o2755}, allow},
		{"set-group-ID of root, with mounts", root, unix.SYS_FCHMODAT, []uint64{at, 1, 0o2755}, eperm},
		{"set-group-ID of a folder, perhaps", landlock, unix.SYS_FCHMODAT, []uint64{at, 1, 0o2755}, asked},
		{"open", landlock, unix.SYS_OPENAT, []uint64{at, 1, unix.O_RDWR, 0o4755}, allow},
		{"make a set-user-ID file", landlock, unix.SYS_OPENAT, []uint64{at, 1, unix.O_RDWR | unix.O_CREAT, 0o4755}, eperm},
		{"make a set-user-ID file, with mounts", mounts, unix.SYS_OPENAT, []uint64{at, 1, unix.O_RDWR | unix.O_CREAT, 0o4755}, eperm},
		{"make a set-user-ID file without a name", mounts, unix.SYS_OPENAT, []uint64{at, 1, unix.O_RDWR | unix.O_TMPFILE, 0o4755}, eperm},
		{"make a file", mounts, unix.SYS_OPENAT, []uint64{at, 1, unix.O_RDWR | unix.O_CREAT, 0o755}, allow},
		{"make a set-user-ID file, guarded", guarded, unix.SYS_OPENAT, []uint64{at, 1, unix.O_RDWR | unix.O_CREAT, 0o4755}, allow},
		{"make a set-user-ID file by mknod", mounts, unix.SYS_MKNODAT, []uint64{at, 1, unix.S_IFREG | 0o4755}, eperm},
		{"openat2", mounts, unix.SYS_OPENAT2, nil, enosys},
		{"openat2, guarded", guarded, unix.SYS_OPENAT2, nil, allow},
		{"owner", landlock, unix.SYS_FCHOWNAT, []uint64{at, 1, 0, 0}, asked},
		{"times", landlock, unix.SYS_UTIMENSAT, []uint64{at, 1, 0, 0}, asked},
		{"attribute", landlock, unix.SYS_FSETXATTR, nil, unsupported},
		{"attribute, guarded", guarded, unix.SYS_FSETXATTR, nil, asked},
		{"attribute, with mounts", mounts, unix.SYS_FSETXATTR, nil, allow},
		{"read an attribute", landlock, unix.SYS_FGETXATTR, nil, allow},
		{"attribute by its newer name", guarded, unix.SYS_SETXATTRAT, nil, enosys},
		{"flags by their newer name", landlock, unix.SYS_FILE_SETATTR, nil, enosys},
		{"flags", landlock, unix.SYS_IOCTL, []uint64{3, unix.FS_IOC_SETFLAGS}, unsupported},
		{"flags, guarded", guarded, unix.SYS_IOCTL, []uint64{3, unix.FS_IOC_SETFLAGS}, unsupported},
		{"flags with high bits", landlock, unix.SYS_IOCTL, []uint64{3, 1<<32 | unix.FS_IOC_SETFLAGS}, unsupported},
		{"flags, with mounts", mounts, unix.SYS_IOCTL, []uint64{3, unix.FS_IOC_SETFLAGS}, allow},
		{"read the flags", landlock, unix.SYS_IOCTL, []uint64{3, unix.FS_IOC_GETFLAGS}, allow},
		{"project", landlock, unix.SYS_IOCTL, []uint64{3, 0x401c5820}, unsupported},
		{"verity", landlock, unix.SYS_IOCTL, []uint64{3, unix.FS_IOC_ENABLE_VERITY}, unsupported},
		{"a subvolume", landlock, unix.SYS_IOCTL, []uint64{3, 0x5000940e}, unsupported},
		{"a subvolume, with mounts", mounts, unix.SYS_IOCTL, []uint64{3, 0x5000940e}, unsupported},
		{"a snapshot, with mounts", mounts, unix.SYS_IOCTL, []uint64{3, 0x50009417}, unsupported},
		{"a snapshot, guarded", free, unix.SYS_IOCTL, []uint64{3, 0x50009417}, eperm},
		{"a subvolume, guarded", guarded, unix.SYS_IOCTL, []uint64{3, 0x5000940e}, allow},
		{"share blocks, with mounts", mounts, unix.SYS_IOCTL, []uint64{3, unix.FICLONE}, allow},
		{"window size, with mounts", mounts, unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}, allow},
		{"share blocks", landlock, unix.SYS_IOCTL, []uint64{3, unix.FICLONE}, allow},
		{"TIOCSTI", landlock, unix.SYS_IOCTL, []uint64{0, unix.TIOCSTI}, eperm},
		{"window size", landlock, unix.SYS_IOCTL, []uint64{0, unix.TIOCGWINSZ}, allow},
		{"shared memory", landlock, unix.SYS_SHMGET, nil, enosys},
		{"shared memory, guarded", guarded, unix.SYS_SHMGET, nil, allow},
		{"shared memory of its own", mounts, unix.SYS_SHMGET, nil, allow},
		{"a queue of messages", landlock, unix.SYS_MQ_OPEN, nil, enosys},
		{"quotas", free, unix.SYS_QUOTACTL_FD, nil, eperm},
		{"a mount with attributes", free, unix.SYS_OPEN_TREE_ATTR, nil, eperm},
	} {
		if got := c.filter.both(t, auditArch, c.nr, c.args...); got != c.want {
			t.Errorf("%s: verdict %#x, want %#x", c.name, got, c.want)
		}
	}
	for _, f := range []Filter{mounts, root, landlock, guarded, nested, free} {
		if n := len(f.program()) + len(f.asking()); n > 4096 {
			t.Errorf("the filters have %d instructions; the kernel takes 4096", n)
		}
	}
}
