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

// listen opens a TCP listener at each address, and returns the indexes of those that are
// not there and may be.
func listen(addrs []Addr) (fds, absent []int, err error) {
	for i, a := range addrs {
		fd, err := listenAt(a)
		switch {
		case err == nil:
			fds = append(fds, fd)
		case a.Spare && (err == unix.EAFNOSUPPORT || err == unix.EADDRNOTAVAIL || err == unix.EACCES): //nolint:errorlint // errnos
			absent = append(absent, i)
		default:
			return nil, nil, fmt.Errorf("listen at port %d in the sandbox: %w", a.Port, err)
		}
	}
	return fds, absent, nil
}

func listenAt(a Addr) (int, error) {
	var domain int
	var at unix.Sockaddr
	switch len(a.IP) {
	case 4:
		domain, at = unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port), Addr: [4]byte(a.IP)}
	case 16:
		domain, at = unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port), Addr: [16]byte(a.IP)}
	default:
		return -1, unix.EAFNOSUPPORT
	}
	fd, err := unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err = unix.Bind(fd, at); err == nil {
		err = unix.Listen(fd, 256)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}
