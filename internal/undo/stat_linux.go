package undo

import (
	"io/fs"
	"syscall"
)

// changed returns when a file's content or attributes changed last, 0 for not known.
func changed(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ctim.Nano()
	}
	return 0
}
