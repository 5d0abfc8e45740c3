package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ownsSocket reports whether the remote end of a loopback connection belongs to
// the user of this process. The kernel is asked for that one socket (sock_diag(7));
// reading /proc/net/tcp would cost as much as there are connections.
func ownsSocket(remote, local *net.TCPAddr) (inode uint32, ok bool) {
	uid, inode, err := socketOwner(remote, local)
	if errors.Is(err, errNoDiag) {
		return ownsSocketByTable(remote, local)
	}
	return inode, err == nil && int(uid) == os.Getuid()
}

// peerPID returns the process at the other end of a Unix socket, 0 if it is not
// known.
func peerPID(c net.Conn) int {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return 0
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = raw.Control(func(fd uintptr) { // a connection that has gone has no peer
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil { //nolint:gosec // a descriptor
			pid = int(cred.Pid)
		}
	})
	return pid
}

// Layout of struct inet_diag_req_v2 and inet_diag_msg, from linux/inet_diag.h.
type diagSockID struct {
	sport, dport [2]byte // network order
	src, dst     [16]byte
	iface        uint32
	cookie       [2]uint32
}

type diagRequest struct {
	family, protocol, ext, _ uint8
	states                   uint32
	id                       diagSockID
}

type diagMessage struct {
	family, state, timer, retrans uint8
	id                            diagSockID
	expires, rqueue, wqueue, uid  uint32
	inode                         uint32
}

const sockDiagByFamily = 20

var errNoDiag = errors.New("sock_diag is not available")

// socketOwner returns the user that owns the socket whose own address is local
// to it and whose peer is us, and the socket's inode.
func socketOwner(its, ours *net.TCPAddr) (uid, inode uint32, err error) {
	req := diagRequest{family: unix.AF_INET6, protocol: unix.IPPROTO_TCP, states: ^uint32(0)}
	src, dst := its.IP.To16(), ours.IP.To16()
	if v4 := its.IP.To4(); v4 != nil {
		req.family, src, dst = unix.AF_INET, v4, ours.IP.To4()
	}
	copy(req.id.src[:], src)
	copy(req.id.dst[:], dst)
	binary.BigEndian.PutUint16(req.id.sport[:], uint16(its.Port))  //nolint:gosec // a port
	binary.BigEndian.PutUint16(req.id.dport[:], uint16(ours.Port)) //nolint:gosec // a port
	req.id.cookie = [2]uint32{^uint32(0), ^uint32(0)}

	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %w", errNoDiag, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return 0, 0, err
	}
	const size = unix.SizeofNlMsghdr + int(unsafe.Sizeof(req))
	msg := make([]byte, 0, size)
	msg = binary.NativeEndian.AppendUint32(msg, uint32(size))
	msg = binary.NativeEndian.AppendUint16(msg, sockDiagByFamily)
	msg = binary.NativeEndian.AppendUint16(msg, unix.NLM_F_REQUEST)
	msg = append(msg, make([]byte, 8)...)                                                 // sequence and port: one question, one answer
	msg = append(msg, unsafe.Slice((*byte)(unsafe.Pointer(&req)), unsafe.Sizeof(req))...) //nolint:gosec // the kernel's own layout
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, 0, fmt.Errorf("%w: %w", errNoDiag, err)
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return 0, 0, err
	}
	if n < unix.SizeofNlMsghdr+int(unsafe.Sizeof(diagMessage{})) || binary.NativeEndian.Uint16(buf[4:]) != sockDiagByFamily {
		return 0, 0, os.ErrNotExist // an error message of the kernel: there is no such socket
	}
	var m diagMessage
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&m)), unsafe.Sizeof(m)), buf[unix.SizeofNlMsghdr:]) //nolint:gosec // the kernel's own layout
	return m.uid, m.inode, nil
}
