package sandbox

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
)

// forwardTo passes a listener's connections on to an address.
func forwardTo(t *testing.T, p *proxy, to string) (*forwarder, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := netip.MustParseAddrPort(to)
	return p.serveForward(l, forward{at: at, to: []netip.AddrPort{at}}), l.Addr().String()
}

// aborted checks that a connection ends with an error, not with the end of the
// data.
func aborted(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
		_ = conn.Close()
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("connected to %s: %v, want a reset", addr, err)
	}
}

// Connections are passed on both ways, and end with the sandbox.
func TestForward(t *testing.T) {
	service, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	to := service.Addr().String()
	p := newProxy(Net{Mode: Hosts, Allow: []string{to}})
	f, addr := forwardTo(t, p, to)
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	behind, err := service.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer behind.Close()
	if _, err := io.ReadFull(behind, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	f.close()
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes after the end, want an error", n)
	}
	if n, err := behind.Read(make([]byte, 1)); err == nil {
		t.Errorf("the service read %d bytes after the end, want an error", n)
	}
}

// A service that is not there, or is yaya, ends the connection, and is reported.
func TestForwardFails(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	to := l.Addr().String()
	told := make(chan string, 1)
	p := newProxy(Net{
		Mode: Hosts, Allow: []string{to},
		Denied:    func(d Denial) { told <- fmt.Sprint("denied ", d) },
		Unreached: func(host string, port int, why string) { told <- fmt.Sprint(host, " ", port, " ", why) },
	})
	p.listens = func() []string { return []string{to} }
	f, addr := forwardTo(t, p, to)
	aborted(t, addr)
	if got := <-told; !strings.Contains(got, "yaya itself listens at "+to) {
		t.Errorf("told %q, want that yaya is there", got)
	}
	f.close()
	_ = l.Close()
	p.listens = func() []string { return nil }
	f, addr = forwardTo(t, p, to)
	aborted(t, addr)
	if got := <-told; !strings.Contains(got, "connection refused") {
		t.Errorf("told %q, want that nothing listens there", got)
	}
	f.close()
}

// Entries for services of this machine, and no others, are listeners.
func TestForwards(t *testing.T) {
	for _, c := range []struct {
		allow, want string
	}{
		{"127.0.0.1:5432", "127.0.0.1:5432→127.0.0.1:5432"},
		{"[::1]:5432", "[::1]:5432→[::1]:5432"},
		{"localhost:5432", "127.0.0.1:5432→127.0.0.1:5432,[::1]:5432 [::1]:5432→[::1]:5432,127.0.0.1:5432 spare"},
		{"127.0.0.1:5432 localhost:5432", "127.0.0.1:5432→127.0.0.1:5432 [::1]:5432→[::1]:5432,127.0.0.1:5432 spare"},
		{"127.0.0.53", "127.0.0.53:443→127.0.0.53:443 127.0.0.53:80→127.0.0.53:80"},
		{"example.com:5432 *.localhost.example 10.1.2.3:5432 192.0.2.1", ""},
	} {
		n := Net{Mode: Hosts, Allow: strings.Fields(c.allow)}
		if err := n.check(); err != nil {
			t.Errorf("check of %q = %v, want nil", c.allow, err)
		}
		var got []string
		for _, f := range n.forwards() {
			to := make([]string, len(f.to))
			for i, at := range f.to {
				to[i] = at.String()
			}
			one := f.at.String() + "→" + strings.Join(to, ",")
			if f.spare {
				one += " spare"
			}
			got = append(got, one)
		}
		if got := strings.Join(got, " "); got != c.want {
			t.Errorf("forwards of %q: got %s, want %s", c.allow, got, c.want)
		}
	}
	n := Net{Mode: Hosts}
	for port := range maxForwards + 1 {
		n.Allow = append(n.Allow, fmt.Sprintf("127.0.0.1:%d", 5000+port))
	}
	if err := n.check(); err == nil || !strings.Contains(err.Error(), "at most 64") {
		t.Errorf("check of %d services = %v, want that there are at most 64", len(n.Allow), err)
	}
	n.Allow = n.Allow[1:]
	if err := n.check(); err != nil {
		t.Errorf("check of %d services = %v, want nothing", len(n.Allow), err)
	}
}
