package gitconf

import (
	"syscall"
	"time"
)

// changed is when what the system knows of a file was last changed.
func changed(st *syscall.Stat_t) time.Time {
	return time.Unix(int64(st.Ctim.Sec), int64(st.Ctim.Nsec)) //nolint:unconvert // 32 bits on some machines
}
