package sandbox

import (
	"bufio"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/internal/netaddr"
)

// Bounds of one sandbox's proxy.
const (
	dialWithin   = 30 * time.Second
	lookWithin   = 5 * time.Second // for a name that another proxy looks up
	helloWithin  = 15 * time.Second
	idleTunnel   = 10 * time.Minute
	headerWithin = 10 * time.Second
	idleRequests = 30 * time.Second // between two requests of a connection
)

// proxy is an HTTP proxy to the hosts of a list. It knows the destination of every
// connection, and so every denial exactly.
type proxy struct {
	net   Net
	rules []hostRule
	// Connections that a sandbox opens too fast wait, within its room; others do not.
	starts, refusals *pace
	resolve          func(ctx context.Context, host string) ([]netip.Addr, error)
	public           func(netip.Addr) bool
	environ          func(*http.Request) (*url.URL, error) // the upstream proxy of a request
	listens          func() []string                       // the addresses that yaya listens on now
	endpoints        []netip.AddrPort                      // yaya's own, in the sandbox
	// password authenticates clients, where others can reach the proxy as well.
	password string
	forward  *httputil.ReverseProxy
	direct   *http.Transport
	chained  *http.Transport // by an upstream proxy
}

func newProxy(n Net) *proxy {
	p := &proxy{net: n, starts: newStarts(), refusals: newRefusals(), public: netaddr.Public, environ: http.ProxyFromEnvironment, listens: func() []string { return nil }}
	p.resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	for _, entry := range n.Allow {
		if r, err := parseHost(entry); err == nil { // Enter has refused others
			p.rules = append(p.rules, r)
		}
	}
	p.direct = &http.Transport{
		DialContext:           func(ctx context.Context, _, addr string) (net.Conn, error) { return p.dial(ctx, addr) },
		DisableKeepAlives:     true, // nothing outlives its sandbox
		DisableCompression:    true,
		ResponseHeaderTimeout: idleTunnel,
	}
	p.chained = &http.Transport{
		Proxy:                 p.viaEnviron,
		DialContext:           (&net.Dialer{Timeout: dialWithin}).DialContext,
		DisableKeepAlives:     true,
		DisableCompression:    true,
		ResponseHeaderTimeout: idleTunnel,
	}
	p.forward = &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) {}, // the request goes where it says
		Transport: p,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	return p
}

// refusal is the reason why the proxy does not connect.
type refusal struct{ Denial }

func (e *refusal) Error() string {
	return fmt.Sprintf("the sandbox keeps this program from reaching %s: %s", net.JoinHostPort(e.Host, strconv.Itoa(e.Port)), e.Why)
}

// refuse reports a denial. allow is the entry that would have allowed it.
func (p *proxy) refuse(ctx context.Context, host string, port int, why, allow string) error {
	p.refusals.wait(ctx)
	d := Denial{host, port, why, allow}
	if p.net.Denied != nil {
		p.net.Denied(d)
	}
	return &refusal{d}
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.password != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Proxy-Authorization")), []byte(p.wants())) == 0 {
		w.Header().Set("Proxy-Authenticate", `Basic realm="sandbox"`)
		http.Error(w, "this proxy belongs to a sandbox", http.StatusProxyAuthRequired)
		return
	}
	p.starts.wait(r.Context())
	if r.Method == http.MethodConnect {
		p.connect(w, r)
		return
	}
	if r.URL.Scheme != "http" || r.URL.Host == "" || r.URL.User != nil {
		http.Error(w, "this is a proxy: CONNECT, or http:// in the request line", http.StatusBadRequest)
		return
	}
	host, port, err := splitHost(r.URL.Host, 80)
	if err == nil {
		err = p.allow(r.Context(), host, port)
	}
	if err == nil && port == 443 {
		err = p.refuse(r.Context(), host, port, notTLS, "")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	r.Host = r.URL.Host
	p.pass(w, r)
}

// pass forwards a request that was allowed. A request to trace (RFC 9110, section 9.3.8) is
// answered with itself, by the upstream proxy if that is the last one that it may reach: with
// the password that yaya has added for that proxy.
func (p *proxy) pass(w http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(r.Method, http.MethodTrace) || strings.EqualFold(r.Method, "TRACK") {
		w.Header().Set("Allow", "CONNECT, DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT")
		http.Error(w, fmt.Sprintf("the proxy of a sandbox forwards no %s requests", strings.ToUpper(r.Method)), http.StatusMethodNotAllowed)
		return
	}
	p.forward.ServeHTTP(w, r)
}

// wants is the header of clients that know the password.
func (p *proxy) wants() string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(proxyUser+":"+p.password))
}

// proxyUser is the user that a password belongs to.
const proxyUser = "sandbox"

// splitHost reads a destination in one spelling: a name in lower case without the
// final dot, or an address.
func splitHost(hostport string, otherwise int) (string, int, error) {
	host, text, err := net.SplitHostPort(hostport)
	port := otherwise
	if err != nil {
		host = hostport
	} else if port, err = strconv.Atoi(text); err != nil || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%q has no port from 1 to 65535", hostport)
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr.Unmap().WithZone("").String(), port, nil
	}
	if !isName(host) {
		return "", 0, fmt.Errorf("%q does not name a host", hostport)
	}
	return host, port, nil
}

// allow decides about a destination.
func (p *proxy) allow(ctx context.Context, host string, port int) error {
	// Nobody is asked about yaya itself, nor told how to allow it.
	for _, at := range (hostRule{name: host, addr: addressOf(host), port: port}).addresses() {
		if itsOwn(at, p.listens()) {
			return p.refuse(ctx, host, port, isYaya(at), "")
		}
	}
	for _, r := range p.rules {
		if r.allows(host, port) {
			return nil
		}
	}
	if p.net.Ask != nil && p.net.Ask(ctx, host, port) {
		return nil
	}
	entry, cannot := p.offer(host, port)
	return p.refuse(ctx, host, port, cmp.Or(cannot, "it is not among the allowed hosts"), entry)
}

// offer returns the entry that allows a destination, or why no entry can.
func (p *proxy) offer(host string, port int) (entry, cannot string) {
	if netaddr.Guarded(addressOf(host)) {
		return "", "link-local addresses, and those at which clouds hand out credentials, are not for agents"
	}
	entry = entryFor(host, port)
	r, err := parseHost(entry)
	if err == nil && slices.ContainsFunc(r.addresses(), func(at netip.AddrPort) bool { return slices.Contains(p.endpoints, at) }) {
		err = errEndpoint(entry)
	}
	if err != nil {
		return "", strings.TrimPrefix(err.Error(), fmt.Sprintf("host %q: ", entry))
	}
	return entry, ""
}

func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	host, port, err := splitHost(r.Host, 443)
	if err == nil {
		err = p.allow(r.Context(), host, port)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	up, err := p.reach(r.Context(), host, port)
	if err != nil {
		status := http.StatusBadGateway
		if _, refused := errors.AsType[*refusal](err); refused {
			status = http.StatusForbidden
		}
		http.Error(w, err.Error(), status)
		return
	}
	defer func() {
		if up != nil {
			_ = up.Close()
		}
	}()
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the client has gone
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(r.Context(), func() { _ = conn.Close() }) // the sandbox has ended
	defer stop()
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	// The tunnel's content has to be for the requested host: one address may serve
	// many.
	_ = conn.SetReadDeadline(time.Now().Add(helloWithin))
	in := bufio.NewReaderSize(io.MultiReader(io.LimitReader(buf, int64(buf.Reader.Buffered())), conn), maxHello)
	first, err := p.inspect(r.Context(), in, host, port)
	if err != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	if first == isHTTP {
		if up != nil { // each request has a connection of its own
			_, up = up.Close(), nil
		}
		p.plain(conn, in, host, port)
		return
	}
	if up == nil {
		if up, err = p.tunnel(r.Context(), host, port); err != nil {
			return
		}
	}
	ended := context.AfterFunc(r.Context(), func() { _ = up.Close() })
	defer ended()
	relay(conn, in, up, idleTunnel)
}

// reach connects to a destination that is allowed, or returns nil where that has to
// wait: upstream proxies refuse tunnels to port 80, and take its requests one by one.
func (p *proxy) reach(ctx context.Context, host string, port int) (net.Conn, error) {
	if port == 80 {
		if u, err := p.upstream("http", host, port); err != nil || u != nil {
			return nil, err
		}
	}
	return p.tunnel(ctx, host, port)
}

func (p *proxy) tunnel(ctx context.Context, host string, port int) (net.Conn, error) {
	hostport := net.JoinHostPort(host, strconv.Itoa(port))
	u, err := p.upstream("https", host, port)
	switch {
	case err != nil:
		return nil, err
	case u != nil:
		if err := p.notItself(ctx, host, port); err != nil {
			return nil, err
		}
		conn, err := through(ctx, u, hostport)
		if err != nil {
			return nil, p.failed(ctx, host, port, err)
		}
		return conn, nil
	default:
		return p.dial(ctx, hostport)
	}
}

// plain serves requests of HTTP in a tunnel, each of which has to be for its host.
func (p *proxy) plain(conn net.Conn, in io.Reader, host string, port int) {
	l := &oneConn{conn: conn, in: in, gone: make(chan struct{})}
	s := serveHTTP(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, gotPort, err := splitHost(r.Host, port)
		if err != nil || got != host || gotPort != port || r.URL.Host != "" || r.Method == http.MethodConnect {
			http.Error(w, p.refuse(r.Context(), host, port, fmt.Sprintf("a request in the tunnel was for %.100q", r.Host), "").Error(), http.StatusForbidden)
			return
		}
		r.URL.Scheme, r.URL.Host = "http", net.JoinHostPort(host, strconv.Itoa(port))
		p.pass(w, r)
	}))
	<-s.done
	s.close()
}

// oneConn is a listener to which one connection has come already.
type oneConn struct {
	conn net.Conn
	in   io.Reader // what comes from it
	took atomic.Bool
	once sync.Once
	gone chan struct{}
}

func (l *oneConn) Accept() (net.Conn, error) {
	if l.took.CompareAndSwap(false, true) {
		return &taken{l.conn, l}, nil
	}
	<-l.gone
	return nil, net.ErrClosed
}

func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }

func (l *oneConn) Close() error {
	l.once.Do(func() { close(l.gone) })
	return nil
}

type taken struct {
	net.Conn
	l *oneConn
}

func (c *taken) Read(p []byte) (int, error) { return c.l.in.Read(p) }

func (c *taken) Close() error { return errors.Join(c.l.Close(), c.Conn.Close()) }

// relay copies both ways until both have ended, or nothing has come for as long as idle;
// 0 means no limit.
func relay(conn net.Conn, in io.Reader, up net.Conn, idle time.Duration) {
	var both sync.WaitGroup
	var active atomic.Int64 // when something came last, from either side
	active.Store(time.Now().UnixNano())
	one := func(to net.Conn, from io.Reader, source net.Conn) {
		defer func() {
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
		}()
		buf := make([]byte, 32<<10)
		for {
			if idle > 0 {
				_ = source.SetReadDeadline(time.Now().Add(idle))
			}
			n, err := from.Read(buf)
			if n > 0 {
				active.Store(time.Now().UnixNano())
				_ = to.SetWriteDeadline(time.Now().Add(idleTunnel))
				if _, werr := to.Write(buf[:n]); werr != nil {
					_ = source.Close()
					return
				}
			}
			if errors.Is(err, os.ErrDeadlineExceeded) && time.Since(time.Unix(0, active.Load())) < idle {
				continue
			}
			if err != nil {
				return
			}
		}
	}
	both.Go(func() { one(up, in, conn) })
	both.Go(func() { one(conn, up, up) })
	both.Wait()
}
