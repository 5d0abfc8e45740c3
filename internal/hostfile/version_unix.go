//go:build unix

package hostfile

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Version holds those properties of a file that change with its content: two that are
// equal are of one content, unless the file changed twice within the resolution of
// [Version.Changed], or through a mapping.
type Version struct{ st unix.Stat_t }

// VersionOf returns the version of an open file.
func VersionOf(f *os.File) (v Version, err error) {
	if err := unix.Fstat(int(f.Fd()), &v.st); err != nil { //nolint:gosec // a descriptor fits
		return Version{}, err
	}
	v.st.Atim, v.st.Nlink = unix.Timespec{}, 0 // which change without the content
	return v, nil
}

// Changed is when the content, or what the system knows of the file, was last changed.
func (v Version) Changed() time.Time { return time.Unix(v.st.Ctim.Unix()) }
