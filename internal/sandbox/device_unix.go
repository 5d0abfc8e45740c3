//go:build unix

package sandbox

import (
	"io/fs"
	"syscall"
)

// sameDevice reports whether two files are the same device.
func sameDevice(a, b fs.FileInfo) bool {
	x, is := a.Sys().(*syscall.Stat_t)
	y, also := b.Sys().(*syscall.Stat_t)
	return is && also && x.Rdev == y.Rdev
}
