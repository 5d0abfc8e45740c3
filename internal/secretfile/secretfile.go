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

	"github.com/yaya-ai/yaya/internal/worded"
)

// Patience is how long Read waits for the data of a pipe: its user may have to
// unlock the program that writes it.
const Patience = 20 * time.Second

// look is the interval of polling an empty pipe. No system wakes a reader reliably
// both for the first writer of a pipe and for the end of the last.
const look = 10 * time.Millisecond

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
	var out []byte
	switch mode := st.Mode(); {
	case private && (mode.IsRegular() || mode&fs.ModeNamedPipe != 0) && mode.Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s has mode %v, and others can get at it: chmod 600 %[1]s", path, mode.Perm())
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

// fromPipe reads until the last writer of a pipe has gone, or more than limit bytes.
func fromPipe(ctx context.Context, f *os.File, limit int) ([]byte, error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(Patience)
	defer late.Stop()
	again := time.NewTicker(look)
	defer again.Stop()
	var out []byte
	buf := make([]byte, 4<<10)
	for {
		var n int
		var rerr error
		if err := conn.Control(func(fd uintptr) { n, rerr = syscall.Read(int(fd), buf) }); err != nil { //nolint:gosec // a descriptor fits
			return nil, err
		}
		switch {
		case n > 0:
			if out = append(out, buf[:n]...); len(out) > limit {
				return out, nil
			}
			continue
		case n == 0 && rerr == nil && len(out) > 0: // an empty pipe had no writer yet
			return out, nil
		case rerr != nil && !errors.Is(rerr, syscall.EAGAIN) && !errors.Is(rerr, syscall.EINTR):
			return nil, rerr
		}
		select {
		case <-again.C:
		case <-late.C:
			return nil, fmt.Errorf("it is a pipe, and nothing has filled it within %v: start or unlock the program that does", Patience)
		case <-ctx.Done():
			return nil, worded.Error(ctx.Err(), "it is a pipe, and nothing had filled it: start or unlock the program that does")
		}
	}
}
