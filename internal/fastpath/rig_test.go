package fastpath_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/yaya-ai/yaya/internal/fastpath"
)

// road is a server, with the fast path before it or without.
type road struct {
	l    *fed
	fast *fastpath.Listener // nil without
	http *http.Server
	done chan error
}

// fed is a listener of the connections that a test gives it.
type fed struct {
	conns chan net.Conn
	over  chan struct{}
	close func()
}

func newFed() *fed {
	f := &fed{conns: make(chan net.Conn), over: make(chan struct{})}
	f.close = sync.OnceFunc(func() { close(f.over) })
	return f
}

func (f *fed) Accept() (net.Conn, error) {
	select {
	case c := <-f.conns:
		return c, nil
	case <-f.over:
		return nil, net.ErrClosed
	}
}

func (f *fed) Close() error   { f.close(); return nil }
func (f *fed) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// rewound is a connection that can be unread.
type rewound struct {
	net.Conn
	again []byte
}

func (r *rewound) Unread(b []byte) { r.again = append(bytes.Clone(b), r.again...) }

func (r *rewound) Read(b []byte) (int, error) {
	if len(r.again) > 0 {
		n := copy(b, r.again)
		r.again = r.again[n:]
		return n, nil
	}
	return r.Conn.Read(b)
}

func (r *rewound) CloseWrite() error {
	if half, ok := r.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// newRoad starts a server for the connections of its listener.
func newRoad(tb testing.TB, fast bool, h http.Handler, change ...func(*fastpath.Config)) *road {
	tb.Helper()
	quiet := log.New(io.Discard, "", 0)
	r := &road{l: newFed(), done: make(chan error, 1), http: &http.Server{
		Handler: h, ReadHeaderTimeout: headTimeout, IdleTimeout: idleTimeout, ErrorLog: quiet, MaxHeaderBytes: 32 << 10,
	}}
	cfg := fastpath.Config{
		Handler: h, Takes: func(path string) bool { return path != "/slow" }, ErrorLog: quiet,
		Context:     func(net.Conn) context.Context { return context.Background() },
		HeadTimeout: headTimeout, IdleTimeout: idleTimeout,
	}
	for _, c := range change {
		c(&cfg)
	}
	serve, l := r.http.Serve, net.Listener(r.l)
	if cfg.TLS != nil {
		r.http.TLSConfig = cfg.TLS.Clone()
	}
	switch {
	case fast:
		r.fast = fastpath.Listen(r.l, cfg)
		l = r.fast
	case cfg.TLS != nil:
		serve = func(l net.Listener) error { return r.http.ServeTLS(l, "", "") }
	}
	go func() { r.done <- serve(l) }()
	tb.Cleanup(func() {
		_ = r.l.Close()
		_ = r.http.Close()
		if r.fast != nil {
			r.fast.Abort()
			r.fast.Wait()
		}
		if err := <-r.done; !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			tb.Errorf("serving ended with %v, want the server to be closed", err)
		}
	})
	return r
}

// recording is a connection in memory: what was sent, and then the end.
type recording struct {
	in     *bytes.Reader
	pieces int // bytes that one read returns at most; 0 for all

	mu   sync.Mutex
	out  bytes.Buffer
	gone chan struct{}
	once sync.Once
}

func (r *recording) Read(b []byte) (int, error) {
	if r.pieces > 0 {
		b = b[:min(len(b), r.pieces)]
	}
	return r.in.Read(b)
}

func (r *recording) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.Write(b)
}

// exchange sends bytes to a server, and returns everything that it answers.
func (r *road) exchange(sent []byte, pieces int) []byte {
	c := &recording{in: bytes.NewReader(sent), pieces: pieces, gone: make(chan struct{})}
	r.l.conns <- &rewound{Conn: &memory{c}}
	<-c.gone
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Bytes()
}
