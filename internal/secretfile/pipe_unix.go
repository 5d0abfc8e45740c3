//go:build unix

package secretfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/worded"
)

// look is the interval of polling an empty pipe. No system wakes a reader reliably
// both for the first writer of a pipe and for the end of the last.
const look = 10 * time.Millisecond

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
