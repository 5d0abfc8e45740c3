package gateway

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
)

// dialFrom opens a connection from 127.0.0.host.
func dialFrom(t *testing.T, addr string, host byte) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, host)}, Timeout: 10 * time.Second}
	c, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil && host > 1 {
		t.Skip("this machine has one loopback address:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// closedByPeer waits until the other end has closed a connection.
func closedByPeer(t *testing.T, c net.Conn) bool {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	_, err := io.Copy(io.Discard, c)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

func (c *conns) open() (strangers, known int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.strangers.Taken(), c.known.Taken()
}

// streaming is a handler that answers with one line and goes on until its client
// leaves, as a stream does.
func streaming(t *testing.T) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "here")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("Flush = %v, want no error", err)
		}
		<-r.Context().Done()
	})
}

// SEC-11: connections are bounded, whoever floods them closes its own, and neither a
// device's stream nor a newcomer, nor the socket, is shut out.
func TestConnectionsAreBounded(t *testing.T) {
	a, _ := authority(t)
	tok := token(t, a, "phone", auth.ToolsCall, auth.AgentsRead)
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	srv, unix := started(t, Config{
		Listen: "127.0.0.1:0", Socket: filepath.Join(t.TempDir(), "s"), Authority: a, MCP: streaming(t), Routes: apis(t, ok),
		Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, // so that nobody here is the owner
		limits:  limits{conns: 64},
	})
	device := dialFrom(t, srv.Addr(), 1)
	fmt.Fprintf(device, "GET /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", srv.Addr(), tok)
	lines := bufio.NewReader(device)
	if resp, err := http.ReadResponse(lines, nil); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("a device's stream: %v, %v", resp, err)
	}
	var flood []net.Conn
	for n := range 300 {
		flood = append(flood, dialFrom(t, srv.Addr(), byte(2+n%16)))
		if s, k := srv.conns.open(); s > 32 || k != 1 {
			t.Fatalf("after %d connections %d strangers and %d known ones are open, want at most 32 and 1", n+1, s, k)
		}
	}
	if !closedByPeer(t, flood[0]) {
		t.Error("the oldest idle connection is still open")
	}
	for n := range 40 {
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		if got := ask(t, c, "GET", "http://"+srv.Addr()+"/agents", "", "Authorization", "Bearer "+tok); got.status != http.StatusOK {
			t.Errorf("request %d of a device during the flood: got %d, want 200", n, got.status)
		}
	}
	if got := ask(t, unix, "GET", "http://yaya/agents", ""); got.status != http.StatusOK {
		t.Errorf("over the socket: got %d, want 200", got.status)
	}
	_ = device.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = lines.ReadString('\n') // the chunk's size
	if line, err := lines.ReadString('\n'); line != "here\n" {
		t.Errorf("the device's stream said %q, %v", line, err)
	}
	if _, err := lines.ReadByte(); err == io.EOF {
		t.Error("the device's stream was closed")
	}
}

// SEC-9, SEC-11: the connections of the local owner are not displaced by those of others on
// this machine, and one network has a share.
func TestConnectionsOfNetworks(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := newConns(64, false, zerolog.Nop())
	var guests []*guest
	accept := func(host byte, owned bool) *guest {
		t.Helper()
		dialFrom(t, l.Addr().String(), host)
		nc, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		g := c.take(nc.(*net.TCPConn), true, func() bool { return owned })
		guests = append(guests, g)
		return g
	}
	defer func() {
		for _, g := range guests {
			_ = g.Close()
			_ = g.Close()
		}
		if s, k := c.open(); s != 0 || k != 0 {
			t.Errorf("%d strangers and %d known are counted when all are closed", s, k)
		}
	}()
	for range 12 {
		accept(2, false)
	}
	if s, _ := c.open(); s != 8 {
		t.Errorf("one network has %d connections, want 8", s)
	}
	for range 40 { // of the owner, while a stranger has all that its address may have
		accept(2, true)
	}
	if s, k := c.open(); s != 8 || k != 32 {
		t.Errorf("%d strangers and %d of the owner, want 8 and 32", s, k)
	}
	// The known are few, too; one device has a share of them, and the owner more.
	c = newConns(64, false, zerolog.Nop())
	for n := range 40 {
		g := accept(byte(2+n/8), false)
		c.know(g, auth.Principal{Kind: auth.Device, ID: "greedy"})
		c.know(g, auth.Principal{Kind: auth.Anonymous})
	}
	if _, k := c.open(); k != 8 {
		t.Errorf("one device has %d places among the known, want 8", k)
	}
	for n := range 40 {
		c.know(accept(byte(2+n/8), false), auth.Principal{Kind: auth.Device, ID: fmt.Sprint("d", n)})
	}
	if _, k := c.open(); k != 24 {
		t.Errorf("devices have %d places among the known, want 24: the others are the owner's", k)
	}
	for range 4 {
		c.know(accept(1, false), auth.LocalOwner)
	}
	if _, k := c.open(); k != 28 {
		t.Errorf("%d known, want 28 with the owner's", k)
	}
}
