package sandbox

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
)

// served is a server at one listener of one sandbox.
type served struct {
	server *http.Server
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	closed bool
	active sync.WaitGroup // handlers, those of hijacked connections among them
}

// begin counts a handler, or reports that none is to run any longer: a connection may
// have read its request just when the server closed.
func (s *served) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.active.Add(1)
	return true
}

func serveHTTP(l net.Listener, h http.Handler) *served {
	ctx, cancel := context.WithCancel(context.Background())
	s := &served{cancel: cancel, done: make(chan struct{})}
	s.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !s.begin() {
				return
			}
			defer s.active.Done()
			h.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: headerWithin,
		IdleTimeout:       idleTunnel,
		MaxHeaderBytes:    32 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() {
		defer close(s.done)
		_ = s.server.Serve(l) // it ends with close
	}()
	return s
}

// close ends every connection and waits for the handlers. None begins after it.
func (s *served) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	_ = s.server.Close()
	<-s.done
	s.active.Wait()
}

// add keeps a server until the run ends, which it may have done.
func (r *Run) add(s server) {
	r.mu.Lock()
	ended := r.ended
	if !ended {
		r.served = append(r.served, s)
	}
	r.mu.Unlock()
	if ended {
		s.close()
	}
}

func (r *Run) stopServing() {
	r.mu.Lock()
	all := r.served
	r.served = nil
	r.mu.Unlock()
	for _, s := range all {
		s.close()
	}
}
