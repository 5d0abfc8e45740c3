//go:build unix

package hostfile

import (
	"io/fs"
	"os"
	"syscall"
)

// Identify returns which file is open, and how many names it has. info is that of the open
// file.
func Identify(_ *os.File, info fs.FileInfo) (ID, uint64, error) { return of("", info) }

// At is [Identify] for a name, which may be that of a link.
func At(root *os.Root, name string) (ID, uint64, error) {
	info, err := root.Lstat(name)
	if err != nil {
		return ID{}, 0, err
	}
	return of(name, info)
}

// Named is [Identify] for the file that a path leads to.
func Named(path string) (ID, uint64, error) {
	info, err := os.Stat(path) //nolint:forbidigo,gosec // it is looked at, no more
	if err != nil {
		return ID{}, 0, err
	}
	return of(path, info)
}

func of(name string, info fs.FileInfo) (ID, uint64, error) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ID{}, 0, &fs.PathError{Op: "identify", Path: name, Err: fs.ErrInvalid}
	}
	return ID{uint64(st.Dev), st.Ino}, uint64(st.Nlink), nil //nolint:gosec,unconvert // their types differ by system
}

// Described is [Identify] for a description, without the number of names; ok is false where a description
// does not have it.
func Described(info fs.FileInfo) (id ID, ok bool) {
	id, _, err := of("", info)
	return id, err == nil
}

// Inode is the number by which a file that replaces another one of its size and time is
// noticed; 0 where a description does not have it.
func Inode(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return st.Ino
	}
	return 0
}

// Owner returns the id of a file's owner, and whether a description has it.
func Owner(info fs.FileInfo) (id int, known bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, false
	}
	return int(st.Uid), true
}
