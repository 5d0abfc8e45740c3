package inside

import (
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}

// listen opens a TCP listener at each IPv4 address.
func listen(addrs []string) ([]int, error) {
	fds := make([]int, 0, len(addrs))
	for _, a := range addrs {
		at, err := netip.ParseAddrPort(a)
		if err != nil || !at.Addr().Is4() {
			return nil, fmt.Errorf("listen at %q in the sandbox: not an IPv4 address with a port", a)
		}
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, fmt.Errorf("listen at %s in the sandbox: %w", a, err)
		}
		fds = append(fds, fd)
		if err := unix.Bind(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}); err != nil {
			return nil, fmt.Errorf("listen at %s in the sandbox: %w", a, err)
		}
		if err := unix.Listen(fd, 256); err != nil {
			return nil, fmt.Errorf("listen at %s in the sandbox: %w", a, err)
		}
	}
	return fds, nil
}
