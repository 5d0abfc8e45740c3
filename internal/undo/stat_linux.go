package undo

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// changed returns when a file's content or attributes changed last, 0 for not known.
func changed(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}

// clock returns the time now, no later than the times that files get from now on.
func clock() time.Time {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
		return time.Now().Add(-tick)
	}
	return time.Unix(now.Unix())
}

// born returns when a file was made, if the file system knows that. A link is not followed.
func born(root *os.Root, name string, _ fs.FileInfo) (at time.Time, known bool) {
	dir, err := root.OpenFile(path.Dir(name), os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
	if err != nil {
		return time.Time{}, false
	}
	defer func() { _ = dir.Close() }() // nothing was written
	raw, err := dir.SyscallConn()
	if err != nil {
		return time.Time{}, false
	}
	var st unix.Statx_t
	cerr := raw.Control(func(fd uintptr) {
		err = unix.Statx(int(fd), path.Base(name), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st) //nolint:gosec // a descriptor fits
	})
	if errors.Join(err, cerr) != nil || st.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}, false
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)), true
}
