package gateway

import (
	"context"
	"net"
	"syscall"
	"testing"

	"github.com/yaya-ai/yaya/internal/passedon"
)

// Where programs run in sandboxes, a connection that was passed on for one is nobody's:
// neither that of yaya's own process, nor a marked one of another process of its user.
func TestPassedOnIsNobodys(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		t.Run(addr, func(t *testing.T) {
			asked(t, "sock_diag") // which shows the mark
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Skip(err)
			}
			defer l.Close()
			dial := func(d net.Dialer) net.Conn {
				t.Helper()
				c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				s, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
				return s
			}
			plain := dial(net.Dialer{})
			marked := dial(net.Dialer{ControlContext: func(_ context.Context, network, _ string, c syscall.RawConn) error {
				return passedon.Mark(network, c)
			}})
			sandboxes := &Server{cfg: Config{Sandboxed: func(int) bool { return false }}}
			for _, c := range []struct {
				name string
				s    *Server
				conn net.Conn
				want string
			}{
				{"our own process, with sandboxes", sandboxes, plain, yayaItself},
				{"our own process, without sandboxes", new(Server), plain, ""},
				{"what was passed on, with sandboxes", sandboxes, marked, passedOn},
				{"what another process passed on", new(Server), marked, passedOn},
			} {
				if got := c.s.whoIs(c.conn, bootTicks()); got.refused != c.want {
					t.Errorf("%s: got %q, want %q", c.name, got.refused, c.want)
				}
			}
		})
	}
}
