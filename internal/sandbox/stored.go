package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// errNotRegular is returned by readStored for anything but a regular file.
var errNotRegular = errors.New("not a regular file")

// readStored reads up to most bytes of a file, and waits for nobody: something else than a
// regular file is an error.
func readStored(name string, most int64) ([]byte, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:forbidigo,gosec // bounded
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: %w", name, errNotRegular)
	}
	return io.ReadAll(io.LimitReader(f, most)) //nolint:forbidigo // bounded
}

// store has a file hold data. One that does is left as it is; another one is replaced as a
// whole: running sandboxes may have it mounted, and go on with what they had.
func store(name string, data []byte) error {
	if was, err := readStored(name, int64(len(data))+1); err == nil && bytes.Equal(was, data) {
		return nil
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".part-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), name) //nolint:forbidigo,gosec // beside the caches, where no program in a sandbox writes
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name())) //nolint:forbidigo,gosec // made above
	}
	return nil
}
