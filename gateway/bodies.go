package gateway

import (
	"errors"
	"io"
	"net/http"
	"time"
)

const (
	bodyTimeout = 30 * time.Second // for a body to arrive
	restTimeout = 3 * time.Second  // for what is left of a body when the answer is there
	maxIgnored  = 64 << 10         // bytes of a body that nobody reads
)

// timed gives every body a deadline, whoever reads it: else one that never comes
// keeps its connection for as long as its sender likes. The deadline ends with the
// body. One that was left would be taken by net/http for the end of the connection,
// and would cancel calls and streams that take longer.
func (s *Server) timed(next http.Handler) http.Handler {
	limit := s.cfg.limits.body
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		here, ok := r.Body.(interface{ Arrived() bool }) // the fast path's
		if r.Body == nil || r.Body == http.NoBody || ok && here.Arrived() {
			next.ServeHTTP(w, r)
			return
		}
		// A writer that knows no deadlines is one in memory.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit))
		body := &timedBody{r.Body, w, limit, r.ContentLength, 0, false}
		r.Body = body
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			// No handler reads these, and net/http would do so while a stream goes on.
			n, err := io.Copy(io.Discard, io.LimitReader(body, maxIgnored+1))
			if err != nil || n > maxIgnored {
				w.Header().Set("Connection", "close")
				s.deny(w, r, http.StatusBadRequest, "the body of a %s request is not read, and this one is too large, or did not arrive in time", r.Method)
				return
			}
			r.Body, r.ContentLength = http.NoBody, 0
		}
		next.ServeHTTP(w, r)
		if body.left != 0 && !body.over { // it is read and forgotten, and a stop waits for that
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(min(s.cfg.limits.rest, limit)))
		}
	})
}

// timedBody is a body with a deadline that starts again with each mebibyte: a large body
// needs longer, or has waited for its turn.
type timedBody struct {
	io.ReadCloser
	w     http.ResponseWriter
	limit time.Duration
	left  int64 // bytes; negative when that is not known
	since int64 // bytes since the deadline was set
	over  bool
}

const bodyPiece = 1 << 20

// Read implements [io.Reader].
func (b *timedBody) Read(p []byte) (int, error) {
	if b.since >= bodyPiece {
		b.since = 0
		_ = http.NewResponseController(b.w).SetReadDeadline(time.Now().Add(b.limit))
	}
	n, err := b.ReadCloser.Read(p)
	b.since += int64(n)
	if b.left > 0 {
		b.left -= int64(n)
	}
	if b.left == 0 || errors.Is(err, io.EOF) {
		b.over = true
		_ = http.NewResponseController(b.w).SetReadDeadline(time.Time{})
	}
	return n, err
}
