package sandbox

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFinal(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{fmt.Errorf("start: %w", unix.EPERM), true},
		{fmt.Errorf("start: %w", unix.ENOSYS), true},
		{errors.New("mount /proc: permission denied"), true},
		{errors.New("bwrap: setting up uid map: Permission denied"), true},
		{fmt.Errorf("fork: %w", unix.EAGAIN), false},
		{fmt.Errorf("fork: %w", unix.ENOMEM), false},
		{unix.ENOSPC, false},
		{errors.New("mount /tmp: cannot allocate memory"), false},
		{fmt.Errorf("its first process did not answer: %w", context.DeadlineExceeded), false},
		{errors.New("bubblewrap is not installed (program bwrap)"), false},
	} {
		if got := final(c.err); got != c.want {
			t.Errorf("final(%v) = %v, want %v", c.err, got, c.want)
		}
	}
}
