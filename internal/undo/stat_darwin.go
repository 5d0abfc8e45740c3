package undo

import (
	"io/fs"
	"os"
	"syscall"
	"time"
)

// changed returns when a file's content or attributes changed last, 0 for not known.
func changed(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctimespec.Nano()
	}
	return 0
}

// born returns when a file was made, if the file system knows that.
func born(_ *os.Root, _ string, info fs.FileInfo) (at time.Time, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || st.Birthtimespec.Sec <= 0 {
		return time.Time{}, false
	}
	return time.Unix(st.Birthtimespec.Unix()), true
}
