package inside

import (
	"fmt"

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

// listen opens a TCP listener at each address.
func listen(addrs []Addr) ([]int, error) {
	fds := make([]int, 0, len(addrs))
	for _, a := range addrs {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			fds = append(fds, fd)
			err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(a.Port), Addr: a.IP})
		}
		if err == nil {
			err = unix.Listen(fd, 256)
		}
		if err != nil {
			return nil, fmt.Errorf("listen at port %d in the sandbox: %w", a.Port, err)
		}
	}
	return fds, nil
}
