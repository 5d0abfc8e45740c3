package inside

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestFilterRefusesX32(t *testing.T) {
	for _, nr := range []uint32{unix.SYS_READ, unix.SYS_SOCKET, unix.SYS_PTRACE} {
		if got, want := verdict(t, Filter{Unix: true}.program(), auditArch, x32|nr), fail(unix.ENOSYS); got != want {
			t.Errorf("call %d of x32: verdict %#x, want %#x", nr, got, want)
		}
	}
}
