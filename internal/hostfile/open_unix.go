//go:build unix

package hostfile

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Flags for opening files.
const (
	NoFollow  = syscall.O_NOFOLLOW  // see the comment of the package
	Directory = syscall.O_DIRECTORY // it is an error unless it is a folder
	Append    = syscall.O_APPEND    // for WriteEnd, and to be cut
)

// OpenFile is [os.OpenFile] for a file that others may rename and remove while it is open.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm) //nolint:forbidigo,gosec // the caller says why
}

// WriteEnd writes at the end of a file that was opened with [Append].
func WriteEnd(f *os.File, b []byte) (int, error) { return f.Write(b) }

// SyncDir makes the names in an open folder durable.
func SyncDir(dir *os.File) error { return dir.Sync() }

// CheckRead returns an error if this process cannot read a file. It does not open it, which
// would take the locks of this process from it.
func CheckRead(path string) error { return access(path, "open", unix.R_OK) }

// CheckMake returns an error if this process cannot make files in a folder.
func CheckMake(dir string) error { return access(dir, "write in", unix.W_OK|unix.X_OK) }

func access(path, op string, mode uint32) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: op, Path: path, Err: err}
	}
	return nil
}

// OpenSync opens a file or a folder to have it reach the disk.
func OpenSync(root *os.Root, name string, _ bool) (*os.File, error) { return root.Open(name) }

// Rename is [os.Root.Rename] for a file that others may have open.
func Rename(root *os.Root, from, to string) error { return root.Rename(from, to) }
