package downstream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// conn is an event stream on one HTTP response.
type conn struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	rc   *http.ResponseController
	on   bool
	err  error
	over chan struct{} // closed when another connection has taken its place
}

func newConn(w http.ResponseWriter) *conn {
	return &conn{w: w, rc: http.NewResponseController(w), over: make(chan struct{})}
}

// write sends bytes of the stream, after its header. It blocks only the request that it belongs
// to, for at most the write timeout.
func (c *conn) write(b ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if !c.on {
		c.on = true
		h := c.w.Header()
		h["Content-Type"] = contentSSE
		h["X-Content-Type-Options"] = nosniff
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no")
		c.w.WriteHeader(http.StatusOK)
	}
	if c.err = parts(b).writeTo(c.w, c.rc); c.err == nil {
		c.err = c.rc.Flush()
	}
	return c.err
}

// errAnswered says that a request already has its response; its connection may be gone.
var errAnswered = errors.New("the request has been answered")

// end prevents further writes: the handler of the connection returns. A server may ask a
// question on a request that it answers at the same moment.
func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = errAnswered
	}
}

// responseStream turns a response into an event stream on its first message.
type responseStream struct {
	w http.ResponseWriter
	// resumable is the client that can resume the stream; nil if it cannot be resumed.
	resumable *client
	request   []byte // the id of the request that it answers

	mu     sync.Mutex
	conn   *conn   // nil before the first message
	record *record // of the messages to a client that may resume
	plain  bool    // the response is not a stream and will not become one
}

// open makes the response a stream; the caller holds mu.
func (rs *responseStream) open() {
	if rs.conn != nil {
		return
	}
	rs.conn = newConn(rs.w)
	if rs.resumable != nil {
		rs.record = rs.resumable.newRecord(rs.request)
		rs.record.attach(rs.conn)
	}
}

// started decides, once there is a result, whether the response is a stream.
func (rs *responseStream) started() bool {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.plain = rs.conn == nil
	return !rs.plain
}

// send writes one message as an event. A resumable stream accepts messages even while nobody
// reads.
func (rs *responseStream) send(msg []byte) error { return rs.sendParts(parts{msg}) }

func (rs *responseStream) sendParts(msg parts) error {
	rs.mu.Lock()
	if rs.plain {
		rs.mu.Unlock()
		return errAnswered
	}
	rs.open()
	rec, conn := rs.record, rs.conn
	rs.mu.Unlock()
	if rec != nil {
		return rec.sendParts(msg)
	}
	if msg.size() > intake.Small {
		return conn.write(msg.event("")...)
	}
	ev, err := sse.Append(nil, sse.Event{Name: "message", Data: msg.joined()})
	if err != nil {
		return err
	}
	return conn.write(ev)
}

// finish ends the stream: nothing more will be sent.
func (rs *responseStream) finish() {
	rs.mu.Lock()
	rec, conn := rs.record, rs.conn
	rs.mu.Unlock()
	if rec != nil {
		rec.finish()
	}
	conn.end()
}

// keepAlive writes a comment periodically, so that proxies keep the stream open and a client
// that is gone is detected. The returned function stops it and waits.
func (c *conn) keepAlive(ctx context.Context) (stop func()) {
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
				c.mu.Lock()
				on := c.on
				c.mu.Unlock()
				if on && c.write([]byte(": keep-alive\n\n")) != nil {
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

// get serves the legacy stream of a session, or resumes a broken one.
func (s *Server) get(w http.ResponseWriter, r *http.Request, who tool.Caller) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		w.Header().Set("Allow", "POST")
		http.Error(w, "use subscriptions/listen", http.StatusMethodNotAllowed)
		return
	}
	if !strings.Contains(r.Header.Get("Accept"), "text/event-stream") {
		http.Error(w, "this is an MCP endpoint: point an MCP client at it", http.StatusNotAcceptable)
		return
	}
	c, p, ok := s.opened(w, r, who)
	if !ok {
		return
	}
	c.enter()
	defer c.leave()
	to := newConn(w)
	rec, seq, resume := c.resumed(r.Header.Get(mcp.HeaderLastEventID))
	if resume && rec != c.unasked() {
		s.resume(r.Context(), to, rec, seq)
		return
	}
	st := s.newStream(c, who, p)
	if !s.attach(st) {
		http.Error(w, "too many streams", http.StatusServiceUnavailable)
		return
	}
	defer s.detach(st)
	// The newest stream wins: a client that reconnects has lost the old one.
	c.mu.Lock()
	if c.get != nil {
		c.get.end()
	}
	c.get = st
	c.mu.Unlock()
	if c.moved.Swap(false) {
		for _, note := range []string{noteToolsChanged, relay.Prompts.Note, relay.Resources.Note} {
			st.push(note, note, nil)
		}
	}

	if to.write([]byte(": open\n\n")) != nil {
		return
	}
	rec = c.unasked()
	if resume {
		if rec.replay(to, seq) != nil {
			return
		}
	} else {
		rec.attach(to)
	}
	stop := to.keepAlive(r.Context())
	defer stop()
	if err := st.deliver(r.Context(), s.life, rec.send); err != nil {
		s.cfg.Log.Debug().Err(err).Msg("a client's stream ended")
	}
	rec.detach(to)
}

// resume sends the missed part of a response, and the rest of it.
func (s *Server) resume(ctx context.Context, to *conn, rec *record, seq int) {
	if to.write([]byte(": resumed\n\n")) != nil || rec.replay(to, seq) != nil {
		return
	}
	stop := to.keepAlive(ctx)
	defer stop()
	defer rec.detach(to)
	select {
	case <-rec.over:
	case <-to.over:
	case <-ctx.Done():
	case <-s.life.Done():
	}
}
