package upstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/tlswords"
	"github.com/yaya-ai/yaya/internal/workgroup"
)

// errSessionLost says that the server has forgotten the session; it refused the message without
// processing it.
var errSessionLost = fmt.Errorf("%w: the server has forgotten the session", feature.ErrNotSent)

// statusError is an HTTP response that is not an MCP response.
type statusError struct {
	code  int
	body  string
	after time.Duration // how long the server wants no requests
}

// RetryAfter returns how long the server wants no requests; 0 if it did not say.
func (e *statusError) RetryAfter() time.Duration { return e.after }

const maxRetryAfter = 10 * time.Minute

// retryAfter reads the header of that name (RFC 9110 §10.2.3).
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(time.Until(at), 0), maxRetryAfter)
	}
	return 0
}

func (e *statusError) Error() string {
	msg := fmt.Sprintf("the server answered HTTP %d %s", e.code, http.StatusText(e.code))
	if e.code == http.StatusUnauthorized || e.code == http.StatusForbidden {
		msg += " (it does not accept the credentials that it was sent)"
	}
	if e.body != "" {
		msg += ": " + e.body
	}
	return msg
}

// Transport carries requests to remote servers, tuned for many small calls to
// few of them.
type Transport interface {
	http.RoundTripper
	CloseIdleConnections()
}

// NewTransport returns a transport; the caller closes its idle connections when all servers are
// stopped.
func NewTransport() Transport {
	return &direct{idle: map[origin][]*directConn{}, next: &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    128,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		WriteBufferSize:        16 << 10,
		ReadBufferSize:         16 << 10,
		DisableCompression:     true, // a compressed response could be a decompression bomb
		ForceAttemptHTTP2:      true,
	}}
}

// sameOrigin follows a few redirects within the origin and none beyond it, so that credentials
// never leave it.
func sameOrigin(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if len(via) > 3 {
		return errors.New("too many redirects")
	}
	if req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return fmt.Errorf("the server redirects to another origin (%s://%s), and yaya does not follow such redirects", req.URL.Scheme, req.URL.Host)
	}
	return nil
}

// httpTransport is streamable HTTP. The legacy era has a session, and a GET stream for messages
// that the server sends on its own; the modern era has neither.
type httpTransport struct {
	url     *url.URL
	header  http.Header // configured headers
	client  *http.Client
	room    room
	dropped *atomic.Uint64
	in      incoming
	direct  bool // requests use our own connections

	mu      sync.Mutex
	version string // for MCP-Protocol-Version; "" before the handshake
	session string // Mcp-Session-Id
	modern  bool
	posts   http.Header // of requests with these; nil until there is one

	ctx    context.Context // a base context: of the stream and the answers to the server; it ends with close
	cancel context.CancelFunc
	lost   chan struct{} // closed when the session is known to be gone
	once   sync.Once
	why    error
	work   workgroup.Group
}

func newHTTP(rt http.RoundTripper, rawURL string, headers map[string]string, dropped *atomic.Uint64, in incoming, at room) (*httpTransport, error) {
	u, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	t := &httpTransport{
		url: u, header: http.Header{}, room: at, dropped: dropped, in: in, lost: make(chan struct{}),
		client: &http.Client{Transport: rt, CheckRedirect: sameOrigin},
	}
	for k, v := range headers {
		t.header.Set(k, v)
	}
	base := rt
	if a, ok := rt.(*authorized); ok {
		base = a.base
	}
	if d, ok := base.(*direct); ok {
		t.direct = u.Scheme == "http" && d.carries(u)
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("%q is not an http or https URL", raw)
	}
	return u, nil
}

// lose marks the session as gone.
func (t *httpTransport) lose(err error) {
	t.once.Do(func() {
		t.why = err
		close(t.lost)
	})
}

// copies is true for the transport's own path over plain HTTP, which writes a request
// completely before it reads the answer. net/http may still be writing.
func (t *httpTransport) copies() bool {
	return t.direct
}

func (t *httpTransport) done() <-chan struct{} { return t.lost }

func (t *httpTransport) failed() error {
	select {
	case <-t.lost:
		return t.why
	default:
		return nil
	}
}

// begin fixes the era that the handshake settled on.
func (t *httpTransport) begin(version string, modern bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version, t.modern, t.posts = version, modern, nil
	if modern {
		t.session = "" // from an initialize that was refused
	}
}

// rawBody is the body of a request with its bytes at hand.
type rawBody struct {
	bytes.Reader
	data []byte
}

func newRawBody(data []byte) *rawBody {
	b := new(rawBody)
	b.set(data)
	return b
}

func (b *rawBody) set(data []byte) {
	b.data = data
	b.Reset(data)
}

// Close implements [io.Closer].
func (b *rawBody) Close() error { return nil }

// blank holds the members that all requests share. They are built by hand, from URLs that are parsed
// already.
var blank = &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}

func newRequest(ctx context.Context, method string, to *url.URL, header http.Header) *http.Request {
	req := blank.WithContext(ctx)
	req.Method, req.URL, req.Host, req.Header = method, to, to.Host, header
	return req
}

// headers returns the configured headers, and those of the session.
func (t *httpTransport) headers() http.Header {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.allHeaders()
}

// allHeaders is headers; mu is held.
func (t *httpTransport) allHeaders() http.Header {
	header := make(http.Header, len(t.header)+6)
	maps.Copy(header, t.header)
	if t.version != "" {
		header[mcp.HeaderProtocolVersion] = []string{t.version}
	}
	if t.session != "" {
		header[mcp.HeaderSessionID] = []string{t.session}
	}
	return header
}

// ofPosts returns the headers of posts, which nobody may change: they are made once for each
// state of the session.
func (t *httpTransport) ofPosts() http.Header {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.posts == nil {
		t.posts = t.allHeaders()
		t.posts["Accept"], t.posts["Content-Type"] = acceptBoth, contentJSON
	}
	return t.posts
}

var (
	acceptBoth  = []string{"application/json, text/event-stream"}
	contentJSON = []string{"application/json"}
)

// post sends a message, whose body is put into room.
func (t *httpTransport) post(ctx context.Context, to *url.URL, body []byte, extra http.Header, room *rawBody) (*http.Response, error) {
	header := t.ofPosts()
	if len(extra) > 0 {
		header = maps.Clone(header)
		maps.Copy(header, extra)
	}
	req := newRequest(ctx, http.MethodPost, to, header)
	room.set(body)
	req.ContentLength, req.Body = int64(len(body)), room
	req.GetBody = func() (io.ReadCloser, error) { return newRawBody(body), nil }
	resp, err := t.client.Transport.RoundTrip(req)
	if err == nil && resp.StatusCode/100 == 3 {
		// The client knows which redirects to follow; a redirected request was not processed.
		_ = resp.Body.Close()
		if req.Body, err = req.GetBody(); err == nil {
			resp, err = t.client.Do(req)
		}
	}
	if err != nil {
		return nil, t.classify(ctx, err)
	}
	return resp, nil
}

// classify distinguishes an unreachable server from other failures: a request that was never
// sent can be sent again.
func (t *httpTransport) classify(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err // without the URL, whose query may hold a secret
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		err = fmt.Errorf("%w: cannot connect: %w", feature.ErrNotSent, op.Err)
		t.lose(err)
	}
	return tlswords.Explain(err)
}

func (t *httpTransport) roundTrip(ctx context.Context, req *request) (_ reply, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = t.in.panicked(v)
		}
	}()
	if err := t.failed(); err != nil {
		return reply{}, notSent(err)
	}
	resp, err := t.post(ctx, t.url, req.body, req.header, &req.raw)
	if err != nil {
		return reply{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	if id := resp.Header.Get(mcp.HeaderSessionID); id != "" && req.method == methodInitialize {
		t.mu.Lock()
		t.session, t.posts = cut.Text(id, 1024), nil
		t.mu.Unlock()
	}
	mediaType := mediaTypeOf(resp)
	switch {
	case mediaType == "text/event-stream" && resp.StatusCode == http.StatusOK:
		return t.readStream(ctx, resp.Body, req)
	case mediaType == "application/json":
		return t.readJSON(ctx, resp, req)
	}
	return reply{}, t.refusal(resp, req)
}

// mediaTypeOf returns the media type of an answer without its parameters, "" for a malformed one.
func mediaTypeOf(resp *http.Response) string {
	v := resp.Header.Get("Content-Type")
	if v == "application/json" {
		return v // which mostly is there, and takes no time
	}
	media, _, _ := mime.ParseMediaType(v)
	return media
}

// readJSON reads a single message. An error object counts regardless of the status if it
// answers this request; one without our id belongs to the transport.
func (t *httpTransport) readJSON(ctx context.Context, resp *http.Response, req *request) (reply, error) {
	fill := t.filler(req)
	buf, err := fill.readAll(ctx, resp.Body, resp.ContentLength)
	if err != nil {
		if ctx.Err() != nil {
			return reply{}, ctx.Err()
		}
		return reply{}, err
	}
	msg := &req.msg
	data := t.in.conceal(buf.B)
	if err := msg.Parse(data); err != nil {
		defer buf.Release()
		if resp.StatusCode != http.StatusOK {
			return reply{}, t.status(resp, req, data)
		}
		return reply{}, malformed(err)
	}
	ours := msg.IsResponse() && req.has(msg.ID)
	switch {
	case ours && (resp.StatusCode == http.StatusOK || msg.Err != nil):
		return reply{msg.Result, msg.Err, buf}, nil
	case resp.StatusCode != http.StatusOK:
		defer buf.Release()
		return reply{}, t.status(resp, req, data)
	}
	t.dropped.Add(1)
	buf.Release()
	return reply{}, errors.New("the server's answer has the id of another request")
}

func (t *httpTransport) refusal(resp *http.Response, req *request) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 2048)) //nolint:forbidigo // bounded by the reader
	if resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusAccepted {
		return &oddError{fmt.Errorf("the server answered with %q instead of JSON or an event stream", cut.Text(resp.Header.Get("Content-Type"), 64))}
	}
	return t.status(resp, req, data)
}

// status explains an HTTP error. On a legacy session 404, and a 400 that comes
// from the transport, mean that the session is gone.
func (t *httpTransport) status(resp *http.Response, req *request, body []byte) error {
	text := strings.TrimSpace(t.in.concealed(string(body)))
	refused := &statusError{resp.StatusCode, feature.Clean(text[:min(len(text), 300)], 400), retryAfter(resp.Header)}
	t.mu.Lock()
	onSession := t.session != "" && req.method != methodInitialize
	t.mu.Unlock()
	if onSession && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest) {
		err := fmt.Errorf("%w: %w", errSessionLost, refused)
		t.lose(err)
		return err
	}
	return refused
}

// filler collects the answer to a request.
func (t *httpTransport) filler(req *request) filler {
	f := filler{room: t.room}
	if f.party == "" {
		f.party = req.by
	}
	return f
}

// answer sends the reply to a request of the server's.
func (t *httpTransport) answer(msg []byte) {
	t.work.Go(func() { _ = t.send(t.ctx, msg) })
}

// offer implements [transport]: what belongs to a request comes on its own
// stream.
func (t *httpTransport) send(ctx context.Context, msg []byte) error {
	resp, err := t.post(ctx, t.url, msg, nil, new(rawBody))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode/100 != 2 {
		return &statusError{code: resp.StatusCode}
	}
	return nil
}

func (t *httpTransport) close(ctx context.Context) {
	t.lose(errors.New("closed"))
	t.mu.Lock()
	session := t.session
	t.mu.Unlock()
	if session != "" && !errors.Is(t.why, feature.ErrNotSent) {
		// Best effort; the server may be gone.
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		if resp, err := t.client.Do(newRequest(ctx, http.MethodDelete, t.url, t.headers())); err == nil {
			_ = resp.Body.Close()
		}
		cancel()
	}
	t.cancel()
	t.work.Close()
}
