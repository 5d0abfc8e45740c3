package hostfile

import (
	"errors"
	"os"
)

// maxAbove bounds the folders above another.
const maxAbove = 1000

var errTooDeep = errors.New("the folder lies too deep")

// Parents returns an open folder and those above it, by the path that the system has of it
// now: an open folder, and so each above it, cannot be renamed meanwhile.
func Parents(f *os.File) ([]ID, error) {
	id, _, err := Identify(f, nil)
	if err != nil {
		return nil, err
	}
	path, err := final(f)
	if err != nil {
		return nil, err
	}
	up := []ID{id}
	for path = above(path); path != ""; path = above(path) {
		if len(up) >= maxAbove {
			return nil, errTooDeep
		}
		id, _, err := Named(path)
		if err != nil {
			return nil, err
		}
		up = append(up, id)
	}
	return up, nil
}

// ParentsOf is [Parents] for the folder at a path. If it cannot be opened, the error is a
// [*fs.PathError].
func ParentsOf(path string) ([]ID, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|Directory, 0) //nolint:forbidigo,gosec // nothing is read
	if err != nil {
		return nil, err
	}
	up, err := Parents(f)
	return up, errors.Join(err, f.Close())
}
