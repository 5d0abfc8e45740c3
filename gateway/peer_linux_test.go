package gateway

import (
	"net"
	"os"
	"testing"
)

// R6: the owner of the other end is who the kernel says, and an end that does
// not exist has none.
func TestSocketOwner(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", addr) //nolint:noctx // test
		if err != nil {
			t.Logf("%s: %v", addr, err)
			continue
		}
		defer l.Close()
		c, err := net.Dial("tcp", l.Addr().String()) //nolint:noctx // test
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		its, ours := s.RemoteAddr().(*net.TCPAddr), s.LocalAddr().(*net.TCPAddr)
		uid, err := socketOwner(its, ours)
		if err != nil || int(uid) != os.Getuid() {
			t.Errorf("%s: owner %d, %v; want %d", addr, uid, err, os.Getuid())
		}
		if !ownsSocketByTable(its, ours) || ownsSocketByTable(&net.TCPAddr{IP: its.IP, Port: 1}, ours) {
			t.Errorf("%s: the socket tables say otherwise", addr)
		}
		if !ownsSocket(its, ours) {
			t.Errorf("%s: not taken for the owner", addr)
		}
		nobody := &net.TCPAddr{IP: its.IP, Port: 1}
		if uid, err := socketOwner(nobody, ours); err == nil {
			t.Errorf("%s: a socket that does not exist belongs to %d", addr, uid)
		}
	}
}
