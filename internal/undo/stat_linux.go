package undo

import (
	"io/fs"
	"os"
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

// born returns when a file was made, if the file system knows that.
func born(root *os.Root, name string) (at time.Time, known bool) {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NONBLOCK, 0) // it may be a pipe since
	if err != nil {
		return time.Time{}, false
	}
	defer func() { _ = f.Close() }() // nothing was written
	var st unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BTIME, &st); err != nil || st.Mask&unix.STATX_BTIME == 0 { //nolint:gosec // a descriptor fits
		return time.Time{}, false
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)), true
}
