// Package atomicfile replaces files so that they are whole at every moment: who
// reads sees the old content or the new, and so does the next start after a
// crash.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Write replaces the file name in root, for its owner only, and returns what the
// new file is. When it returns without error, content and name have reached the
// disk.
func Write(root *os.Root, name string, data []byte) (fs.FileInfo, error) {
	return WriteMode(root, name, data, 0o600)
}

// WriteMode is Write for a file with the permissions perm.
func WriteMode(root *os.Root, name string, data []byte, perm fs.FileMode) (fs.FileInfo, error) {
	tmp := fmt.Sprintf(".%s.%d.tmp", name, os.Getpid())
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(perm.Perm()))
	st, serr := f.Stat()
	err = errors.Join(err, f.Sync(), serr, f.Close())
	if err == nil {
		err = root.Rename(tmp, name)
	}
	if err != nil {
		return nil, errors.Join(err, root.Remove(tmp))
	}
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	return st, errors.Join(dir.Sync(), dir.Close())
}
