//go:build unix

package gitread

import (
	"io/fs"
	"os"
	"syscall"
)

// own reports whether a file belongs to the user that runs this process.
func own(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

func sameDevice(a, b fs.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, okay := b.Sys().(*syscall.Stat_t)
	return ok && okay && x.Dev == y.Dev
}

// sameStat reports whether what the system knows of a file is what the index has.
func (e *entry) sameStat(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	m, c := info.ModTime(), changed(st)
	return e.size == uint32(info.Size()) && e.mtime.sec == uint32(m.Unix()) && e.ctime.sec == uint32(c.Unix()) && //nolint:gosec // as git cuts them
		(e.mtime.nsec == 0 || e.mtime.nsec == uint32(m.Nanosecond())) && (e.ctime.nsec == 0 || e.ctime.nsec == uint32(c.Nanosecond())) && //nolint:gosec // below 1e9
		e.ino == uint32(st.Ino) && e.uid == st.Uid && e.gid == st.Gid //nolint:gosec // as git cuts it
}
