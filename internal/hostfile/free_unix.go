//go:build unix

package hostfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// Free returns how many bytes and files this user can still write on the file system of an
// open file. files is -1 if the file system has no fixed number of them, or does not say it.
func Free(f *os.File) (bytes, files int64, err error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil { //nolint:gosec // a descriptor fits
		return 0, 0, err
	}
	bytes, files = int64(st.Bavail)*int64(st.Bsize), -1 //nolint:gosec,unconvert // other types on other systems
	if st.Files > 0 {                                   // btrfs and others say 0 of 0
		files = int64(st.Ffree) //nolint:gosec // fits: a number of files
	}
	return bytes, files, nil
}
