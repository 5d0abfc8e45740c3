package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/netaddr"
)

// ErrPrivate is returned if a server's metadata points into a private network that the server
// is not in.
var ErrPrivate = errors.New("refused: the address is not public, and the server that names it is not in that network")

// guard decides which addresses requests on behalf of a server may reach: the public internet,
// and the network of the server itself, judged by the address that yaya was connected to when
// the server named them. Host names do not count, since their owner can change the address that
// they resolve to at any time.
type guard struct {
	from  netip.Addr // of the server; zero when it is not known
	named []string   // host:port of what the user's own configuration names
}

// newGuard returns the guard for URLs that a server names from an address. An address or
// localhost in the server's own URL is trusted: the user wrote it.
func newGuard(server string, from netip.Addr, c Config) guard {
	g := guard{from: from}
	if u, err := url.Parse(server); err == nil {
		if a, ok := literal(u); ok {
			g.from = a
		}
	}
	for _, issuer := range []string{c.Issuer, c.IdPIssuer} {
		u, err := url.Parse(issuer)
		if err != nil || u.Host == "" {
			continue
		}
		// Over plain HTTP, nothing proves that a name leads to the host that the user meant.
		if _, ok := literal(u); ok || u.Scheme == "https" {
			g.named = append(g.named, hostPort(u))
		}
	}
	return g
}

// literal returns the IP address that is the host of a URL.
func literal(u *url.URL) (netip.Addr, bool) {
	if strings.EqualFold(u.Hostname(), "localhost") {
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), true
	}
	a, err := netip.ParseAddr(u.Hostname())
	return a, err == nil
}

// hostPort returns the host and port of a URL as they are dialed.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

// check returns an error if a connection to the address is not allowed.
func (g guard) check(address string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if a := ap.Addr(); !netaddr.Public(a) && !netaddr.Together(a, g.from) {
		return fmt.Errorf("%w (%s; if you trust it, name the authorization server as oauth.issuer in the server's configuration)", ErrPrivate, a)
	}
	return nil
}

// transport carries requests to authorization servers. It checks each address when it dials,
// regardless of earlier name resolution, and ignores the proxies of the environment, since a
// proxy would resolve names itself.
func (g guard) transport() *http.Transport {
	plain := &net.Dialer{Timeout: 10 * time.Second}
	checked := &net.Dialer{Timeout: 10 * time.Second, ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
		return g.check(address)
	}}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			if slices.Contains(g.named, strings.ToLower(addr)) {
				return plain.DialContext(ctx, network, addr)
			}
			return checked.DialContext(ctx, network, addr)
		},
		TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 20 * time.Second,
		MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true,
	}
}

// client returns the HTTP client for all requests except those to the MCP server itself.
func (g guard) client(p *proof) *http.Client {
	var rt http.RoundTripper = g.transport()
	if p != nil {
		rt = &proving{rt, p}
	}
	return &http.Client{Transport: rt, Timeout: 30 * time.Second, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		first := via[0].URL
		if len(via) > 3 || req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
			return fmt.Errorf("the server redirects to %s://%s, and yaya does not follow redirects to another origin", req.URL.Scheme, req.URL.Host)
		}
		return nil
	}}
}

// traced sends a request and returns the address that answered it. It returns no address for a
// request through a proxy, whose address says nothing about the server's.
func traced(rt http.RoundTripper, req *http.Request) (*http.Response, netip.Addr, error) {
	var mu sync.Mutex // a dial that is no longer needed ends by itself
	var to string
	var from netip.Addr
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn: func(hostPort string) {
			mu.Lock()
			defer mu.Unlock()
			to = hostPort
		},
		GotConn: func(i httptrace.GotConnInfo) {
			mu.Lock()
			defer mu.Unlock()
			from = netip.Addr{}
			if ap, err := netip.ParseAddrPort(i.Conn.RemoteAddr().String()); err == nil {
				from = ap.Addr()
			}
		},
	})
	resp, err := rt.RoundTrip(req.WithContext(ctx))
	mu.Lock()
	defer mu.Unlock()
	if !strings.EqualFold(to, hostPort(req.URL)) {
		from = netip.Addr{}
	}
	return resp, from, err
}

// CheckPage returns an error unless a browser may open the URL: a page of an https server, or
// of a server on this machine.
func CheckPage(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && u.Scheme != "http") {
		return errors.New("the authorization page's URL is not an https URL")
	}
	if u.Scheme == "http" && !netaddr.Loopback(u.Hostname()) {
		return errors.New("the authorization page's URL is http and not on this machine")
	}
	return nil
}
