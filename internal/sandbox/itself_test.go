package sandbox

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

// ownAddress is an address of one of this machine's interfaces that is not loopback.
func ownAddress(t *testing.T) netip.Addr {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, err := netip.ParsePrefix(a.String()); err == nil && !n.Addr().IsLoopback() && !n.Addr().IsLinkLocalUnicast() {
			return n.Addr()
		}
	}
	t.Skip("this machine has no address but loopback ones")
	return netip.Addr{}
}

// A listener is at the address that it was opened at, and at every one of this machine
// if that is unspecified.
func TestItsOwn(t *testing.T) {
	own := ownAddress(t).String()
	for _, c := range []struct {
		listen, at string
		want       bool
	}{
		{"127.0.0.1:8787", "127.0.0.1:8787", true},
		{"127.0.0.1:8787", "127.0.0.1:8788", false},
		{"127.0.0.1:8787", "[::ffff:127.0.0.1]:8787", true},
		{"127.0.0.1:8787", "0.0.0.0:8787", true},
		{"127.0.0.1:8787", "[::]:8787", true},
		{"127.0.0.1:8787", "[::1]:8787", false},
		{"127.0.0.1:8787", "127.0.0.2:8787", false},
		{"127.0.0.1:8787", net.JoinHostPort(own, "8787"), false},
		{"[::1]:8787", "[::1]:8787", true},
		{"[::]:443", "127.0.0.1:443", true},
		{"[::]:443", "127.9.9.9:443", true},
		{"[::]:443", "[::1]:443", true},
		{"[::]:443", net.JoinHostPort(own, "443"), true},
		{"0.0.0.0:443", net.JoinHostPort(own, "443"), true},
		{"[::]:443", "192.0.2.1:443", false},
		{"[::]:443", "[2001:db8::1]:443", false},
	} {
		if got := itsOwn(netip.MustParseAddrPort(c.at), []string{"192.0.2.9:1", c.listen}); got != c.want {
			t.Errorf("with a listener at %s, itsOwn(%s) = %v, want %v", c.listen, c.at, got, c.want)
		}
	}
}

// yayaBehind is a server that stands for yaya, and a proxy that knows that it is.
func yayaBehind(t *testing.T, n Net, names map[string]string) (p *proxy, pt *proxyTest, addr string) {
	t.Helper()
	yaya := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("yaya was reached") }))
	t.Cleanup(yaya.Close)
	addr = yaya.Listener.Addr().String()
	pt = &proxyTest{}
	n.Mode, n.Denied = Hosts, pt.denied
	for i, entry := range n.Allow {
		n.Allow[i] = strings.ReplaceAll(entry, "PORT", portOf(t, yaya.URL))
	}
	p = newProxy(n)
	p.listens = func() []string { return []string{addr} }
	p.environ = func(*http.Request) (*url.URL, error) { return nil, nil }
	p.resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr(names[host])}, nil
	}
	pt.addr = serveAt(t, p)
	return p, pt, addr
}

// Every way to yaya is refused, even if a list allows it, and no remedy is offered.
func TestProxyNeverLeadsToYaya(t *testing.T) {
	for _, c := range []struct{ name, allow, to string }{
		{"its address", "127.0.0.1:PORT", "127.0.0.1:PORT"},
		{"its address, not allowed", "example.com", "127.0.0.1:PORT"},
		{"its address, mapped", "127.0.0.1:PORT", "[::ffff:127.0.0.1]:PORT"},
		{"the name of loopback", "localhost:PORT", "localhost:PORT"},
		{"a name that leads there", "127.0.0.1:PORT evil.example:PORT", "evil.example:PORT"},
		{"a name that nobody has heard of", "127.0.0.1:PORT", "new.example:PORT"},
	} {
		for _, way := range []string{"CONNECT", "GET", "an upstream proxy"} {
			t.Run(c.name+" by "+way, func(t *testing.T) {
				// The user answers yes to every name.
				asked := func(_ context.Context, host string, _ int) bool {
					if host != "new.example" {
						t.Errorf("somebody was asked about %s", host)
					}
					return true
				}
				p, pt, addr := yayaBehind(t, Net{Allow: strings.Fields(c.allow), Ask: asked}, map[string]string{"evil.example": "127.0.0.1", "new.example": "127.0.0.1", "localhost": "127.0.0.1"})
				_, port, _ := net.SplitHostPort(addr)
				to := strings.ReplaceAll(c.to, "PORT", port)
				status := 0
				switch way {
				case "an upstream proxy":
					p.environ = func(r *http.Request) (*url.URL, error) {
						if strings.HasSuffix(r.URL.Hostname(), ".example") {
							return &url.URL{Scheme: "http", Host: addr}, nil // yaya, which must not be asked either
						}
						return nil, nil
					}
					fallthrough
				case "CONNECT":
					_, status = pt.tunnel(t, to)
				case "GET":
					tr := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: pt.addr})}
					defer tr.CloseIdleConnections()
					res, err := (&http.Client{Transport: tr}).Get("http://" + to + "/")
					if err != nil {
						t.Fatal(err)
					}
					_ = res.Body.Close()
					status = res.StatusCode
				}
				if status != http.StatusForbidden && status != http.StatusBadGateway {
					t.Errorf("got %d, want a refusal", status)
				}
				pt.mu.Lock()
				defer pt.mu.Unlock()
				if len(pt.denials) != 1 || !strings.Contains(pt.denials[0].Why, "yaya itself listens at "+addr) || !strings.Contains(pt.denials[0].Why, `"mcp": true`) || pt.denials[0].Allow != "" {
					t.Errorf("denied: %+v, want one that names yaya and the way that there is, and nothing to allow", pt.denials)
				}
			})
		}
	}
}

// A list that names yaya's address is refused where it is written.
func TestCheckHosts(t *testing.T) {
	listens := []string{"127.0.0.1:8787", "[::]:443"}
	for entry, want := range map[string]string{
		"127.0.0.1:8787":          "yaya itself listens at 127.0.0.1:8787",
		"localhost:8787":          "yaya itself listens at 127.0.0.1:8787",
		"[::ffff:127.0.0.1]:8787": "yaya itself listens",
		"::1":                     "yaya itself listens at [::1]:443",
		"127.0.0.1":               "yaya itself listens at 127.0.0.1:443",
		"127.0.0.1:5432":          "",
		"localhost:5432":          "",
		"example.com:8787":        "",
		"example.com":             "",
		"0.0.0.0:8787":            "connect to 127.0.0.1",
		"[::]:1":                  "connect to 127.0.0.1",
		"[::%lo]:8787":            "connect to 127.0.0.1",
		"[::ffff:0.0.0.0]:8787":   "connect to 127.0.0.1",
		"0:8787":                  "connect to 127.0.0.1",
		"0":                       "connect to 127.0.0.1",
		"0.0:8787":                "connect to 127.0.0.1",
		"0x0:8787":                "connect to 127.0.0.1",
		"00000:8787":              "connect to 127.0.0.1",
		"127.1:8787":              "the address 127.0.0.1 in another spelling; write 127.0.0.1:8787",
		"127.1":                   "the address 127.0.0.1 in another spelling; write 127.0.0.1",
		"2130706433:5432":         "the address 127.0.0.1 in another spelling; write 127.0.0.1:5432",
		"localhost:3128":          "the address of its proxy",
		"127.0.0.1:3128":          "the address of its proxy",
		"127.0.0.3:3128":          "Go modules of the host are at this address",
		"[::ffff:127.0.0.3]:3128": "Go modules of the host are at this address",
		"http://x":                "a host is NAME or NAME:PORT; write x",
		"https://x.example:8443/": "a host is NAME or NAME:PORT; write x.example:8443",
		"example.com/path":        "a host is NAME or NAME:PORT; write example.com",
		"http://":                 "a host is NAME or NAME:PORT, such as",
	} {
		err := CheckHosts([]string{"a.example", entry}, listens)
		if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) {
			t.Errorf("CheckHosts(%q) = %v, want %q", entry, err, want)
		}
	}
}
