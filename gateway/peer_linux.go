package gateway

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yaya-ai/yaya/internal/openfiles"
)

// Why the other end of a connection is not the owner.
const (
	notFound       = "the process at the other end of this connection could not be identified"
	otherUser      = "the process at the other end of this connection belongs to another user"
	inSandbox      = "the process at the other end of this connection runs in a sandbox of yaya's: it is not its user"
	passedOn       = "this connection was passed on for a program in a sandbox of yaya's: it is not its user"
	yayaItself     = "the other end of this connection is yaya itself, which passes on what programs in its sandboxes send: it is not its user"
	otherNamespace = "the process at the other end of this connection lives in another namespace (a container, a snap or a flatpak), or yaya may not look at it"
)

// whoIs establishes who is at the other end of a connection from this machine:
// the one process that is proved to hold it now. It holds an open /proc/<pid> from
// the proof to the last question, and asks at the end whether the process is still
// there: an id that was given to another process meanwhile proves nothing.
//
// A verdict is good for as long as the connection. Our socket is one end of it and
// the one that was found the other; nobody else can take that place, unless the
// process that was found passes it on itself.
//
// Looking takes descriptors. When there are none, that says nothing about the peer: the answer is
// then no verdict, and the next request asks again.
func (s *Server) whoIs(c net.Conn, accepted uint64) identity {
	before := shortages.Load()
	id := s.look(c, accepted)
	if (id.refused != "" || id.tool) && (shortages.Load() != before || !openfiles.Left(looking)) {
		return identity{refused: noDescriptors, unknown: true}
	}
	return id
}

// looking is how many descriptors a look needs at once, and those that it asks: these do not say
// why they found nothing.
const looking = 8

// shortages counts how often a look failed for want of descriptors.
var shortages atomic.Uint64

// noted counts an error that is such a want, and returns it.
func noted(err error) error {
	if err != nil && openfiles.Exhausted(err) {
		shortages.Add(1)
	}
	return err
}

// look is whoIs, without a thought for descriptors.
func (s *Server) look(c net.Conn, accepted uint64) identity {
	switch ours := c.LocalAddr().(type) {
	case *net.TCPAddr:
		its, ok := c.RemoteAddr().(*net.TCPAddr)
		if !ok || !its.IP.IsLoopback() {
			return identity{refused: elsewhere}
		}
		found, err := findSocket(its, ours)
		switch {
		case err != nil || !found.held():
			return identity{refused: notFound}
		case int(found.uid) != os.Getuid():
			return identity{refused: otherUser}
		case found.passedOn:
			return identity{refused: passedOn}
		}
		p, ok := s.holders.find(found.inode)
		if !ok {
			return identity{refused: notFound}
		}
		defer p.close()
		return s.judge(p)
	case *net.UnixAddr:
		return s.whoIsUnix(c, accepted)
	}
	return identity{refused: elsewhere}
}

// whoIsUnix establishes who has connected to the Unix socket (unix(7),
// SO_PEERCRED). accepted is when, in ticks: a process that began later has but the
// peer's id.
func (s *Server) whoIsUnix(c net.Conn, accepted uint64) identity {
	id := identity{refused: notFound}
	raw, err := rawConn(c)
	if err != nil {
		return id
	}
	var cred *unix.Ucred
	pidfd, perr := -1, error(nil)
	if err := raw.Control(func(fd uintptr) {
		if cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil { //nolint:gosec // a descriptor
			pidfd, perr = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD) //nolint:gosec // a descriptor
		}
	}); err != nil || cred == nil {
		return id
	}
	if noted(perr) == nil {
		defer func() { _ = unix.Close(pidfd) }()
	}
	switch {
	case int(cred.Uid) != os.Getuid():
		return identity{refused: otherUser}
	case cred.Pid <= 0:
		return identity{refused: otherNamespace}
	}
	p, err := openProcess(int(cred.Pid))
	if err != nil {
		return id
	}
	defer p.close()
	switch {
	case perr == nil: // what was opened is the peer, if the peer lives still
		if hasExited(pidfd) {
			return id
		}
	case errors.Is(perr, unix.ENOPROTOOPT): // before Linux 6.5
		if started, err := p.started(); err != nil || started > accepted {
			return id
		}
	default:
		return id
	}
	return s.judge(p)
}

func hasExited(pidfd int) bool {
	fds := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}} //nolint:gosec // a descriptor
	n, err := unix.Poll(fds, 0)
	return err != nil || n != 0
}

// judge says what a process may be taken for that is the other end of a connection.
func (s *Server) judge(p process) identity {
	if mine, err := p.ofUser(os.Getuid()); err != nil {
		return identity{refused: notFound}
	} else if !mine {
		return identity{refused: otherUser}
	}
	switch {
	case s.cfg.Sandboxed == nil:
	case p.pid == os.Getpid():
		return identity{refused: yayaItself}
	case s.cfg.Sandboxed(p.pid):
		return identity{refused: inSandbox}
	}
	var id identity
	if s.cfg.Tool != nil {
		id.tool = s.cfg.Tool(p.pid)
	}
	// The last question: one that has ended meanwhile has no namespaces either, and
	// nobody knows whose id it was that was asked about.
	if !p.inOurNamespaces() {
		return identity{refused: otherNamespace}
	}
	return id
}

// rawConn finds the socket below what wraps it.
func rawConn(c net.Conn) (syscall.RawConn, error) {
	for {
		if sc, ok := c.(syscall.Conn); ok {
			return sc.SyscallConn()
		}
		w, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			return nil, errors.ErrUnsupported
		}
		c = w.NetConn()
	}
}

// process is an open /proc/<pid>: what is read by way of it is about that process
// alone, and fails once it has been waited for.
type process struct {
	pid int
	fd  int
}

func openProcess(pid int) (process, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	return process{pid, fd}, noted(err)
}

func (p process) close() { _ = unix.Close(p.fd) }

func (p process) read(name string) (string, error) {
	fd, err := unix.Openat(p.fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if noted(err) != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	buf := make([]byte, 4096) // more than stat has, and the part of status that counts
	n, err := unix.Read(fd, buf)
	return string(buf[:max(n, 0)]), err
}

var errProcess = errors.New("cannot read what Linux reports about a process")

// ofUser reports whether all user ids of a process are that one.
func (p process) ofUser(uid int) (bool, error) {
	status, err := p.read("status")
	if err != nil {
		return false, err
	}
	_, rest, found := strings.Cut(status, "\nUid:")
	line, _, whole := strings.Cut(rest, "\n")
	ids := strings.Fields(line)
	if !found || !whole || len(ids) != 4 {
		return false, errProcess
	}
	want := strconv.Itoa(uid)
	for _, id := range ids {
		if id != want {
			return false, nil
		}
	}
	return true, nil
}

// started returns when a process began, in ticks since the machine was booted. It
// fails for one that has ended.
func (p process) started() (uint64, error) {
	stat, err := p.read("stat")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:]) // the name before it may hold anything
	if len(fields) < 20 || fields[0] == "X" || fields[0] == "Z" {
		return 0, errProcess
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// bootTicks is the time since the machine was booted, as started has it.
func bootTicks() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return uint64(ts.Nano()) / uint64(10*time.Millisecond) //nolint:gosec // not negative; 100 ticks a second everywhere
}

// Namespaces in which the owner's processes live, as we do. In another user or PID
// namespace an id means something else; in another mount namespace lives what was
// put into a container.
var namespaces = [...]string{"user", "pid", "mnt"}

type inode struct{ dev, ino uint64 }

var ownNamespaces = sync.OnceValue(func() (own [len(namespaces)]inode) {
	for i, n := range namespaces {
		own[i], _ = statNamespace(unix.AT_FDCWD, "/proc/self/ns/"+n) // nothing is equal to none
	}
	return own
})

func statNamespace(dir int, path string) (inode, bool) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, path, &st, 0)
	return inode{uint64(st.Dev), st.Ino}, err == nil //nolint:unconvert // narrower on some platforms
}

func (p process) inOurNamespaces() bool {
	own := ownNamespaces()
	for i, n := range namespaces {
		its, ok := statNamespace(p.fd, "ns/"+n)
		if !ok || its != own[i] {
			return false
		}
	}
	return true
}
