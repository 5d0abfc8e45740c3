package hostfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/windows"
)

// Flags for opening files.
const (
	NoFollow  = windows.FILE_FLAG_OPEN_REPARSE_POINT // see the comment of the package
	Directory = 0x4000                               // Go's own number on Windows, for which it exports no name
	// Append has no flag: the system would refuse to cut a file that was opened for appending
	// alone.
	Append = 0
)

// OpenFile is [os.OpenFile] for a file that others may rename and remove while it is open:
// that is what files opened below an [os.Root] permit here.
func OpenFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dir, name := filepath.Split(path)
	if name == "" {
		return os.OpenFile(path, flag, perm) //nolint:forbidigo,gosec // the top of a volume
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, flag, perm)
	if err = errors.Join(err, root.Close()); err == nil {
		return f, nil
	}
	if f != nil {
		return nil, errors.Join(err, f.Close())
	}
	// A root does not follow a link out of its folder.
	if to, lerr := os.Readlink(path); lerr == nil && to != "" && flag&NoFollow == 0 { //nolint:forbidigo // the caller names it
		return os.OpenFile(path, flag, perm) //nolint:forbidigo,gosec // the caller says why
	}
	return nil, err
}

// WriteEnd writes at the end of a file that was opened with [Append]. It has one writer.
func WriteEnd(f *os.File, b []byte) (int, error) {
	if _, err := f.Seek(0, io.SeekEnd); err != nil {
		return 0, err
	}
	return f.Write(b)
}

// SyncDir has nothing to do: NTFS writes names to its journal with the change itself, and
// the system flushes no folders.
func SyncDir(*os.File) error { return nil }

// CheckRead returns an error if this process cannot read a file.
func CheckRead(path string) error {
	f, err := OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// CheckMake returns an error if this process cannot make files in a folder.
func CheckMake(dir string) error {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return err
	}
	h, err := windows.CreateFile(name, windows.FILE_WRITE_DATA, // of a folder: to add a file
		windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return &fs.PathError{Op: "write in", Path: dir, Err: err}
	}
	return windows.CloseHandle(h)
}

// OpenSync opens a file or a folder to have it reach the disk: the system flushes nothing
// that is open for reading alone.
func OpenSync(root *os.Root, name string, folder bool) (*os.File, error) {
	if folder {
		return root.Open(name)
	}
	return root.OpenFile(name, os.O_RDWR, 0)
}

// How long Rename waits for programs that have a file open for a moment, such as scanners.
const (
	patience = 2 * time.Second
	again    = 5 * time.Millisecond
)

// Rename is [os.Root.Rename] for a file that others may have open. A program that does not
// permit others to remove the file makes it fail, so it is tried again for a while.
func Rename(root *os.Root, from, to string) error {
	for until := time.Now().Add(patience); ; time.Sleep(again) {
		err := root.Rename(from, to)
		busy := errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
		if !busy || time.Now().After(until) {
			return err
		}
	}
}
