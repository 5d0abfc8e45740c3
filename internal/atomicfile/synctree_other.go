//go:build !linux

package atomicfile

import (
	"errors"
	"io/fs"
	"os"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// SyncTree returns when everything below a folder has reached the disk.
func SyncTree(root *os.Root) error {
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() && !e.Type().IsRegular() {
			return err
		}
		f, err := hostfile.OpenSync(root, name, e.IsDir())
		if err != nil {
			return err
		}
		if e.IsDir() {
			return errors.Join(hostfile.SyncDir(f), f.Close())
		}
		return errors.Join(f.Sync(), f.Close())
	})
}
