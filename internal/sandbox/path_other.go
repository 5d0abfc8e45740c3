//go:build !linux && !darwin

package sandbox

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// openPath opens a file to hold it. No part of its name may be a symbolic link. There is
// no back end here that would give it to a program.
func openPath(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|hostfile.NoFollow, 0) //nolint:forbidigo // what a policy names
	if err != nil {
		return nil, err
	}
	if to, err := filepath.EvalSymlinks(name); err != nil || to != name {
		_ = f.Close()
		return nil, &os.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
	}
	return f, nil
}
