package fastpath

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// Conn is a connection that net/http can get later: Unread has the next reads return b again,
// before anything else. Connections of other types are handed on at once.
type Conn interface {
	net.Conn
	Unread(b []byte)
}

// Config says how connections are served. Handler, Takes and Context are required.
type Config struct {
	Handler http.Handler
	// Takes reports whether the fast path serves a path.
	Takes func(path string) bool
	// Admit returns the handler of a request. With keep, it is the handler of all requests with
	// that head on that connection: they are the returned one with another ContentLength and
	// Body, and the head takes up some kilobytes for as long as the connection lasts. nil keeps
	// all heads for Handler.
	Admit func(*http.Request) (h http.Handler, r *http.Request, keep bool)
	// TLS has the connections begin with a handshake, which may take HeadTimeout; nil for none. Those
	// on which it does not lead to HTTP/1.1 are handed on as a [*tls.Conn].
	TLS *tls.Config
	// Context returns the base of the contexts of a connection's requests.
	Context func(net.Conn) context.Context
	// State is called as [http.Server.ConnState] is. After a connection was handed on,
	// net/http reports it as a new one. nil for none.
	State func(net.Conn, http.ConnState)
	// Kept says that the connections have had requests before, in another program: they may be
	// idle at first.
	Kept        bool
	HeadTimeout time.Duration // for a head to arrive, once it or its connection has begun
	IdleTimeout time.Duration // between two requests; up to a tenth of it longer
	ErrorLog    *log.Logger
}

// Listener accepts connections and serves their plain requests. [http.Server.Serve] gets the
// connections on which anything else arrives.
type Listener struct {
	inner  net.Listener
	cfg    Config
	others chan net.Conn
	failed chan error    // of inner.Accept
	closed chan struct{} // by Close
	close  func()

	accepting sync.WaitGroup
	serving   sync.WaitGroup
	draining  atomic.Bool

	mu    sync.Mutex
	conns map[*conn]struct{} // that the fast path serves
	last  bool               // the last connection has come
	empty chan struct{}      // closed when conns is empty and last is set
}

// Listen begins to accept the connections of inner, which it closes.
func Listen(inner net.Listener, cfg Config) *Listener {
	if cfg.State == nil {
		cfg.State = func(net.Conn, http.ConnState) {}
	}
	if cfg.ErrorLog == nil {
		cfg.ErrorLog = log.Default()
	}
	if cfg.Admit == nil {
		cfg.Admit = func(r *http.Request) (http.Handler, *http.Request, bool) { return cfg.Handler, r, true }
	}
	l := &Listener{
		inner: inner, cfg: cfg, others: make(chan net.Conn), failed: make(chan error), closed: make(chan struct{}),
		conns: map[*conn]struct{}{}, empty: make(chan struct{}),
	}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	l.accepting.Go(l.accept)
	return l
}

// accept takes connections until the inner listener is closed.
func (l *Listener) accept() {
	defer l.noMore()
	for {
		c, err := l.inner.Accept()
		if err == nil {
			l.take(c)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		// net/http knows which errors pass, and waits before it asks again.
		select {
		case l.failed <- err:
		case <-l.closed:
			return
		}
	}
}

// take serves a connection, or hands it on.
func (l *Listener) take(nc net.Conn) {
	if l.cfg.TLS != nil {
		nc = secure(nc, l.cfg.TLS)
	}
	ours, ok := nc.(Conn)
	if !ok {
		l.serving.Go(func() { l.hand(nc) })
		return
	}
	c := newConn(l, ours)
	l.mu.Lock()
	l.conns[c] = struct{}{}
	l.mu.Unlock()
	l.cfg.State(nc, http.StateNew)
	l.serving.Go(c.serve)
}

// hand gives a connection to net/http.
func (l *Listener) hand(nc net.Conn) {
	select {
	case l.others <- nc:
	case <-l.closed:
		_ = nc.Close() // nobody will read from it
		l.cfg.State(nc, http.StateClosed)
	}
}

// noMore notes that the last connection has come.
func (l *Listener) noMore() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = true
	if len(l.conns) == 0 {
		close(l.empty)
	}
}

// forget removes a connection that the fast path no longer serves.
func (l *Listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	if l.last && len(l.conns) == 0 {
		close(l.empty)
	}
}

// Accept implements [net.Listener] for net/http: it returns the connections that the fast path does
// not serve. When the inner listener is closed, it goes on until the fast path serves none.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.others:
		return c, nil
	case err := <-l.failed:
		return nil, err
	case <-l.empty:
		return nil, net.ErrClosed
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Addr implements [net.Listener].
func (l *Listener) Addr() net.Addr { return l.inner.Addr() }

// Close implements [net.Listener]: no connection is accepted or handed on after that. Those that
// the fast path serves go on; see [Listener.Shutdown].
func (l *Listener) Close() error {
	err := l.inner.Close()
	l.close()
	l.accepting.Wait()
	return err
}

// WaitAccepted waits until the inner listener, which has been closed, yields no more connections.
func (l *Listener) WaitAccepted() { l.accepting.Wait() }

// Shutdown ends the connections of a closed listener as [http.Server.Shutdown] does: each when it
// has answered what it was asked. It returns the error of ctx if that ends first.
func (l *Listener) Shutdown(ctx context.Context) error {
	l.draining.Store(true)
	l.accepting.Wait()
	for _, c := range l.all() {
		// The farewell of TLS can take seconds. Busy connections see draining when they have nothing
		// left to do.
		l.serving.Go(c.closeIfIdle)
	}
	select {
	case <-l.empty:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Abort closes all connections of a closed listener, and cancels what runs on them.
func (l *Listener) Abort() {
	l.draining.Store(true)
	l.accepting.Wait()
	for _, c := range l.all() {
		c.abort()
	}
}

func (l *Listener) all() []*conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]*conn, 0, len(l.conns))
	for c := range l.conns {
		out = append(out, c)
	}
	return out
}

// Wait waits until the goroutines of the fast path have ended, which the end of their connections
// and handlers ends.
func (l *Listener) Wait() { l.serving.Wait() }
