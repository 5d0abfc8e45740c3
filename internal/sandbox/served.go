package sandbox

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/yaya-ai/yaya/internal/workgroup"
)

// served is a server at one listener of one sandbox.
type served struct {
	server *http.Server
	cancel context.CancelFunc
	done   chan struct{}

	// active are handlers, those of hijacked connections among them. A connection may
	// have read its request just when the server closed.
	active workgroup.Group
}

func serveHTTP(l net.Listener, h http.Handler) *served {
	ctx, cancel := context.WithCancel(context.Background())
	s := &served{cancel: cancel, done: make(chan struct{})}
	s.server = &http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !s.active.Begin() {
				return
			}
			defer s.active.End()
			h.ServeHTTP(w, r)
		}),
		ReadHeaderTimeout: headerWithin,
		IdleTimeout:       idleRequests,
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
	s.active.Shut()
	s.cancel()
	_ = s.server.Close()
	<-s.done
	s.active.Close()
}

// add keeps a server until the run ends; the run may already have ended.
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
