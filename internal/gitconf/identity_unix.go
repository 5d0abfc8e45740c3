//go:build unix

package gitconf

import (
	"io/fs"
	"syscall"
)

func identify(info fs.FileInfo) identity {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{size: info.Size(), changed: info.ModTime().UnixNano()}
	}
	return identity{dev: uint64(st.Dev), ino: st.Ino, size: st.Size, changed: changed(st).UnixNano()} //nolint:unconvert // differs by system
}
