//go:build unix

package hostfile

import (
	"errors"
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
func Parents(f *os.File) ([]ID, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	up := make([]ID, 0, 8) // few folders lie deeper
	cerr := raw.Control(func(fd uintptr) {
		for n := range maxAbove {
			var st unix.Stat_t
			name := "."
			if n > 0 {
				name = dots[:3*n-1]
			}
			if err = unix.Fstatat(int(fd), name, &st, 0); err != nil { //nolint:gosec // a descriptor fits
				return
			}
			id := ID{uint64(st.Dev), st.Ino} //nolint:gosec,unconvert // a name; its type differs between systems
			if n > 0 && up[n-1] == id {
				return
			}
			up = append(up, id)
		}
		err = errTooDeep
	})
	return up, errors.Join(err, cerr)
}
