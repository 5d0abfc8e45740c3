//go:build unix

package hostfile

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// maxAbove bounds the folders above another.
const maxAbove = 1000

// dots leads to each of them; [Parents] is asked often.
var dots = strings.Repeat("../", maxAbove)

var errTooDeep = errors.New("the folder lies too deep")

// Parents returns an open folder and those above it. It needs no right to read them.
func Parents(f *os.File) (up []ID, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	cerr := raw.Control(func(fd uintptr) { up, err = parents(int(fd)) }) //nolint:gosec // a descriptor fits
	return up, errors.Join(err, cerr)
}

// ParentsOf is [Parents] for the folder at a path. If it cannot be opened, the error is a
// [*fs.PathError].
func ParentsOf(path string) ([]ID, error) {
	fd, err := openFolder(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	up, err := parents(fd)
	return up, errors.Join(err, unix.Close(fd))
}

// openFolder avoids os.Open, which also registers each folder with the poller.
func openFolder(path string) (fd int, err error) {
	for {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func parents(fd int) ([]ID, error) {
	up := make([]ID, 0, 8) // few folders lie deeper
	for n := range maxAbove {
		var st unix.Stat_t
		name := "."
		if n > 0 {
			name = dots[:3*n-1]
		}
		if err := unix.Fstatat(fd, name, &st, 0); err != nil {
			return up, err
		}
		id := ID{uint64(st.Dev), st.Ino} //nolint:gosec,unconvert // a name; its type differs between systems
		if n > 0 && up[n-1] == id {
			return up, nil
		}
		up = append(up, id)
	}
	return up, errTooDeep
}
