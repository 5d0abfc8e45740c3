package certs

import (
	"context"
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Bounds of the listener for plain HTTP. Connections are short: an authority asks once,
// and a browser is redirected.
const (
	plainTime   = 5 * time.Second
	plainHeader = 8 << 10
	plainConns  = 128
)

const challengePath = "/.well-known/acme-challenge/"

func (a *ACME) answersHTTP() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.plain
}

// ServeHTTP answers challenges (RFC 8555 section 8.3), and redirects requests for pages
// to https, at one of the names. It serves nothing else.
func (a *ACME) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := hostOf(r.Host)
	a.mu.Lock()
	_, known := a.state[name]
	c, asked := a.http[strings.TrimPrefix(r.URL.Path, challengePath)]
	a.mu.Unlock()
	get := r.Method == http.MethodGet || r.Method == http.MethodHead
	w.Header().Set("X-Content-Type-Options", "nosniff")
	switch {
	case !known:
		http.Error(w, "unknown Host", http.StatusForbidden)
	case !get:
		// The request has already crossed the network in the clear: a redirect would hide
		// that.
		http.Error(w, "use https", http.StatusBadRequest)
	case strings.HasPrefix(r.URL.Path, challengePath):
		if !asked || c.name != name {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/octet-stream")
		_, _ = w.Write([]byte(c.answer)) // an authority that went away asks again
	default:
		w.Header().Set("Location", "https://"+a.asGiven(name)+r.URL.RequestURI())
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

// asGiven is a name with the port by which clients reach it, if one was given.
func (a *ACME) asGiven(name string) string {
	for _, h := range a.cfg.Names {
		if hostOf(h) == name {
			return h
		}
	}
	return name
}

// servePlain serves plain HTTP until ctx ends, and has released everything when it
// returns.
func (a *ACME) servePlain(ctx context.Context, l net.Listener) error {
	defer a.setPlain(false)
	s := &http.Server{
		Handler: a, ReadHeaderTimeout: plainTime, ReadTimeout: plainTime, WriteTimeout: plainTime, IdleTimeout: plainTime,
		MaxHeaderBytes: plainHeader, ErrorLog: stdlog.New(io.Discard, "", 0), // strangers could fill a log
	}
	s.SetKeepAlivesEnabled(false)
	served := make(chan error, 1)
	go func() { served <- s.Serve(newFew(l, plainConns)) }()
	var err error
	select {
	case err = <-served: // by itself
	case <-ctx.Done():
		// ctx is over, so the drain needs a deadline of its own.
		dctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		if s.Shutdown(dctx) != nil {
			_ = s.Close()
		}
		if err = <-served; errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
	}
	return err
}

func (a *ACME) setPlain(on bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.plain = on
}

// few is a listener with a bounded number of open connections.
type few struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	close  sync.Once
}

func newFew(l net.Listener, n int) *few {
	return &few{Listener: l, places: make(chan struct{}, n), closed: make(chan struct{})}
}

// Accept implements [net.Listener].
func (f *few) Accept() (net.Conn, error) {
	select {
	case f.places <- struct{}{}:
	case <-f.closed:
		return nil, net.ErrClosed
	}
	c, err := f.Listener.Accept()
	if err != nil {
		<-f.places
		return nil, err
	}
	return &placed{Conn: c, leave: sync.OnceFunc(func() { <-f.places })}, nil
}

// Close implements [net.Listener].
func (f *few) Close() error {
	f.close.Do(func() { close(f.closed) })
	return f.Listener.Close()
}

type placed struct {
	net.Conn
	leave func()
}

// Close implements [net.Conn].
func (p *placed) Close() error {
	p.leave()
	return p.Conn.Close()
}
