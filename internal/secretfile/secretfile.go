// Package secretfile reads small files that hold secrets. Such a file may be a named pipe
// that another program fills when somebody reads it, as password managers do.
package secretfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// Patience is how long Read waits for the data of a pipe: its user may have to
// unlock the program that writes it.
const Patience = 20 * time.Second

// IsPipe reports whether a path is one of a pipe, which gives its content once.
func IsPipe(path string) bool {
	st, err := os.Stat(path) //nolint:forbidigo // the user's configuration names it
	return err == nil && st.Mode()&fs.ModeNamedPipe != 0
}

// Read returns the content of a file of at most limit bytes. It waits for the writer of a
// pipe, until ctx ends or for [Patience]. Errors name the file.
func Read(ctx context.Context, path string, limit int) ([]byte, error) {
	return read(ctx, path, limit, false)
}

// ReadPrivate is [Read] for private files: it refuses a file or a pipe that others can
// read or write.
func ReadPrivate(ctx context.Context, path string, limit int) ([]byte, error) {
	return read(ctx, path, limit, true)
}

func read(ctx context.Context, path string, limit int, private bool) ([]byte, error) {
	// Opening a pipe would wait for its writer, and nothing could end that.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) //nolint:forbidigo,gosec // the user's configuration names it
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := st.Mode(); private && (mode.IsRegular() || mode&fs.ModeNamedPipe != 0) {
		how, fix, err := hostfile.Exposed(f)
		if err != nil {
			return nil, err
		}
		if how != "" {
			return nil, fmt.Errorf("%s has %s, and others can get at it: %s", path, how, fix)
		}
	}
	var out []byte
	switch mode := st.Mode(); {
	case mode.IsRegular():
		out, err = io.ReadAll(io.LimitReader(f, int64(limit)+1)) //nolint:forbidigo // bounded by the reader
	case mode&fs.ModeNamedPipe != 0:
		out, err = fromPipe(ctx, f, limit)
	case path == os.DevNull:
	default:
		err = errors.New("it is neither a file nor a pipe")
	}
	if err == nil && len(out) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}
