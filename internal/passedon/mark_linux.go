package passedon

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// Mark marks a socket before it is connected. network is as [net.Dialer.Control] has it.
func Mark(network string, c syscall.RawConn) error {
	level, option := unix.IPPROTO_IP, unix.IP_TOS
	if network == "tcp6" {
		level, option = unix.IPPROTO_IPV6, unix.IPV6_TCLASS
	}
	var err error
	cerr := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), level, option, TOS) //nolint:gosec // a descriptor
	})
	return errors.Join(cerr, err)
}
