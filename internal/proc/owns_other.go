//go:build unix && !linux

package proc

import (
	"os"
	"strconv"
	"syscall"
	"time"
)

// Descends needs /proc: here nobody is known to.
func Descends(int) bool { return false }

// Boxed needs the mark that sandboxes set on Linux: here every process may be in one.
func Boxed() bool { return true }

// InSandbox needs /proc, as sandboxes do.
func InSandbox(int) bool { return false }

// adopter needs Linux.
type adopter struct{}

var orphanage adopter

func (*adopter) adopt(func(int)) bool                       { return false }
func (*adopter) release()                                   {}
func (*adopter) orphans(uint64, func(int, string) bool) int { return 0 }
func (*adopter) escapees() int                              { return 0 }
func ticks() uint64                                         { return 0 }
func becomeSubreaper() error                                { return nil }

func sealDescriptors() error {
	fds, err := os.ReadDir("/dev/fd")
	if err != nil {
		return err
	}
	for _, fd := range fds {
		if n, err := strconv.Atoi(fd.Name()); err == nil && n > 2 {
			syscall.CloseOnExec(n)
		}
	}
	return nil
}

// Worked returns 0: it needs /proc.
func (*Process) Worked() time.Duration { return 0 }
