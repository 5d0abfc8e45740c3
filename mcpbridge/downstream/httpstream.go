package downstream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/sse"
)

// responseStream turns a response into an event stream on its first message.
type responseStream struct {
	mu  sync.Mutex
	w   http.ResponseWriter
	rc  *http.ResponseController
	on  bool
	err error
}

func (rs *responseStream) started() bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.on
}

// send writes one message as an event. It blocks the request that it belongs
// to, and nothing else, for at most the write timeout.
func (rs *responseStream) send(msg []byte) error {
	ev, err := sse.Append(nil, sse.Event{Name: "message", Data: msg})
	if err != nil {
		return err
	}
	return rs.raw(ev)
}

func (rs *responseStream) raw(b []byte) error {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.err != nil {
		return rs.err
	}
	if !rs.on {
		rs.on = true
		h := rs.w.Header()
		h["Content-Type"] = contentSSE
		h["X-Content-Type-Options"] = nosniff
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		rs.w.WriteHeader(http.StatusOK)
	}
	if err := rs.rc.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		rs.err = err
		return err
	}
	if _, rs.err = rs.w.Write(b); rs.err == nil {
		rs.err = rs.rc.Flush()
	}
	return rs.err
}

// keepAlive writes a comment now and then, so that proxies keep the stream and
// a client that is gone is noticed. The returned function waits for its end.
func (rs *responseStream) keepAlive(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(keepAlive)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if rs.started() && rs.raw([]byte(": keep-alive\n\n")) != nil {
					return
				}
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// get serves the legacy stream of a session.
func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		w.Header().Set("Allow", "POST")
		http.Error(w, "use subscriptions/listen", http.StatusMethodNotAllowed)
		return
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		http.Error(w, "this is an MCP endpoint: point an MCP client at it", http.StatusNotAcceptable)
		return
	}
	token := r.Header.Get(mcp.HeaderSessionID)
	if token == "" {
		http.Error(w, "the header Mcp-Session-Id is missing", http.StatusBadRequest)
		return
	}
	c := s.find(token)
	if c == nil {
		http.Error(w, "there is no such session", http.StatusNotFound)
		return
	}
	st := newStream()
	if !s.attach(st) {
		http.Error(w, "too many streams", http.StatusServiceUnavailable)
		return
	}
	defer s.detach(st)
	c.enter()
	defer c.leave()
	// The newest stream counts: a client that comes back has lost the old one.
	c.mu.Lock()
	if c.get != nil {
		c.get.end()
	}
	c.get = st
	c.mu.Unlock()

	rs := &responseStream{w: w, rc: http.NewResponseController(w)}
	if rs.raw([]byte(": open\n\n")) != nil {
		return
	}
	note := jsonrpc.AppendRequest(nil, nil, noteToolsChanged, nil)
	stop := rs.keepAlive(r.Context())
	defer stop()
	for {
		select {
		case <-st.changed:
			if rs.send(note) != nil {
				return
			}
		case <-st.over:
			return
		case <-r.Context().Done():
			return
		case <-s.life.Done():
			return
		}
	}
}
