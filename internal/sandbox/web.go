package sandbox

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/netaddr"
)

// Bounds of an answer besides its time.
const (
	maxWebHead = 64 << 10
	webHello   = 15 * time.Second
)

// Web sends requests of yaya's own to hosts that an agent names, by the rules of a sandbox's proxy:
// a host is in the list or asked about, an address is public or in the list itself, and none is
// yaya's. It connects to the very address that it has checked. The zero value reaches nothing.
type Web struct {
	// Net has the list of hosts and the questions about others. Its mode has no meaning.
	Net Net
	// Listens returns the addresses that yaya listens on now; nil for none.
	Listens func() []string
	// Roots, Resolve and Public take the place of the system's certificates, of its names and of
	// [netaddr.Public] in tests. Nil in a running yaya.
	Roots   *x509.CertPool
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Public  func(netip.Addr) bool
}

// Get requests a page. It waits for an answer about its host first, then for at most within,
// the body included, which the caller closes. It follows no redirect and decodes nothing. The error
// about a host that may not be reached is one of [Refused].
func (w Web) Get(ctx context.Context, u *url.URL, header http.Header, within time.Duration) (*http.Response, error) {
	usual := map[string]int{"http": 80, "https": 443}[u.Scheme]
	if usual == 0 || u.User != nil || u.Opaque != "" {
		return nil, errors.New("an address of the web is http:// or https:// and a host, without a password")
	}
	host, port, err := splitHost(u.Host, usual)
	if err != nil {
		return nil, err
	}
	p := w.proxy()
	if err := p.allow(ctx, host, port); err != nil {
		return nil, err
	}
	if u.Scheme == "http" && port == 443 {
		return nil, p.refuse(ctx, host, port, notTLS, "")
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it took longer than %v", within))
	at := url.URL{Scheme: u.Scheme, Host: host, Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery}
	if addressOf(host).Is6() {
		at.Host = "[" + host + "]"
	}
	if port != usual {
		at.Host = net.JoinHostPort(host, strconv.Itoa(port))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header = header
	var by http.RoundTripper = p
	if u.Scheme == "https" {
		by = w.secure(p, host, port)
	}
	res, err := by.RoundTrip(req)
	if err != nil {
		if late := context.Cause(ctx); late != nil {
			err = late
		}
		cancel()
		return nil, err
	}
	res.Body = &timed{res.Body, func() error { return context.Cause(ctx) }, cancel}
	return res, nil
}

// Outward returns w for an address that a server names, as by a redirect, and not an agent: without
// the private addresses of its list, which are meant for those who name them. The check is that of
// the address that is dialed, whatever its name leads to.
func (w Web) Outward() Web {
	public := w.Public
	if public == nil {
		public = netaddr.Public
	}
	var out []string
	for _, entry := range w.Net.Allow {
		r, err := parseHost(entry)
		if err == nil && r.name != localhost && (!r.addr.IsValid() || public(r.addr)) {
			out = append(out, entry)
		}
	}
	w.Net.Allow = out
	return w
}

// Private reports whether a host is private by its form: localhost, a name below it (RFC 6761, section
// 6.3), or an address that is not of the public internet.
func (w Web) Private(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if host == localhost || strings.HasSuffix(host, "."+localhost) {
		return true
	}
	public := w.Public
	if public == nil {
		public = netaddr.Public
	}
	addr := addressOf(host)
	return addr.IsValid() && !public(addr)
}

// proxy returns the rules for one request.
func (w Web) proxy() *proxy {
	p := newProxy(w.Net)
	p.direct.MaxResponseHeaderBytes, p.chained.MaxResponseHeaderBytes = maxWebHead, maxWebHead
	if w.Listens != nil {
		p.listens = w.Listens
	}
	if w.Resolve != nil {
		p.resolve = w.Resolve
	}
	if w.Public != nil {
		p.public = w.Public
	}
	return p
}

// secure returns the transport of a request over TLS.
func (w Web) secure(p *proxy, host string, port int) *http.Transport {
	return &http.Transport{
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return p.tunnel(ctx, host, port) },
		TLSClientConfig:        &tls.Config{RootCAs: w.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    webHello,
		MaxResponseHeaderBytes: maxWebHead,
		DisableKeepAlives:      true,
		DisableCompression:     true,
	}
}

// timed is the body of an answer, with its time.
type timed struct {
	io.ReadCloser
	cause  func() error // why its time is over, nil before
	cancel context.CancelFunc
}

func (b *timed) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if late := b.cause(); err != nil && !errors.Is(err, io.EOF) && late != nil {
		err = late
	}
	return n, err
}

func (b *timed) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// Refused returns why a host could not be reached by the rules, and false for another error.
func Refused(err error) (Denial, bool) {
	r, ok := errors.AsType[*refusal](err)
	if !ok {
		return Denial{}, false
	}
	return r.Denial, true
}
