package gateway

import (
	"net"
	"os"
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

// finders are the two ways to ask the kernel.
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

// R6: the owner of the other end is who the kernel says, and an end that does
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

// SEC-1: a socket that was closed is nobody's, in whatever state the kernel keeps it.
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

// What the owner's connection costs when it is new.
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
					b.Fatal(id.refused)
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
