package gateway

import (
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// pair is a connection over TCP: our end, and its, which this process has, too.
func pair(tb testing.TB, addr string) (ours, its *net.TCPConn) {
	tb.Helper()
	l, err := net.Listen("tcp", addr) //nolint:noctx // test
	if err != nil {
		tb.Skipf("%s: %v", addr, err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String()) //nolint:noctx // test
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.Close() })
	s, err := l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s.(*net.TCPConn), c.(*net.TCPConn)
}

// finders are the two ways to ask Linux.
var finders = map[string]func(its, ours *net.TCPAddr) (socketInfo, error){"sock_diag": socketByDiag, "tables": socketByTable}

// asked skips a way to ask that this machine refuses to every program, as the sandbox of
// an agent's commands does.
func asked(t *testing.T, name string) {
	t.Helper()
	if name != "sock_diag" {
		return
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		t.Skipf("sock_diag: %v", err)
	}
	_ = unix.Close(fd)
}

// R6: the owner of the other end is who Linux says, and an end that does
// not exist has none.
func TestFindSocket(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		for name, find := range finders {
			t.Run(name+" "+addr, func(t *testing.T) {
				asked(t, name)
				s, _ := pair(t, addr)
				its, ours := s.RemoteAddr().(*net.TCPAddr), s.LocalAddr().(*net.TCPAddr)
				got, err := find(its, ours)
				if err != nil || int(got.uid) != os.Getuid() || !got.held() {
					t.Errorf("got %+v, %v; want a held socket of user %d", got, err, os.Getuid())
				}
				var h holders
				p, ok := h.find(got.inode)
				if !ok || p.pid != os.Getpid() {
					t.Errorf("holder: got %d, %v; want %d", p.pid, ok, os.Getpid())
				} else {
					p.close()
				}
				if got, err := find(&net.TCPAddr{IP: its.IP, Port: 1}, ours); err == nil {
					t.Errorf("a socket that does not exist: got %+v", got)
				}
			})
		}
	}
}

// OP-123: a process with many connections does not make yaya read all its descriptors for each: a look
// remembers what it saw, those who ask meanwhile share the next look, and what is remembered is
// proved again.
func TestHolderOfManySockets(t *testing.T) {
	const many = 200
	var inodes []uint32
	var ends []*net.TCPConn
	open := func() uint32 {
		t.Helper()
		ours, its := pair(t, "127.0.0.1:0")
		info, err := findSocket(ours.RemoteAddr().(*net.TCPAddr), ours.LocalAddr().(*net.TCPAddr))
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, its)
		return info.inode
	}
	for range many {
		inodes = append(inodes, open())
	}
	var h holders
	find := func(inode uint32) bool {
		p, ok := h.find(inode)
		if ok {
			defer p.close()
		}
		return ok && p.pid == os.Getpid()
	}
	var all sync.WaitGroup
	for _, inode := range inodes {
		all.Go(func() {
			if !find(inode) {
				t.Errorf("the holder of socket %d was not found, want this process", inode)
			}
		})
	}
	all.Wait()
	looks := h.clock
	for _, inode := range inodes {
		if !find(inode) {
			t.Errorf("the holder of socket %d was not found again, want this process", inode)
		}
	}
	if h.clock != looks {
		t.Errorf("%d more reads of the descriptors for sockets that are known, want none", h.clock-looks)
	}
	if late := open(); !find(late) || h.clock != looks+1 {
		t.Errorf("a new socket: found %v, %d reads, want it with one", find(late), h.clock-looks)
	}
	// A socket that was closed is nobody's, whatever is remembered.
	if err := ends[0].Close(); err != nil {
		t.Fatal(err)
	}
	if find(inodes[0]) {
		t.Error("a closed socket has a holder, want none")
	}
	if len(h.waiting) != 0 || h.looking || len(h.known) != 1 || len(h.recent) != 1 {
		t.Errorf("left behind: %d waiting, looking %v, %d processes known, %d recent; want one of these", len(h.waiting), h.looking, len(h.known), len(h.recent))
	}
}

// SEC-1: a socket that was closed is nobody's, in whatever state Linux keeps it.
// It says of such a one that it belongs to root.
func TestClosedSocketIsNobodys(t *testing.T) {
	for name, find := range finders {
		for _, closing := range []struct {
			name string
			do   func(ours, its *net.TCPConn) error
			held bool
		}{
			{"open", func(_, _ *net.TCPConn) error { return nil }, true},
			{"half-closed by the client", func(_, its *net.TCPConn) error { return its.CloseWrite() }, true},
			{"half-closed by us", func(ours, _ *net.TCPConn) error { return ours.CloseWrite() }, true},
			{"orphan in FIN_WAIT", func(_, its *net.TCPConn) error { return its.Close() }, false},
			{"TIME_WAIT", func(ours, its *net.TCPConn) error {
				if err := its.Close(); err != nil {
					return err
				}
				return ours.CloseWrite()
			}, false},
		} {
			t.Run(name+" "+closing.name, func(t *testing.T) {
				asked(t, name)
				s, c := pair(t, "127.0.0.1:0")
				its, ours := s.RemoteAddr().(*net.TCPAddr), s.LocalAddr().(*net.TCPAddr)
				if err := closing.do(s, c); err != nil {
					t.Fatal(err)
				}
				// The first answer counts: nobody may be the owner for a moment.
				for deadline := time.Now().Add(20 * time.Millisecond); time.Now().Before(deadline); {
					got, err := find(its, ours)
					if held := err == nil && got.held(); held != closing.held {
						t.Fatalf("got %+v, %v: held = %v, want %v", got, err, held, closing.held)
					}
				}
			})
		}
	}
}

// BenchmarkWhoIs measures the cost of a new connection of the owner.
func BenchmarkWhoIs(b *testing.B) {
	for name, s := range map[string]*Server{"known": {}, "searched": nil} {
		b.Run(name, func(b *testing.B) {
			c, _ := pair(b, "127.0.0.1:0")
			for b.Loop() {
				srv := s
				if srv == nil {
					srv = new(Server)
				}
				if id := srv.whoIs(c, bootTicks()); id.refused != "" {
					b.Fatalf("got %q, want no refused", id.refused)
				}
			}
		})
	}
}

// end is a connection whose ends have any addresses.
type end struct {
	net.Conn
	ours, its net.Addr
}

func (e end) LocalAddr() net.Addr  { return e.ours }
func (e end) RemoteAddr() net.Addr { return e.its }

// An end that is not on this machine, or of which nothing is known, is not the owner's.
func TestEndsThatCannotBeTheOwner(t *testing.T) {
	here := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}
	for name, e := range map[string]end{
		"another machine":               {nil, here, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 2}},
		"another machine, IPv6":         {nil, here, &net.TCPAddr{IP: net.ParseIP("2001:db8::1"), Port: 2}},
		"a peer without an address":     {nil, here, nil},
		"a peer of another kind":        {nil, here, &net.UDPAddr{IP: here.IP, Port: 2}},
		"a listener of another kind":    {nil, &net.UDPAddr{IP: here.IP, Port: 1}, here},
		"a listener without an address": {nil, nil, here},
		"a listener on a raw IP socket": {nil, &net.IPAddr{IP: here.IP}, here},
	} {
		if got, want := new(Server).whoIs(e, bootTicks()), (identity{refused: elsewhere}); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
}
