// Package atomicfile replaces files atomically: a reader sees the old content or
// the new, and so does the next start after a crash.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/yaya-ai/yaya/internal/errnos"
	"github.com/yaya-ai/yaya/internal/hostfile"
)

// Write replaces the file name in root, for its owner only, and returns the new
// file's description. When it returns without error, content and name have reached
// the disk.
func Write(root *os.Root, name string, data []byte) (fs.FileInfo, error) {
	return WriteMode(root, name, data, 0o600)
}

// WriteMode is Write for a file with the permissions perm.
func WriteMode(root *os.Root, name string, data []byte, perm fs.FileMode) (fs.FileInfo, error) {
	return write(root, name, data, perm, nil)
}

// FullError says that a file was not replaced, because no space is left for the new one.
type FullError struct {
	Folder, Name string
	Err          error // errnos.NoSpace or errnos.QuotaUsed
}

func (e *FullError) Error() string {
	why := "no space is left" // for bytes, or for a file
	if errors.Is(e.Err, errnos.QuotaUsed) {
		why = "your quota is used up"
	}
	return fmt.Sprintf("%s was not written, and is as it was: %s on the device of %s; free some space there", e.Name, why, e.Folder)
}

// Unwrap returns the system's error.
func (e *FullError) Unwrap() error { return e.Err }

// unchanged names the folder and the file that stays where an error says that the disk is full.
func unchanged(root *os.Root, name string, err error) error {
	for _, full := range []error{errnos.NoSpace, errnos.QuotaUsed} {
		if errors.Is(err, full) {
			return &FullError{root.Name(), name, full}
		}
	}
	return err
}

// write replaces a file by one with the permissions perm and, unless it is nil, the owner
// of was.
func write(root *os.Root, name string, data []byte, perm fs.FileMode, was fs.FileInfo) (fs.FileInfo, error) {
	tmp := fmt.Sprintf(".%s.%d.tmp", name, os.Getpid())
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		// It belongs to a process that has died, or to an attacker who wants it to be written to.
		if err := root.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		f, err = root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return nil, unchanged(root, name, err)
	}
	_, err = f.Write(data)
	if was != nil { // before the permissions, which may be for a group
		err = errors.Join(err, keepOwner(f, was))
	}
	err = errors.Join(err, f.Chmod(perm.Perm()))
	st, serr := f.Stat()
	err = errors.Join(err, f.Sync(), serr, f.Close())
	if err == nil {
		err = hostfile.Rename(root, tmp, name)
	}
	if err != nil {
		return nil, errors.Join(unchanged(root, name, err), root.Remove(tmp))
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	return st, errors.Join(hostfile.SyncDir(dir), dir.Close())
}
