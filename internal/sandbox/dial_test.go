package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// A name that cannot be resolved, and an address where nothing answers, are reported.
func TestUnreachedIsTold(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	_ = l.Close()
	var told []string
	p := newProxyTest(t, Net{Mode: Hosts, Allow: []string{nobody}, Ask: func(context.Context, string, int) bool { return true }, Unreached: func(host string, port int, why string) {
		told = append(told, fmt.Sprintf("%s %d %s", host, port, why))
	}}, nil)
	for _, to := range []string{"example.internal:8443", nobody} {
		if _, status := p.tunnel(t, to); status != http.StatusBadGateway {
			t.Errorf("CONNECT %s = %d, want 502", to, status)
		}
	}
	if len(told) != 2 || told[0] != "example.internal 8443 example.internal could not be resolved: no such host" || !strings.HasSuffix(told[1], " nothing listens there on this machine: connect: connection refused") {
		t.Errorf("told %q, want that the one cannot be resolved, and that nobody listens at the other", told)
	}
	if len(p.denials) > 0 {
		t.Errorf("denied: %+v, want nothing", p.denials)
	}
}

// A name that leads to several private addresses is refused once, in the same words in
// whatever order they come; not at all if one of its addresses can be reached.
func TestPrivateNameIsRefusedOnce(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	addrs := []netip.Addr{netip.MustParseAddr("10.1.2.4"), netip.MustParseAddr("10.1.2.3")}
	var denied []Denial
	p := newProxy(Net{Mode: Hosts, Allow: []string{"mirror.example:" + port}, Denied: func(d Denial) { denied = append(denied, d) }})
	p.public = func(a netip.Addr) bool { return a.IsLoopback() } // stands for the internet
	p.resolve = func(context.Context, string) ([]netip.Addr, error) {
		slices.Reverse(addrs)
		return addrs, nil
	}
	for range 2 {
		if _, err := p.dial(t.Context(), "mirror.example:"+port); err == nil {
			t.Error("a private address was dialed")
		}
	}
	if len(denied) != 2 || denied[0] != denied[1] || denied[0].Allow != "10.1.2.3:"+port || !strings.Contains(denied[0].Why, "mirror.example leads into a private network: 10.1.2.3 is not") {
		t.Errorf("denied: %+v, want the same for each attempt", denied)
	}
	denied, addrs = nil, append(addrs, netip.MustParseAddr("127.0.0.1"))
	conn, err := p.dial(t.Context(), "mirror.example:"+port)
	if err != nil {
		t.Fatal(err)
	}
	_ = conn.Close()
	if len(denied) > 0 {
		t.Errorf("denied: %+v, want nothing: one of its addresses could be reached", denied)
	}
}
