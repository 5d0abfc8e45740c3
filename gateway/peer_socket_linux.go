package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/passedon"
)

// States of TCP sockets, from linux/tcp_states.h.
const (
	tcpEstablished = 1
	tcpFinWait1    = 4
	tcpFinWait2    = 5
	tcpCloseWait   = 8
)

// socketInfo is Linux's description of the socket at the other end.
type socketInfo struct {
	state uint8
	uid   uint32
	inode uint32
	// passedOn says that its process passes on what a program in a sandbox sends. Where
	// sock_diag is not available it is not known.
	passedOn bool
}

// held reports whether a process can hold the socket: it is connected, or one of the
// two ends has said that it will send no more, and it has an inode. A closed
// socket lives on without one until its last bytes have come across, and then in
// TIME_WAIT, and Linux gives root as its user.
func (s socketInfo) held() bool {
	switch s.state {
	case tcpEstablished, tcpFinWait1, tcpFinWait2, tcpCloseWait:
		return s.inode != 0
	}
	return false
}

// findSocket asks Linux for the one socket whose own address is its, and whose
// peer is ours (sock_diag(7)). Reading /proc/net/tcp costs as much as there are
// connections; it is the way where netlink is forbidden, as in some sandboxes.
func findSocket(its, ours *net.TCPAddr) (socketInfo, error) {
	s, err := socketByDiag(its, ours)
	if errors.Is(err, errNoDiag) {
		return socketByTable(its, ours)
	}
	return s, err
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

// Attributes of an inet_diag_msg.
const (
	diagTOS    = 5
	diagTClass = 6
)

var (
	errNoDiag   = errors.New("sock_diag is not available")
	errNoSocket = errors.New("socket not found")
)

func socketByDiag(its, ours *net.TCPAddr) (socketInfo, error) {
	req := diagRequest{family: unix.AF_INET6, protocol: unix.IPPROTO_TCP, ext: 1<<(diagTOS-1) | 1<<(diagTClass-1), states: ^uint32(0)}
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
	if noted(err) != nil {
		return socketInfo{}, fmt.Errorf("%w: %w", errNoDiag, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 1}); err != nil {
		return socketInfo{}, err
	}
	const size = unix.SizeofNlMsghdr + int(unsafe.Sizeof(req))
	msg := make([]byte, 0, size)
	msg = binary.NativeEndian.AppendUint32(msg, uint32(size))
	msg = binary.NativeEndian.AppendUint16(msg, sockDiagByFamily)
	msg = binary.NativeEndian.AppendUint16(msg, unix.NLM_F_REQUEST)
	msg = append(msg, make([]byte, 8)...)                                                 // sequence and port: one question, one answer
	msg = append(msg, unsafe.Slice((*byte)(unsafe.Pointer(&req)), unsafe.Sizeof(req))...) //nolint:gosec // Linux's own layout
	if err := unix.Sendto(fd, msg, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return socketInfo{}, fmt.Errorf("%w: %w", errNoDiag, err)
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return socketInfo{}, err
	}
	if n < unix.SizeofNlMsghdr+int(unsafe.Sizeof(diagMessage{})) || binary.NativeEndian.Uint16(buf[4:]) != sockDiagByFamily {
		return socketInfo{}, errNoSocket // what has come is an error message of Linux
	}
	var m diagMessage
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&m)), unsafe.Sizeof(m)), buf[unix.SizeofNlMsghdr:]) //nolint:gosec // Linux's own layout
	if m.id.sport != req.id.sport || m.id.dport != req.id.dport {
		return socketInfo{}, errNoSocket // somebody listens on that port
	}
	length := min(int(binary.NativeEndian.Uint32(buf)), n)
	attrs := buf[unix.SizeofNlMsghdr+int(unsafe.Sizeof(m)) : max(length, unix.SizeofNlMsghdr+int(unsafe.Sizeof(m)))]
	return socketInfo{state: m.state, uid: m.uid, inode: m.inode, passedOn: isPassedOn(attrs)}, nil
}

// isPassedOn looks for the mark of passedon among the attributes of a socket.
func isPassedOn(attrs []byte) bool {
	for len(attrs) > unix.SizeofRtAttr {
		size, kind := int(binary.NativeEndian.Uint16(attrs)), binary.NativeEndian.Uint16(attrs[2:])
		if size <= unix.SizeofRtAttr || size > len(attrs) {
			return false
		}
		if (kind == diagTOS || kind == diagTClass) && attrs[unix.SizeofRtAttr] == passedon.TOS {
			return true
		}
		attrs = attrs[min((size+unix.RTA_ALIGNTO-1)&^(unix.RTA_ALIGNTO-1), len(attrs)):]
	}
	return false
}
