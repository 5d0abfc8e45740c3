package hostfile

import (
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// Identify returns which file is open, and how many names it has. info is that of the open
// file.
func Identify(f *os.File, _ fs.FileInfo) (ID, uint64, error) {
	d, err := describe(f)
	return ID{uint64(d.VolumeSerialNumber), uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow)}, uint64(d.NumberOfLinks), err
}

// describe asks the system about an open file.
func describe(f *os.File) (d windows.ByHandleFileInformation, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return d, err
	}
	if cerr := raw.Control(func(h uintptr) { err = windows.GetFileInformationByHandle(windows.Handle(h), &d) }); cerr != nil {
		return d, cerr
	}
	if err != nil {
		return d, &fs.PathError{Op: "identify", Path: f.Name(), Err: err}
	}
	return d, nil
}

// At is [Identify] for a name, which may be that of a link.
func At(root *os.Root, name string) (ID, uint64, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|NoFollow, 0)
	return identified(f, err)
}

// Named is [Identify] for the file that a path leads to.
func Named(path string) (ID, uint64, error) {
	f, err := OpenFile(path, os.O_RDONLY, 0)
	return identified(f, err)
}

func identified(f *os.File, err error) (ID, uint64, error) {
	if err != nil {
		return ID{}, 0, err
	}
	defer func() { _ = f.Close() }()
	return Identify(f, nil)
}

// Described knows nothing here: a description does not have it.
func Described(fs.FileInfo) (id ID, ok bool) { return ID{}, false }

// Inode returns 0: a description does not have it here.
func Inode(fs.FileInfo) uint64 { return 0 }

// Owner knows nothing here: a description does not have it.
func Owner(fs.FileInfo) (id int, known bool) { return -1, false }

// final returns the path of an open file without links.
func final(f *os.File) (string, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return "", err
	}
	path := make([]uint16, windows.MAX_LONG_PATH)
	var n uint32
	cerr := raw.Control(func(h uintptr) {
		n, err = windows.GetFinalPathNameByHandle(windows.Handle(h), &path[0], uint32(len(path)), 0) //nolint:gosec // 32767
	})
	if cerr != nil {
		return "", cerr
	}
	if err == nil && int(n) >= len(path) {
		err = windows.ERROR_FILENAME_EXCED_RANGE
	}
	if err != nil {
		return "", &fs.PathError{Op: "find", Path: f.Name(), Err: err}
	}
	return windows.UTF16ToString(path[:n]), nil
}

// above returns the folder above a path, "" for the top of a volume.
func above(path string) string {
	if up := filepath.Dir(path); up != path {
		return up
	}
	return ""
}
