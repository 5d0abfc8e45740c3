//go:build !linux

package atomicfile

import (
	"errors"
	"io/fs"
	"os"
)

// SyncTree returns when everything below a folder has reached the disk.
func SyncTree(root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() && !e.Type().IsRegular() {
			return err
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
