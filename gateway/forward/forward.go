// Package forward passes requests on to the node of a cluster that they are for.
//
// The node that a client reaches establishes who it is. It tells the other node, over a connection
// whose ends are known to be nodes, that it is the owner or a subject of the external issuer, or
// passes on the token of a device, which that node verifies by itself. Nobody else can say so: from
// outside, the header means nothing.
package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control/tunnel"
)

// Times of a request that is passed on.
const (
	// patience is how long a node is waited for that is not there: it may be starting again.
	patience   = 3 * time.Second
	retryAfter = 100 * time.Millisecond
	// forgotten is how long nobody waits again for a node that did not come.
	forgotten = 30 * time.Second
	greetTime = 5 * time.Second
	// answerTime is how long a node has to answer that it takes a connection. A message to one that ends
	// just then is lost.
	answerTime = 2 * time.Second
	idleTime   = 2 * time.Minute
)

const (
	maxHeader = 64 << 10
	maxIdle   = 64 // connections to a node that wait for the next request
)

// callerHeader says who a request is from.
const callerHeader = "Yaya-Caller"

// Its values; that of an external issuer is followed by the principal.
const (
	fromOwner    = "owner"
	fromToken    = "token" // in Authorization
	fromExternal = "external "
)

// Members are the nodes of the cluster.
type Members interface {
	Name() string // of this node
	Has(node string) bool
	Others() []string // by name
	TLS() (*tls.Config, error)
}

// Verifier knows the tokens of devices, and ends what those do that lose their rights.
type Verifier interface {
	VerifyToken(token string) (auth.Principal, error)
	VerifyLasting(token string) (auth.Principal, error)
	Hold(p auth.Principal, ended func(cause error)) (release func())
}

// Dialer makes connections to nodes.
type Dialer interface {
	Dial(ctx context.Context, node string) (*tunnel.Conn, error)
}

// Forwarder passes requests on, and takes those of other nodes. It is safe for concurrent use.
type Forwarder struct {
	members Members
	dialer  Dialer
	tls     *tls.Config
	proxy   *httputil.ReverseProxy
	log     zerolog.Logger

	mu    sync.Mutex
	gone  map[string]time.Time // nodes that did not come
	found map[string]string    // nodes that had something, by path
}

// New returns what passes requests on to others than this node.
func New(members Members, dialer Dialer, log zerolog.Logger) (*Forwarder, error) {
	f := &Forwarder{members: members, dialer: dialer, log: log, gone: map[string]time.Time{}, found: map[string]string{}}
	var err error
	if f.tls, err = members.TLS(); err != nil {
		return nil, err
	}
	f.tls.NextProtos = []string{"http/1.1"} // which can be upgraded, and costs less
	f.proxy = &httputil.ReverseProxy{
		Rewrite: rewrite, FlushInterval: -1, BufferPool: new(buffers), ErrorHandler: f.failed, ErrorLog: stdlog.New(io.Discard, "", 0), // failed has logged it, or the client has gone
		Transport: &http.Transport{DialTLSContext: f.dial, MaxIdleConnsPerHost: maxIdle, IdleConnTimeout: idleTime, DisableCompression: true, MaxResponseHeaderBytes: maxHeader},
	}
	return f, nil
}

// Close ends the connections that wait for a request.
func (f *Forwarder) Close() { f.proxy.Transport.(*http.Transport).CloseIdleConnections() }

// To returns what serves the requests for a node; nil if there is no other node of that name.
func (f *Forwarder) To(node string) http.Handler {
	if node == f.members.Name() || !f.members.Has(node) {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), nodeKey{}, node)
		if ctx.Value(http.ServerContextKey) == nil { // on the fast path; the proxy takes a response that breaks off for a whole one then
			ctx = context.WithValue(ctx, http.ServerContextKey, (*http.Server)(nil))
		}
		f.proxy.ServeHTTP(w, r.WithContext(ctx))
	})
}

// buffers are those that bodies are passed on with.
type buffers struct{ pool sync.Pool }

const bufferSize = 32 << 10

// Get implements [httputil.BufferPool].
func (b *buffers) Get() []byte {
	if p, ok := b.pool.Get().(*[bufferSize]byte); ok {
		return p[:]
	}
	return make([]byte, bufferSize)
}

// Put implements [httputil.BufferPool].
func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }

type nodeKey struct{}

func nodeOf(ctx context.Context) string {
	node, _ := ctx.Value(nodeKey{}).(string)
	return node
}

func rewrite(r *httputil.ProxyRequest) {
	r.Out.URL.Scheme, r.Out.URL.Host = "https", nodeOf(r.In.Context())
	r.Out.Host = r.Out.URL.Host
	establish(r.Out.Header, auth.FromContext(r.In.Context()))
}

// establish has a request say who it is from.
func establish(h http.Header, p auth.Principal) {
	switch p.Kind {
	case auth.Owner:
		h.Set(callerHeader, fromOwner)
		h.Del("Authorization")
	case auth.External:
		h.Set(callerHeader, fromExternal+url.QueryEscape(p.ID))
		h.Del("Authorization")
	case auth.Device, auth.Lasting:
		h.Set(callerHeader, fromToken)
	case auth.Anonymous, auth.Server: // the other node serves nobody
		h.Del(callerHeader)
	}
}

// dial connects to a node, and waits a while for one that is not there, or that ends meanwhile.
func (f *Forwarder) dial(ctx context.Context, _, host string) (net.Conn, error) {
	node, _, err := net.SplitHostPort(host)
	if err != nil {
		return nil, err
	}
	until := time.Now().Add(patience)
	if ctx.Value(atOnce{}) != nil || f.goneSince(node, forgotten) {
		until = time.Now()
	}
	for {
		conn, err := f.greet(ctx, node)
		if !ending(err) || ctx.Err() != nil {
			if err == nil {
				f.noteGone(node, false)
			}
			return conn, err
		}
		if time.Now().Add(retryAfter).After(until) {
			f.noteGone(node, errors.Is(err, tunnel.ErrNobody))
			return nil, err
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ending reports whether an error of a connection that was not made is one of a node that is not there,
// or ends just then. Nothing was sent.
func ending(err error) bool {
	for _, is := range []error{tunnel.ErrNobody, errUnanswered, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed} {
		if errors.Is(err, is) {
			return true
		}
	}
	return false
}

// errUnanswered means that a node which seemed to be there has not answered.
var errUnanswered = errors.New("the node does not answer")

func (f *Forwarder) greet(ctx context.Context, node string) (net.Conn, error) {
	asking, done := context.WithTimeout(ctx, answerTime)
	raw, err := f.dialer.Dial(asking, node)
	done()
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = errors.Join(errUnanswered, err)
	}
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	conn := tls.Client(raw, f.tls)
	if err = conn.HandshakeContext(ctx); err == nil {
		if got := conn.ConnectionState().PeerCertificates[0].Subject.CommonName; got != node {
			err = errors.New("it is the node " + got)
		}
	}
	if err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return conn, nil
}

func (f *Forwarder) goneSince(node string, within time.Duration) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, ok := f.gone[node]
	return ok && time.Since(at) < within
}

func (f *Forwarder) noteGone(node string, gone bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if gone {
		f.gone[node] = time.Now()
		return
	}
	delete(f.gone, node)
}

// failed answers a request that could not be passed on. Everything that a node had in memory has ended with it.
func (f *Forwarder) failed(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // the client has gone
	}
	node := nodeOf(r.Context())
	f.log.Warn().Err(err).Str("node", node).Str("path", r.URL.Path).Msg("a request could not be passed on to its node")
	if answer, ok := r.Context().Value(failedKey{}).(func(http.ResponseWriter, *http.Request, string)); ok {
		answer(w, r, node)
		return
	}
	if errors.Is(err, tunnel.ErrNobody) {
		http.Error(w, "this was on the node "+node+", which is not running", http.StatusNotFound)
		return
	}
	w.Header().Set("Retry-After", "1")
	http.Error(w, "the node "+node+" cannot be reached now", http.StatusServiceUnavailable)
}
