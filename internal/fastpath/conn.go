package fastpath

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/internal/callctx"
)

const (
	// readSize holds a head and a small body, so that one read gets both.
	readSize = 6 << 10
	// maxUnread is how much of a body that nobody has read is read before the answer, as
	// net/http does.
	maxUnread = 256 << 10
	// least is how many bytes net/http awaits before it looks at a further request, and among
	// which it passes over line ends.
	least = 4
	// small is the size below which a piece of a body is read with what follows it: reads of
	// single bytes look as if net/http looked whether a client is still there.
	small = 512
	// writeTimeout bounds a write for which the handler has set no deadline. It is up to twice
	// as long.
	writeTimeout = 10 * time.Second
	// lingering is how long a connection that is closed with bytes of the client under way
	// stays half open: otherwise the reset could overtake the answer (as in net/http).
	lingering = 500 * time.Millisecond
)

// The states of a connection. A request counts from the end of its head on, as in net/http: who stops
// in the middle of one holds up nobody.
const (
	nothing int32 = iota
	asked         // a request is under way
	leaving       // it is about to be closed, and no request begins
)

// conn is a connection that the fast path serves.
type conn struct {
	l     *Listener
	nc    Conn
	ctx   callctx.Context // the base of its requests
	heads heads

	buf    []byte // what was read and not used: buf[start:]
	start  int
	doing  atomic.Int32 // nothing, asked or leaving
	served bool         // at least one request, or those of the program before this one

	readBy  time.Time // the deadlines that are set; zero for none
	writeBy time.Time
	lookout lookout
	header  http.Header // of answers
}

// newConn returns a connection, with the context of all its requests.
func newConn(l *Listener, nc Conn) *conn {
	c := &conn{l: l, nc: nc, served: l.cfg.Kept}
	c.lookout.set(c)
	c.ctx.Begin(l.cfg.Context(nc))
	return c
}

// serve serves requests until the connection ends or is handed on.
func (c *conn) serve() {
	handed := false
	defer func() { // whatever a check or a handler does to the goroutine
		if v := recover(); v != nil && v != http.ErrAbortHandler { //nolint:errorlint // net/http compares it, too
			c.l.cfg.ErrorLog.Printf("serving %s has panicked: %v\n%s", c.nc.RemoteAddr(), v, debug.Stack())
		}
		if !handed {
			c.finish()
		}
	}()
	if s, ok := c.nc.(*secured); ok && !s.establish(&c.ctx, c.l.cfg.HeadTimeout) {
		handed = true
		c.handOn(s.Conn)
		return
	}
	c.buf, c.header = make([]byte, 0, readSize), http.Header{} // not before: strangers begin handshakes
	for {
		h, length, more := c.next()
		if h == nil {
			if handed = more && c.ask(); handed {
				c.nc.Unread(c.buf[c.start:])
				c.handOn(c.nc)
			}
			return
		}
		if !c.respond(h, length) {
			return
		}
	}
}

// next reads up to the end of a plain head. Without one, it reports whether net/http is to go
// on with the connection.
func (c *conn) next() (h *head, length int64, more bool) {
	ready, began := !c.served, !c.served
	if began { // as in net/http, the time for the first head begins with the connection
		c.setReadBy(time.Now().Add(c.l.cfg.HeadTimeout))
	}
	for {
		ready = ready || c.skipLineEnds()
		b := c.buf[c.start:]
		if ready && len(b) > 0 {
			if h, length, v := c.recognize(b); v != incomplete {
				return h, length, true
			}
		}
		empty := len(b) == 0 || !ready && len(bytes.Trim(b, "\r\n")) == 0
		if c.served {
			c.rest()
		}
		switch {
		case empty && c.served:
			began = false
			c.waitIdle()
		case !empty && !began:
			began = true
			c.setReadBy(time.Now().Add(c.l.cfg.HeadTimeout))
		}
		if c.l.draining.Load() { // after rest: Shutdown looks in the opposite order
			return nil, 0, false
		}
		if err := c.fill(); err != nil {
			return nil, 0, ready && len(b) > 0 && errors.Is(err, io.EOF) // net/http has an answer to half a head
		}
	}
}

// recognize looks for a plain head at the beginning of b, and takes it out of the buffer.
func (c *conn) recognize(b []byte) (h *head, length int64, v verdict) {
	h, size, length := c.heads.match(b)
	if h == nil {
		if size, v = examine(b); v != plain {
			return nil, 0, v
		}
		if h = parse(b[:size]); h == nil || !c.l.cfg.Takes(h.parsed.URL.Path) {
			return nil, 0, other
		}
		h.parsed.RemoteAddr = c.nc.RemoteAddr().String()
		if s, ok := c.nc.(*secured); ok {
			state := s.ConnectionState()
			h.parsed.TLS = &state
		}
		var keep bool
		if h.handler, h.parsed, keep = c.l.cfg.Admit(h.parsed.WithContext(&c.ctx)); keep {
			c.heads.add(h)
		}
		_, length, _ = h.match(b)
	}
	c.start += size
	return h, length, plain
}

// skipLineEnds passes over line ends behind the body of the request before, which some clients
// send. It reports false when too little has arrived to tell: see least.
func (c *conn) skipLineEnds() bool {
	b := c.buf[c.start:]
	if len(b) < least {
		return false
	}
	for _, x := range b[:least] {
		if x != '\r' && x != '\n' {
			break
		}
		c.start++
	}
	return true
}

// ask notes that a request is under way. It reports false if the connection is about to be closed.
func (c *conn) ask() bool {
	if c.doing.CompareAndSwap(nothing, asked) {
		c.l.cfg.State(c.nc, http.StateActive)
	}
	return c.doing.Load() == asked
}

// rest notes that nothing is under way.
func (c *conn) rest() {
	if c.doing.CompareAndSwap(asked, nothing) {
		c.l.cfg.State(c.nc, http.StateIdle)
	}
}

// waitIdle sets the deadline for the next request, unless one that is nearly as late is set.
func (c *conn) waitIdle() {
	now := time.Now()
	late := now.Add(c.l.cfg.IdleTimeout)
	if c.readBy.Before(late) || c.readBy.Sub(late) > c.l.cfg.IdleTimeout/10 {
		c.setReadBy(late.Add(c.l.cfg.IdleTimeout / 10))
	}
}

func (c *conn) setReadBy(t time.Time) {
	c.readBy = t
	_ = c.nc.SetReadDeadline(t) // of a closed connection: the read says so
}

// fill reads more into the buffer, which has room.
func (c *conn) fill() error {
	if c.start > 0 {
		c.buf = c.buf[:copy(c.buf, c.buf[c.start:])]
		c.start = 0
	}
	n, err := c.nc.Read(c.buf[len(c.buf):cap(c.buf)])
	c.buf = c.buf[:len(c.buf)+n]
	if n > 0 {
		return nil
	}
	return err
}

// respond serves one request, and reports whether the connection goes on.
func (c *conn) respond(h *head, length int64) (goOn bool) {
	if !c.ask() {
		return false
	}
	c.served = true
	x := newExchange(c, length)
	r := new(http.Request)
	*r = *h.parsed
	r.ContentLength = length
	if length > 0 {
		r.Body = &x.body
	}
	if length > int64(len(c.buf)-c.start) && !c.readBy.IsZero() {
		c.setReadBy(time.Time{}) // it was for the head
	}
	if x.body.Arrived() {
		c.lookout.begin()
	}
	defer c.lookout.end()
	defer x.over.Store(true) // also when the handler panics
	h.handler.ServeHTTP(x, r)
	return x.end()
}

// handOn gives the connection to net/http, which may know it by another type.
func (c *conn) handOn(nc net.Conn) {
	_ = nc.SetDeadline(time.Time{}) // net/http finds out
	c.ctx.Cancel(nil)
	c.l.hand(nc)
	c.l.forget(c)
}

// finish closes the connection.
func (c *conn) finish() {
	c.ctx.Cancel(nil)
	_ = c.nc.Close() // it may be closed already
	c.l.cfg.State(c.nc, http.StateClosed)
	c.l.forget(c)
}

// abort closes the connection without a farewell, and cancels what runs on it.
func (c *conn) abort() {
	c.ctx.Cancel(nil)
	if s, ok := c.nc.(*secured); ok {
		_ = s.NetConn().Close() // it may be closed already
		return
	}
	_ = c.nc.Close() // see above
}

// closeIfIdle closes the connection if nothing has been asked on it.
func (c *conn) closeIfIdle() {
	if c.doing.CompareAndSwap(nothing, leaving) {
		_ = c.nc.Close() // serve finds out
	}
}

func (c *conn) setWriteBy(t time.Time) {
	c.writeBy = t
	_ = c.nc.SetWriteDeadline(t) // of a closed connection: the write says so
}
