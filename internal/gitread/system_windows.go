package gitread

import (
	"io/fs"
	"syscall"
	"time"
)

// own reports whether a file belongs to the user that runs this process. A description does
// not say it here, so that a repository above the folder that somebody works in is not
// looked for: another user may have put it there.
func own(fs.FileInfo) bool { return false }

func sameDevice(fs.FileInfo, fs.FileInfo) bool { return false }

// sameStat reports whether what the system knows of a file is what the index has. Git for
// Windows keeps the time at which a file was made in the place of that of its change, and
// neither its number nor its owner.
func (e *entry) sameStat(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Win32FileAttributeData)
	if !ok {
		return false
	}
	m, c := info.ModTime(), time.Unix(0, st.CreationTime.Nanoseconds())
	return e.size == uint32(info.Size()) && e.mtime.sec == uint32(m.Unix()) && e.ctime.sec == uint32(c.Unix()) && //nolint:gosec // as git cuts them
		(e.mtime.nsec == 0 || e.mtime.nsec == uint32(m.Nanosecond())) //nolint:gosec // below 1e9
}
