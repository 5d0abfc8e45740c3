package hostfile

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// OpenNoLink opens a file of root for reading, and does not wait for a pipe. A file that is a link
// is the error [syscall.ELOOP], even if a link takes its place meanwhile. The caller has to check
// that the file is regular.
func OpenNoLink(root *os.Root, name string) (*os.File, error) {
	want, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	link := &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
	if want.Mode()&fs.ModeSymlink != 0 {
		return nil, link
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	got, err := f.Stat()
	if err == nil && !os.SameFile(got, want) {
		// It was replaced, perhaps by another file, and then the name is not a link now.
		if want, err = root.Lstat(name); err == nil && !os.SameFile(got, want) {
			err = link
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
