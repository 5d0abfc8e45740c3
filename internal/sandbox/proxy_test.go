package sandbox

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
)

func TestHostRules(t *testing.T) {
	for _, c := range []struct {
		entry, host string
		port        int
		want        bool
	}{
		{"example.com", "example.com", 443, true},
		{"example.com", "example.com", 80, true},
		{"example.com", "example.com", 22, false},
		{"example.com", "www.example.com", 443, false},
		{"EXAMPLE.com.", "example.com", 443, true},
		{"*.example.com", "www.example.com", 443, true},
		{"*.example.com", "a.b.example.com", 443, true},
		{"*.example.com", "example.com", 443, false},
		{"*.example.com", "badexample.com", 443, false},
		{"example.com:8443", "example.com", 8443, true},
		{"example.com:8443", "example.com", 443, false},
		{"192.0.2.1", "192.0.2.1", 443, true},
		{"[::1]:99", "::1", 99, true},
	} {
		r, err := parseHost(c.entry)
		if err != nil {
			t.Errorf("parseHost(%q): %v", c.entry, err)
			continue
		}
		if got := r.allows(c.host, c.port); got != c.want {
			t.Errorf("%q allows %s:%d = %v, want %v", c.entry, c.host, c.port, got, c.want)
		}
	}
	for _, bad := range []string{"", "*", "*.com", "a*b.com", "*example.com", "https://example.com", "example.com/x", "example.com:0", "example.com:x", "-a.com", "a..b", "a b"} {
		if r, err := parseHost(bad); err == nil {
			t.Errorf("parseHost(%q) = %+v, want an error", bad, r)
		}
	}
}

func TestCanonicalHost(t *testing.T) {
	for entry, want := range map[string]string{
		"example.com": "example.com", "EXAMPLE.com.": "example.com", "Example.com:8443": "example.com:8443", "example.com.:8443": "example.com:8443", "example.com:08443": "example.com:8443",
		"*.Example.com.": "*.example.com", "*.example.com:99": "*.example.com:99", "localhost:5432": "localhost:5432", "LOCALHOST.:5432": "localhost:5432",
		"192.0.2.1": "192.0.2.1", "[2001:DB8::0:1]:443": "[2001:db8::1]:443", "[2001:DB8::1]": "2001:db8::1", "::ffff:192.0.2.1": "192.0.2.1", "192.0.2.1.": "192.0.2.1",
		"${HOST}": "${HOST}", "a b": "a b", "": "",
	} {
		got := CanonicalHost(entry)
		if got != want {
			t.Errorf("CanonicalHost(%q) = %q, want %q", entry, got, want)
		}
		if again := CanonicalHost(got); again != got {
			t.Errorf("CanonicalHost(%q) = %q, want itself", got, again)
		}
	}
}

// proxyTest is a proxy with the servers behind it and its denials.
type proxyTest struct {
	addr    string
	mu      sync.Mutex
	denials []Denial
}

func (p *proxyTest) denied(d Denial) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.denials = append(p.denials, d)
}

func newProxyTest(t *testing.T, n Net, names map[string]string) *proxyTest {
	t.Helper()
	pt := &proxyTest{}
	n.Denied = pt.denied
	if err := n.check(); err != nil {
		t.Fatal(err)
	}
	p := newProxy(n)
	p.resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
		if a, ok := names[host]; ok {
			return []netip.Addr{netip.MustParseAddr(a)}, nil
		}
		return nil, fmt.Errorf("no such host")
	}
	// Servers of tests are at 127.0.0.1, which stands for the internet here.
	p.public = func(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.1") }
	pt.addr = serveAt(t, p)
	return pt
}

// serveAt serves a handler for as long as the test runs, and returns its address.
func serveAt(t *testing.T, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serveHTTP(l, h)
	t.Cleanup(s.close)
	return l.Addr().String()
}

func portOf(t *testing.T, rawURL string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// tunnel opens a tunnel and returns it with the status that the proxy answered.
func (p *proxyTest) tunnel(t *testing.T, to string) (net.Conn, int) {
	t.Helper()
	conn, err := net.Dial("tcp", p.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		t.Fatal(err)
	}
	return conn, res.StatusCode
}

func TestProxy(t *testing.T) {
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "secure "+r.Host) }))
	defer secure.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "plain "+r.Host) }))
	defer plain.Close()
	sport, pport := portOf(t, secure.URL), portOf(t, plain.URL)
	names := map[string]string{"example.com": "127.0.0.1", "other.example": "127.0.0.1", "inside.example": "10.1.2.3", "meta.example": "169.254.169.254"}
	p := newProxyTest(t, Net{Mode: Hosts, Allow: []string{"example.com:" + sport, "example.com:" + pport, "inside.example", "meta.example", "10.9.9.9"}}, names)
	pool := x509.NewCertPool()
	pool.AddCert(secure.Certificate())

	get := func(rawURL string, sni string) (string, error) {
		tr := &http.Transport{
			Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: p.addr}),
			TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: sni, MinVersion: tls.VersionTLS12, InsecureSkipVerify: sni != ""},
		}
		defer tr.CloseIdleConnections()
		res, err := (&http.Client{Transport: tr}).Get(rawURL)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return fmt.Sprint(res.StatusCode, " ", string(body)), err
	}
	for _, c := range []struct {
		name, url, sni string
		want           string // in the response, or the error
		denied         string // part of the reason
	}{
		{"TLS to an allowed host", "https://example.com:" + sport, "", "200 secure example.com", ""},
		{"HTTP to an allowed host", "http://example.com:" + pport, "", "200 plain example.com", ""},
		{"TLS to another host", "https://other.example:" + sport, "", "Forbidden", "not among the allowed"},
		{"HTTP to another host", "http://other.example:" + pport, "", "403 the sandbox keeps this program from reaching other.example", "not among the allowed"},
		{"another name in TLS", "https://example.com:" + sport, "other.example", "EOF", `TLS in the tunnel was for "other.example"`},
		{"a private address", "http://inside.example/", "", "10.1.2.3 is not an address of the public internet", "10.1.2.3 is not"},
		{"credentials of a cloud", "https://meta.example/", "", "Forbidden", "169.254.169.254 is not"},
		{"an address", "https://127.0.0.1:" + sport, "", "Forbidden", "not among the allowed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p.mu.Lock()
			p.denials = nil
			p.mu.Unlock()
			got, err := get(c.url, c.sni)
			if err != nil {
				got += err.Error()
			}
			if !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			switch {
			case c.denied == "" && len(p.denials) > 0:
				t.Errorf("denied: %+v, want nothing", p.denials)
			case c.denied != "" && (len(p.denials) != 1 || !strings.Contains(p.denials[0].Why, c.denied)):
				t.Errorf("denied: %+v, want one because %q", p.denials, c.denied)
			}
		})
	}
}

// A tunnel to a web port carries only the protocol of that port.
func TestTunnelCarriesItsHost(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "plain "+r.Host) }))
	defer plain.Close()
	target := plain.Listener.Addr().String()
	p := newProxy(Net{Mode: Hosts, Allow: []string{"example.com", "example.com:22"}})
	var mu sync.Mutex
	var why []string
	p.net.Denied = func(d Denial) {
		mu.Lock()
		defer mu.Unlock()
		why = append(why, d.Why)
	}
	for _, c := range []struct {
		name string
		port int
		sent string
		want carried
		deny string
	}{
		{"a shell on the port of TLS", 443, "SSH-2.0-x\r\n", isOther, "not TLS"},
		{"HTTP on port 80", 80, "GET / HTTP/1.1\r\n", isHTTP, ""},
		{"anything on a port that was named", 22, "SSH-2.0-x\r\n", isOther, ""},
		{"what looks like TLS", 443, "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", isTLS, "looks like TLS"},
		{"a hello that is cut short", 443, "\x16\x03\x01\x02\x00\x01", isTLS, "first message of TLS"},
		{"TLS without end", 443, "\x16\x03\x01\x40\x00\x01\x00\xff\xff" + strings.Repeat("a", 20000), isTLS, "TLS"},
	} {
		t.Run(c.name, func(t *testing.T) {
			why = nil
			got, err := p.inspect(t.Context(), bufio.NewReaderSize(strings.NewReader(c.sent), maxHello), "example.com", c.port)
			if got != c.want || (err != nil) != (c.deny != "") {
				t.Errorf("inspect = %v, %v; want %v, denied because %q", got, err, c.want, c.deny)
			}
			if c.deny != "" && (len(why) != 1 || !strings.Contains(why[0], c.deny)) {
				t.Errorf("denied because %q, want %q", why, c.deny)
			}
		})
	}
	for _, c := range []struct{ name, host, want string }{
		{"its host", "example.com", "200 OK"},
		{"another host", "other.example", "403 Forbidden"},
	} {
		t.Run("a request for "+c.name, func(t *testing.T) {
			p.resolve = func(context.Context, string) ([]netip.Addr, error) { return nil, fmt.Errorf("asked for") }
			p.direct.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, "tcp", target)
			}
			ours, theirs := net.Pipe()
			done := make(chan struct{})
			go func() {
				defer close(done)
				p.plain(theirs, theirs, "example.com", 80)
			}()
			go fmt.Fprintf(ours, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", c.host)
			answer, err := io.ReadAll(ours)
			if err != nil || !strings.Contains(string(answer), c.want) {
				t.Errorf("got %q, %v; want %s", answer, err, c.want)
			}
			_ = ours.Close()
			<-done
		})
	}
}

// An answer about a host covers only that host, and a name that resolves to an
// address of this machine stays closed.
func TestProxyAsks(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "it works") }))
	defer plain.Close()
	port := portOf(t, plain.URL)
	var asked []string
	p := newProxyTest(t, Net{Mode: Hosts, Ask: func(_ context.Context, host string, port int) bool {
		asked = append(asked, fmt.Sprint(host, ":", port))
		return host == "yes.example"
	}}, map[string]string{"yes.example": "127.0.0.1", "no.example": "127.0.0.1"})
	for host, want := range map[string]int{"yes.example": http.StatusOK, "no.example": http.StatusForbidden} {
		if _, got := p.tunnel(t, host+":"+port); got != want {
			t.Errorf("CONNECT %s = %d, want %d", host, got, want)
		}
	}
	if len(asked) != 2 {
		t.Errorf("asked about %q, want both hosts", asked)
	}
}

// The end of a sandbox ends its connections, and nothing of the proxy is left: goleak
// looks at the end of the tests.
func TestProxyEndsWithItsSandbox(t *testing.T) {
	up, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serveHTTP(l, newProxy(Net{Mode: Hosts, Allow: []string{up.Addr().String()}}))
	p := &proxyTest{addr: l.Addr().String()}
	conn, status := p.tunnel(t, up.Addr().String())
	if status != http.StatusOK {
		t.Fatalf("CONNECT = %d, want 200", status)
	}
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	behind, err := up.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer behind.Close()
	if _, err := io.ReadFull(behind, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	s.close()
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("read %d bytes after the end, want an error", n)
	}
}

// An address that is not public is dialed if the list names it, whatever name led
// there, and no other.
func TestNamedAddresses(t *testing.T) {
	p := newProxy(Net{Mode: Hosts, Allow: []string{"a.example", "10.1.2.3", "10.1.2.4:8080"}})
	for _, c := range []struct {
		addr string
		port int
		want bool
	}{{"10.1.2.3", 443, true}, {"10.1.2.3", 8080, false}, {"10.1.2.4", 8080, true}, {"10.1.2.4", 443, false}, {"10.1.2.5", 443, false}} {
		if got := p.named(netip.MustParseAddr(c.addr), c.port); got != c.want {
			t.Errorf("%s:%d is named = %v, want %v", c.addr, c.port, got, c.want)
		}
	}
	var denied []Denial
	p.net.Denied = func(d Denial) { denied = append(denied, d) }
	p.resolve = func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("10.1.2.5")}, nil
	}
	if conn, err := p.dial(t.Context(), "a.example:8443"); err == nil {
		_ = conn.Close()
		t.Error("a private address that is not named was dialed")
	}
	if len(denied) != 1 || denied[0].Allow != "10.1.2.5:8443" {
		t.Errorf("denied: %+v, want one that says to allow 10.1.2.5:8443", denied)
	}
}

// Port 443 carries TLS alone, whichever way a request comes: as a tunnel, or whole.
func TestPlainToPort443(t *testing.T) {
	for _, to := range []string{"example.com:443", "example.com:0443", "EXAMPLE.com.:443"} {
		p := newProxyTest(t, Net{Mode: Hosts, Allow: []string{"example.com", "example.com:443"}}, map[string]string{"example.com": "127.0.0.1"})
		conn := connected(t, p.addr)
		fmt.Fprintf(conn, "GET http://%s/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", to)
		said, err := io.ReadAll(conn)
		if err != nil || !strings.Contains(string(said), " 403 ") || !strings.Contains(string(said), "what was sent is not TLS") {
			t.Errorf("http://%s/: got %q, %v; want a refusal that says that it is not TLS", to, said, err)
		}
		p.mu.Lock()
		if len(p.denials) != 1 || p.denials[0].Host != "example.com" || p.denials[0].Port != 443 {
			t.Errorf("http://%s/: denied %+v, want example.com:443", to, p.denials)
		}
		p.mu.Unlock()
	}
}

// A refusal offers an entry only if the list takes it, and says else why it does not.
func TestRefusalsOffer(t *testing.T) {
	p := newProxy(Net{Mode: Hosts})
	p.endpoints = []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8787")}
	const listed = "it is not among the allowed hosts"
	for _, c := range []struct {
		host        string
		port        int
		why, offers string
	}{
		{"example.com", 443, listed, "example.com"},
		{"example.com", 8443, listed, "example.com:8443"},
		{"127.0.0.1", 5432, listed, "127.0.0.1:5432"},
		{"127.0.0.1", 3128, "is the address of its proxy", ""},
		{"localhost", 3128, "is the address of its proxy", ""},
		{"127.0.0.3", 3128, "Go modules of the host are at this address", ""},
		{"0.0.0.0", 80, "programs listen at this address", ""},
		{"::", 8080, "programs listen at this address", ""},
		{"127.0.0.1", 8787, "yaya's own endpoint is at this address", ""},
		{"localhost", 8787, "yaya's own endpoint is at this address", ""},
	} {
		err := p.allow(t.Context(), c.host, c.port)
		d, ok := errors.AsType[*refusal](err)
		if !ok || d.Allow != c.offers || !strings.Contains(d.Why, c.why) || strings.Contains(d.Why, "host \"") {
			t.Errorf("allow(%s, %d) = %v; want %q, and the offer %q", c.host, c.port, err, c.why, c.offers)
		}
	}
	// A name that is allowed leads there.
	_, err := p.dialAny(t.Context(), "a.example", 80, []netip.Addr{netip.MustParseAddr("0.0.0.0")})
	if d, ok := errors.AsType[*refusal](err); !ok || d.Allow != "" || strings.Contains(d.Why, "allow the address") {
		t.Errorf("a name that leads to 0.0.0.0: %v, want no offer", err)
	}
}
