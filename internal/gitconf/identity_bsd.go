//go:build darwin || freebsd || netbsd

package gitconf

import (
	"syscall"
	"time"
)

// changed is when what the system knows of a file was last changed.
func changed(st *syscall.Stat_t) time.Time {
	return time.Unix(int64(st.Ctimespec.Sec), int64(st.Ctimespec.Nsec)) //nolint:unconvert // 32 bits on some machines
}
