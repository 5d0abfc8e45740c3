package upstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/yaya-ai/yaya/internal/callctx"
)

// Bounds of direct connections.
const (
	idlePerHost   = 128
	idleKept      = 60 * time.Second
	maxHeaderRead = 64 << 10
	directBuffer  = 16 << 10
	maxCarried    = 1024 // origins whose answers are kept
)

// direct is an [http.RoundTripper] for POST over HTTP/1.1, the hot path of the relay. It writes a
// request with one system call and reads the answer on the caller's goroutine; net/http's
// transport takes two goroutines per connection, and the hand-overs cost more than the work. All
// other requests, such as proxied ones, go to next, and so do those to https origins that have not
// answered with HTTP/1.1 before: most speak HTTP/2, which needs one connection for all calls.
type direct struct {
	next *http.Transport

	mu      sync.Mutex
	idle    map[origin][]*directConn
	carried map[origin]bool // answers of carries
	secure  map[string]bool // hosts that answer with HTTP/1.1 over TLS
	tidy    *time.Timer     // closes idle connections; nil while there are none
}

// origin decides which proxy a request takes.
type origin struct{ scheme, host string }

// directConn is one connection. Its reader is bounded while headers are read.
type directConn struct {
	net.Conn
	tls   *tls.Conn // the same, if it is for https
	owner *direct
	at    origin
	left  int64 // bytes that may still be read; unbounded once the header is read
	r     *bufio.Reader
	out   []byte
	since time.Time // idle since

	raw   syscall.RawConn // nil if there is none
	watch callctx.Hook    // on the context of the request

	// Of alive, and of send.
	look, turn func(fd uintptr) bool
	open       bool
	stage      stage
	wrote      int
	failed     error

	// Of the last plain answer.
	header         http.Header
	media, session string // in it
}

// Read implements [io.Reader].
func (c *directConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errors.New("the server's headers are larger than 64 KiB")
	}
	n, err := c.Conn.Read(p)
	c.left -= int64(n)
	return n, err
}

// RoundTrip implements [http.RoundTripper].
func (d *direct) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || !d.carries(req.URL) {
		return d.next.RoundTrip(req)
	}
	body, ok := req.Body.(*rawBody)
	ctx := req.Context()
	if !ok || httptrace.ContextClientTrace(ctx) != nil { // next reports on its connections
		return d.next.RoundTrip(req)
	}
	secure := req.URL.Scheme == "https"
	if secure && !d.speaksOne(req.URL.Host) {
		return d.learn(req)
	}
	for {
		c, fresh, err := d.take(ctx, req.URL)
		if err != nil && secure {
			d.forget(req.URL.Host)
			return d.learn(req) // which knows more ways, or the reason
		}
		if err != nil {
			return nil, err
		}
		// The end of the context interrupts the connection.
		c.watch.Attach(ctx, c)
		resp, err := c.exchange(req, body.data, fresh)
		if err == nil {
			return resp, nil
		}
		c.watch.Detach()
		_ = c.Close()
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !errors.Is(err, errStale):
			return nil, err
		}
	}
}

// ContextEnded implements [callctx.Watcher].
func (c *directConn) ContextEnded() { _ = c.SetDeadline(time.Unix(1, 0)) }

// carries reports whether this transport's own connections carry requests to u. The answer is
// kept for the few origins that there are.
func (d *direct) carries(u *url.URL) bool {
	if u.User != nil || !canPeek {
		return false
	}
	if d.next.Proxy == nil {
		return true
	}
	at := origin{u.Scheme, u.Host}
	d.mu.Lock()
	ok, known := d.carried[at]
	d.mu.Unlock()
	if known {
		return ok
	}
	proxy, err := d.next.Proxy(&http.Request{URL: u})
	ok = proxy == nil && err == nil
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.carried == nil || len(d.carried) >= maxCarried {
		d.carried = map[origin]bool{}
	}
	d.carried[at] = ok
	return ok
}

// errStale says that the other end has closed a connection, or sent what nobody requested,
// before anything was sent on it.
var errStale = errors.New("the connection is no longer usable")

// dial makes a connection for requests to u.
func (d *direct) dial(ctx context.Context, u *url.URL) (*directConn, error) {
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	nc, err := d.next.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &directConn{Conn: nc, owner: d, at: origin{u.Scheme, u.Host}}
	c.r = bufio.NewReaderSize(c, directBuffer)
	c.prepare()
	if u.Scheme == "https" {
		if err := c.encrypt(ctx, u.Hostname()); err != nil {
			_ = nc.Close()
			return nil, err
		}
	}
	return c, nil
}

// prepare makes the functions of alive and send, which take no memory then.
func (c *directConn) prepare() {
	sc, ok := c.Conn.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return
	}
	c.raw, c.look, c.turn = raw, c.peek, c.step
}

// alive reports whether the other end has neither closed the connection nor sent unrequested
// data.
func (c *directConn) alive() bool {
	return c.raw != nil && c.raw.Read(c.look) == nil && c.open
}

// peek looks at the descriptor, for alive.
func (c *directConn) peek(fd uintptr) bool {
	c.open = quiet(fd)
	return true
}

// stage is how far send has come.
type stage int

const (
	toLook stage = iota // whether the connection is alive
	toWrite
	toRead
)

// send writes the head, with the body if it is small, and waits until there is something to
// read: a read at once would find nothing.
func (c *directConn) send(fresh bool) error {
	c.stage, c.wrote, c.failed, c.open = toLook, 0, nil, true
	if fresh {
		c.stage = toWrite
	}
	err := c.raw.Read(c.turn)
	switch {
	case !c.open, c.stage == toLook:
		return errStale
	case c.failed != nil:
		return c.failed
	case c.stage == toWrite:
		return err
	case c.wrote < len(c.out):
		_, err = c.Write(c.out[c.wrote:])
		return err
	}
	return nil // what ended the waiting ends the read, too, which says more
}

// step works on the descriptor, for send. It returns true when it does not wait for input. The
// system reports input that has arrived since the first step began.
func (c *directConn) step(fd uintptr) bool {
	switch c.stage {
	case toRead:
		return true
	case toLook:
		if c.peek(fd); !c.open {
			return true
		}
	case toWrite:
	}
	c.stage = toRead
	for {
		n, err := writeNow(fd, c.out)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EAGAIN):
			return true
		case err != nil:
			c.failed = err
			return true
		}
		c.wrote = n
		return n < len(c.out)
	}
}

// exchange writes the request and reads the head of the answer.
func (c *directConn) exchange(req *http.Request, body []byte, fresh bool) (*http.Response, error) {
	b := c.out[:0]
	b = append(b, "POST "...)
	b = append(b, req.URL.RequestURI()...)
	b = append(b, " HTTP/1.1\r\nHost: "...)
	b = append(b, req.URL.Host...)
	b = append(b, "\r\nContent-Length: "...)
	b = strconv.AppendInt(b, int64(len(body)), 10)
	if len(req.Header["User-Agent"]) == 0 {
		b = append(b, "\r\nUser-Agent: Go-http-client/1.1"...) // as net/http does for the other requests
	}
	for k, vs := range req.Header {
		if ownFields[k] {
			continue
		}
		for _, v := range vs {
			if !httpguts.ValidHeaderFieldName(k) || !httpguts.ValidHeaderFieldValue(v) {
				return nil, fmt.Errorf("header %q cannot be sent", k)
			}
			b = append(append(append(append(b, "\r\n"...), k...), ": "...), v...)
		}
	}
	b = append(b, "\r\n\r\n"...)
	if len(body) <= directBuffer {
		b = append(b, body...) // one copy is cheaper than a vectored write
		body = nil
	}
	c.out = b
	var err error
	switch {
	case body == nil && c.raw != nil && c.tls == nil:
		err = c.send(fresh)
	case !fresh && c.tls == nil && !c.alive():
		err = errStale
	default:
		bufs := net.Buffers{b, body}
		_, err = bufs.WriteTo(c.Conn)
	}
	if err != nil {
		return nil, err
	}
	c.left = maxHeaderRead
	if resp := c.plain(req); resp != nil {
		c.left = math.MaxInt64
		return resp, nil
	}
	for { // the bound holds for all informational answers together
		resp, err := http.ReadResponse(c.r, req)
		if err != nil {
			if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
				err = errors.New("the server closed the connection without an answer")
			}
			return nil, err
		}
		if resp.StatusCode/100 != 1 {
			c.left = math.MaxInt64
			resp.Body = &directBody{ReadCloser: resp.Body, c: c, keep: !resp.Close}
			return resp, nil
		}
	}
}

// ownFields are the fields that the transport writes itself, or leaves out, whatever the request
// says, as net/http's does.
var ownFields = map[string]bool{"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Trailer": true, "Connection": true}

// directBody returns its connection to the pool if it is read to its end, and closes it
// otherwise.
type directBody struct {
	io.ReadCloser
	c    *directConn
	keep bool
	eof  bool
	over bool
}

func (b *directBody) Read(p []byte) (int, error) {
	if b.over { // the connection may have another request
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.eof = true
	}
	return n, err
}

func (b *directBody) Close() error {
	if b.over {
		return nil
	}
	b.over = true
	if !b.eof && b.keep {
		// The rest may be nothing but the end.
		var one [1]byte
		if _, err := b.Read(one[:]); err == nil {
			b.keep = false
		}
	}
	// Once the context has ended, the connection's deadline is in the past.
	if !b.c.watch.Detach() || !b.keep || !b.eof || b.c.r.Buffered() > 0 {
		return b.c.Close()
	}
	b.c.owner.put(b.c)
	return nil
}
