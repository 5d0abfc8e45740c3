package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity distinguishes a file from every other file, and from itself after a write: programs
// cannot set back the time of its last change.
func identity(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "unknown"
	}
	return fmt.Sprintf("%d/%d %d bytes %d.%d %d.%d", st.Dev, st.Ino, st.Size, st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec)
}
