package hostfile

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// Free returns how many bytes and files this user can still write on the file system of an
// open file. files is -1: there is no fixed number of them.
func Free(f *os.File) (bytes, files int64, err error) {
	path, err := final(f)
	if err != nil {
		return 0, 0, err
	}
	if info, err := f.Stat(); err == nil && !info.IsDir() {
		path = filepath.Dir(path)
	}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, 0, err
	}
	var left uint64
	if err := windows.GetDiskFreeSpaceEx(name, &left, nil, nil); err != nil {
		return 0, 0, &fs.PathError{Op: "free space", Path: path, Err: err}
	}
	return int64(min(left, math.MaxInt64)), -1, nil //nolint:gosec // bounded
}
