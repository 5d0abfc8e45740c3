// Package unread tells a file that could not be read from one that is damaged: permission
// denied, a disk that fails, no descriptors left, or a missing key say nothing about what
// the file holds. Its functions are safe for concurrent use.
package unread

import (
	"context"
	"errors"
	"io/fs"
	"syscall"

	"github.com/yaya-ai/yaya/internal/errnos"
)

type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// Error marks an error that says nothing about the content of a file; its text stays.
func Error(err error) error {
	if err == nil {
		return nil
	}
	return failure{err}
}

// Is reports whether an error says nothing about the content of a file: it is marked, or
// comes from the system or from a context that has ended.
func Is(err error) bool {
	if _, ok := errors.AsType[failure](err); ok {
		return true
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return true
	}
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Problem returns the finding about a file that could not be read, with what to do.
func Problem(err error) string {
	text := "it cannot be read, which does not mean that it is damaged: " + err.Error()
	switch {
	case errors.Is(err, fs.ErrPermission):
		return text + "; give the data directory to the user that runs yaya (chown -R USER DIR), or run the command as that user"
	case errors.Is(err, errnos.TooManyFiles), errors.Is(err, errnos.SystemFiles), errors.Is(err, errnos.NoMemory):
		return text + "; run the command again when other programs have ended, or with a higher limit (ulimit -n)"
	case errors.Is(err, syscall.EIO):
		return text + "; look at the disk (dmesg), and copy the data directory to another one"
	case errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ELOOP):
		return text + "; put the file in its place"
	}
	return text
}
