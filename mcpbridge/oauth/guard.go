package oauth

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"
)

// ErrPrivate says that metadata of a public server point into a private network.
var ErrPrivate = errors.New("refused: the address is in a private network, and the server that names it is not")

// prefixes that embed or tunnel IPv4, or are nobody's.
var embedding = []netip.Prefix{
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("0.0.0.0/8"),
}

// private reports whether an address is not one of the public internet.
func private(a netip.Addr) bool {
	a = a.Unmap()
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return true
	}
	for _, p := range embedding {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// guardedTransport carries requests to authorization servers. Addresses are
// checked when they are dialled, whatever the name resolved to before; proxies of
// the environment are not used, since they would resolve names themselves.
func guardedTransport(allowPrivate bool) *http.Transport {
	d := &net.Dialer{Timeout: 10 * time.Second}
	if !allowPrivate {
		d.ControlContext = func(_ context.Context, _, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			if private(ap.Addr()) {
				return ErrPrivate
			}
			return nil
		}
	}
	return &http.Transport{
		DialContext: d.DialContext, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: 20 * time.Second,
		MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true,
	}
}

// nearby reports whether a server is itself in a private network, by the
// addresses that its name has now.
func nearby(ctx context.Context, server string) bool {
	u, err := url.Parse(server)
	if err != nil {
		return false
	}
	if a, err := netip.ParseAddr(u.Hostname()); err == nil {
		return private(a)
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return false
	}
	for _, a := range addrs {
		if !private(a) {
			return false
		}
	}
	return len(addrs) > 0
}

// newClient returns the client for everything but the MCP server itself.
func newClient(ctx context.Context, server string, p *proof) *http.Client {
	var rt http.RoundTripper = guardedTransport(nearby(ctx, server))
	if p != nil {
		rt = &proving{rt, p}
	}
	return &http.Client{Transport: rt, Timeout: 30 * time.Second, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		first := via[0].URL
		if len(via) > 3 || req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
			return fmt.Errorf("it redirects to %s://%s, which is not followed", req.URL.Scheme, req.URL.Host)
		}
		return nil
	}}
}

// CheckPage reports why a URL must not be shown to a browser: it is no page of an
// https server, or of one on this machine (UP-27).
func CheckPage(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "https" && u.Scheme != "http") {
		return errors.New("the authorization page's URL is not an https URL")
	}
	if u.Scheme == "http" {
		a, err := netip.ParseAddr(u.Hostname())
		if u.Hostname() != "localhost" && (err != nil || !a.IsLoopback()) {
			return errors.New("the authorization page's URL is http, and not on this machine")
		}
	}
	return nil
}
