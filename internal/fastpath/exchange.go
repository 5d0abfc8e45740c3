package fastpath

import (
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/internal/bufpool"
)

const (
	// held is how much of an answer without Content-Length is held back to find out its length;
	// a longer one is sent in chunks (as in net/http).
	held = 2 << 10
	// copied is how much of an answer is copied behind its head, rather than written from
	// where it is.
	copied = 16 << 10
)

// exchange is a request and its answer. It implements [http.ResponseWriter] with the methods
// of [http.ResponseController], but for Hijack.
type exchange struct {
	c      *conn
	body   body
	header http.Header
	over   atomic.Bool // the handler has returned

	status   int             // 0 before the handler has chosen one
	bodyless bool            // as the status says
	length   int64           // that the handler has announced; -1 without
	written  int64           // by the handler
	out      *bufpool.Buffer // to be sent: the head as far as it is known, or pieces of the body; nil without a status
	kept     []byte          // of the body, while the head is open
	complete bool            // the head is in out, or has been sent
	chunked  bool
	typed    bool   // there is a type, or none is to be found out
	keep     string // Connection of an answer after which the connection stays
	last     bool   // the connection closes after the answer
	bounded  bool   // the handler has set a deadline for writing
	broken   error  // of the connection
}

func newExchange(c *conn, length int64) *exchange {
	clear(c.header)
	x := &exchange{c: c, header: c.header, length: -1}
	x.body = body{x: x, left: length}
	return x
}

// Header implements [http.ResponseWriter].
func (x *exchange) Header() http.Header { return x.header }

var errOver = errors.New("fastpath: the handler of this request has returned")

// WriteHeader implements [http.ResponseWriter]. Informational answers are left out: nobody
// waits for one, as requests with Expect are net/http's.
func (x *exchange) WriteHeader(status int) {
	if x.status != 0 || x.over.Load() {
		return
	}
	if status < 100 || status > 999 {
		panic("invalid WriteHeader code " + strconv.Itoa(status)) // as in net/http
	}
	if status < 200 {
		return
	}
	x.status = status
	x.bodyless = status == http.StatusNoContent || status == http.StatusNotModified
	if v := x.header["Content-Length"]; len(v) > 0 {
		n, err := strconv.ParseInt(v[0], 10, 64)
		if err == nil && n >= 0 {
			x.length = n
		} else {
			delete(x.header, "Content-Length")
		}
	}
	x.keep = x.header.Get("Connection")
	x.last = x.last || x.c.l.draining.Load() || strings.EqualFold(x.keep, "close")
	_, x.typed = x.header["Content-Type"]
	x.typed = x.typed || x.bodyless || x.header.Get("Content-Encoding") != ""
	x.out = bufpool.Get(copied) // not before: a request may wait for long
	x.appendHead()
}

// appendHead appends the head to what is to be sent, but for what depends on the body.
func (x *exchange) appendHead() {
	out := append(x.out.B, "HTTP/1.1 "...)
	out = strconv.AppendInt(out, int64(x.status), 10)
	out = append(out, ' ')
	if text := http.StatusText(x.status); text != "" {
		out = append(out, text...)
	} else {
		out = append(append(out, "status code "...), strconv.Itoa(x.status)...)
	}
	x.out.B = append(out, "\r\n"...)
	x.appendFields(x.header, bodyFields)
	if _, ok := x.header["Date"]; !ok {
		x.out.B = append(appendDate(append(x.out.B, "Date: "...)), "\r\n"...)
	}
}

// bodyFields are the fields that depend on the body.
var bodyFields = map[string]bool{"Content-Length": true, "Connection": true, "Transfer-Encoding": true, "Trailer": true}

// appendFields appends the fields of a header, but for some.
func (x *exchange) appendFields(h http.Header, but map[string]bool) {
	_ = h.WriteSubset((*appender)(x.out), but) // an appender takes all
}

// appender writes to the end of a buffer.
type appender bufpool.Buffer

// Write implements [io.Writer].
func (a *appender) Write(b []byte) (int, error) {
	a.B = append(a.B, b...)
	return len(b), nil
}

// WriteString implements [io.StringWriter].
func (a *appender) WriteString(s string) (int, error) {
	a.B = append(a.B, s...)
	return len(s), nil
}

// completeHead ends the head. The body is kept, followed by more; whole says that this is all of it.
func (x *exchange) completeHead(more []byte, whole bool) {
	begin := x.kept
	if len(begin) == 0 {
		begin = more
	}
	if !x.typed && len(begin) > 0 {
		x.appendFields(http.Header{"Content-Type": {http.DetectContentType(begin)}}, nil)
	}
	x.settleBody()
	if x.length < 0 && whole {
		x.length = int64(len(x.kept))
	}
	switch {
	case x.bodyless:
	case x.length >= 0:
		x.out.B = append(strconv.AppendInt(append(x.out.B, "Content-Length: "...), x.length, 10), "\r\n"...)
	default:
		x.chunked = true
		x.out.B = append(x.out.B, "Transfer-Encoding: chunked\r\n"...)
	}
	switch {
	case x.last:
		x.out.B = append(x.out.B, "Connection: close\r\n"...)
	case x.keep != "":
		x.appendFields(http.Header{"Connection": {x.keep}}, nil)
	}
	x.out.B = append(x.out.B, "\r\n"...)
	x.complete = true
	if len(x.kept) > 0 {
		x.appendBody(x.kept)
		x.kept = nil
	}
}

// settleBody reads what the handler has left of a request's body, so that the next request can
// follow. When too much is left, the connection closes.
func (x *exchange) settleBody() {
	b := &x.body
	b.closed = true
	if b.left > maxUnread {
		x.last = true
	}
	if b.left == 0 || x.last {
		return
	}
	rest := make([]byte, min(b.left, readSize))
	for b.left > 0 {
		if _, err := b.read(rest); err != nil && !errors.Is(err, io.EOF) {
			x.last = !b.cut // nothing can follow, and the connection ends; net/http does not say so then
			return
		}
	}
}

// Write implements [http.ResponseWriter].
func (x *exchange) Write(b []byte) (int, error) {
	switch {
	case x.over.Load():
		return 0, errOver
	case x.status == 0:
		x.WriteHeader(http.StatusOK)
	}
	switch {
	case x.broken != nil:
		return 0, x.broken
	case len(b) == 0:
		return 0, nil
	case x.bodyless:
		return 0, http.ErrBodyNotAllowed
	case x.length >= 0 && x.written+int64(len(b)) > x.length:
		return 0, http.ErrContentLength
	}
	x.written += int64(len(b))
	return len(b), x.write(b)
}

func (x *exchange) write(b []byte) error {
	if !x.complete {
		if x.length < 0 && len(x.kept)+len(b) <= held {
			x.kept = append(x.kept, b...)
			return nil
		}
		x.completeHead(b, false)
	}
	switch {
	case len(x.out.B)+len(b) <= copied:
		x.appendBody(b)
		return nil
	case x.chunked:
		x.out.B = append(strconv.AppendInt(x.out.B, int64(len(b)), 16), "\r\n"...)
		return x.send(b, crlf)
	}
	return x.send(b)
}

var crlf = []byte("\r\n")

// appendBody appends a piece of the body to what is to be sent.
func (x *exchange) appendBody(b []byte) {
	out := x.out.B
	if x.chunked {
		out = append(strconv.AppendInt(out, int64(len(b)), 16), "\r\n"...)
	}
	out = append(out, b...)
	if x.chunked {
		out = append(out, "\r\n"...)
	}
	x.out.B = out
}

// send sends what is held back, and then more.
func (x *exchange) send(more ...[]byte) error {
	if x.broken != nil {
		return x.broken
	}
	now := time.Now()
	if by := x.c.writeBy; by.Before(now.Add(writeTimeout)) && (!x.bounded || by.Before(now)) {
		x.c.setWriteBy(now.Add(2 * writeTimeout))
	}
	var err error
	if len(more) == 0 {
		_, err = x.c.nc.Write(x.out.B)
	} else {
		all := net.Buffers(slices.Concat([][]byte{x.out.B}, more))
		_, err = all.WriteTo(x.c.nc)
	}
	x.out.B = x.out.B[:0]
	if err != nil {
		x.broken = err
		x.c.ctx.Cancel(nil) // as net/http does
	}
	return err
}

// FlushError implements what [http.ResponseController] asks for.
func (x *exchange) FlushError() error {
	if x.over.Load() {
		return errOver
	}
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	if !x.complete {
		x.completeHead(nil, false)
	}
	if len(x.out.B) == 0 {
		return x.broken
	}
	return x.send()
}

// Flush implements [http.Flusher].
func (x *exchange) Flush() { _ = x.FlushError() }

// SetReadDeadline implements what [http.ResponseController] asks for. A body that has arrived
// needs none.
func (x *exchange) SetReadDeadline(t time.Time) error {
	if x.over.Load() {
		return errOver
	}
	if x.body.Arrived() {
		return nil
	}
	x.c.readBy = t
	return x.c.nc.SetReadDeadline(t)
}

// SetWriteDeadline implements what [http.ResponseController] asks for. The deadline is up to
// twice as far away, so that it need not be set for every answer.
func (x *exchange) SetWriteDeadline(t time.Time) error {
	if x.over.Load() {
		return errOver
	}
	x.bounded = !t.IsZero()
	in := time.Until(t)
	switch by := x.c.writeBy; {
	case t.IsZero() || in <= 0:
	case !by.Before(t) && by.Sub(t) <= in:
		return nil
	default:
		t = t.Add(in)
	}
	x.c.writeBy = t
	return x.c.nc.SetWriteDeadline(t)
}

// EnableFullDuplex implements what [http.ResponseController] asks for: it is not offered.
func (x *exchange) EnableFullDuplex() error { return http.ErrNotSupported }

// end sends the rest of the answer, and reports whether the connection goes on.
func (x *exchange) end() bool {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	x.over.Store(true)
	if !x.complete {
		x.completeHead(nil, true)
	}
	if x.chunked {
		x.out.B = append(x.out.B, "0\r\n\r\n"...)
	}
	if x.length >= 0 && !x.bodyless && x.written != x.length {
		x.last = true // the client waits for more
	}
	if len(x.out.B) > 0 {
		_ = x.send() // see broken
	}
	x.out.Release()
	x.out = nil
	switch {
	case x.broken != nil:
		return false
	case x.last:
		x.linger()
		return false
	}
	return x.body.left == 0
}

// linger closes the writing half and waits for the client to close: what it is still sending
// would cause a reset, and could cost it the answer.
func (x *exchange) linger() {
	half, ok := x.c.nc.(interface{ CloseWrite() error })
	if x.body.Arrived() || !ok || half.CloseWrite() != nil {
		return
	}
	x.c.setReadBy(time.Now().Add(lingering))
	for {
		if _, err := x.c.nc.Read(x.c.buf[:cap(x.c.buf)]); err != nil {
			return
		}
	}
}
