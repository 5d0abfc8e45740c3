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
		uid, inode, err := socketOwner(its, ours)
		if err != nil || int(uid) != os.Getuid() {
			t.Errorf("%s: owner %d, %v; want %d", addr, uid, err, os.Getuid())
		}
		if n, ok := ownsSocketByTable(its, ours); !ok || n != inode || inode == 0 {
			t.Errorf("%s: the socket tables say otherwise: %d, %v", addr, n, ok)
		}
		if _, ok := ownsSocketByTable(&net.TCPAddr{IP: its.IP, Port: 1}, ours); ok {
			t.Errorf("%s: the socket tables say otherwise of nobody", addr)
		}
		if n, ok := ownsSocket(its, ours); !ok || n != inode {
			t.Errorf("%s: not taken for the owner", addr)
		}
		nobody := &net.TCPAddr{IP: its.IP, Port: 1}
		if uid, _, err := socketOwner(nobody, ours); err == nil {
			t.Errorf("%s: a socket that does not exist belongs to %d", addr, uid)
		}
	}
}
