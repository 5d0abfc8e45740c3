package downstream

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"sync"

	"github.com/yaya-ai/yaya/internal/callctx"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/telemetry"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// incoming is the state of one POST; it is recycled.
type incoming struct {
	body []byte
	held intake.Held // of the budget for bodies
	msg  jsonrpc.Message
	out  []byte
}

const keptBuffer = 512 << 10 // larger buffers are not kept for the next request

var incomings = sync.Pool{New: func() any { return new(incoming) }}

func recycle(in *incoming) {
	if cap(in.body) > keptBuffer || cap(in.out) > keptBuffer {
		return
	}
	in.body, in.out = in.body[:0], in.out[:0]
	in.msg = jsonrpc.Message{}
	incomings.Put(in)
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, who tool.Caller, origin tool.Origin) {
	if ct := r.Header.Get("Content-Type"); ct != "application/json" {
		if mt, _, err := mime.ParseMediaType(ct); err != nil || mt != "application/json" {
			refuse(w, http.StatusUnsupportedMediaType, nil, jsonrpc.CodeInvalidRequest, "Content-Type must be application/json")
			return
		}
	}
	if r.Header.Get("Content-Encoding") != "" {
		refuse(w, http.StatusUnsupportedMediaType, nil, jsonrpc.CodeInvalidRequest, "compressed requests are not accepted")
		return
	}
	if next := s.sessionElsewhere(r); next != nil {
		next.ServeHTTP(w, r)
		return
	}
	in := incomings.Get().(*incoming)
	var err error
	limit := s.cfg.MaxMessage()
	in.body, in.held, err = intake.Bodies().ReadQueued(r.Context(), intake.Requests(), in.body, r.Body, r.ContentLength, who.Principal, limit)
	if err != nil {
		unread(w, err, limit)
		return
	}
	reuse := false
	defer func() {
		in.held.Release() // unless work that outlives the request took it over
		if reuse {
			recycle(in)
		}
	}()
	if err = in.msg.Parse(in.body); errors.Is(err, jsonrpc.ErrBatch) {
		s.postBatch(w, r, who, origin, in.body)
		return
	}
	if err != nil {
		code, id := jsonrpc.CodeInvalidRequest, in.msg.ID
		if errors.Is(err, jsonrpc.ErrSyntax) {
			code, id = jsonrpc.CodeParse, jsonrpc.Waits(in.body)
		}
		refuse(w, http.StatusBadRequest, id, code, "%v", err)
		return
	}
	if next := s.messageElsewhere(&in.msg); next != nil && origin != tool.OriginNode {
		again(next, w, r, in.body)
		return
	}
	if next := s.drainedTo(r, &in.msg, who, origin); next != nil {
		again(next, w, r, in.body)
		return
	}
	p, ok := s.shown(w, r, &in.msg, who)
	if !ok {
		return
	}
	c, modern, ok := s.admit(w, r, &in.msg, who, p)
	if !ok {
		return
	}
	if !in.msg.IsRequest() {
		s.oneWay(c, p, who, &in.msg)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	reuse = s.serve(w, r, in, &post{request: request{exchange: exchange{c: c, profile: p, caller: who, origin: origin, msg: &in.msg, held: &in.held, modern: modern}}})
}

// unread refuses a request whose body cannot be read.
func unread(w http.ResponseWriter, err error, limit int) {
	status, why := http.StatusBadRequest, "the request cannot be read"
	switch {
	case errors.Is(err, intake.ErrTooLarge):
		status, why = http.StatusRequestEntityTooLarge, tooLong(limit)
	case errors.Is(err, intake.ErrBusy):
		w.Header().Set("Retry-After", "1")
		status, why = http.StatusServiceUnavailable, fmt.Sprintf("%v: retry later", err)
	}
	refuse(w, status, nil, jsonrpc.CodeInvalidRequest, "%s", why)
}

// tooLong says that a message exceeds the limit, and where to change the limit.
func tooLong(limit int) string {
	return fmt.Sprintf("the message is larger than %d MiB; raise the setting servers.max_message_bytes if necessary", limit>>20)
}

// post is the request of a POST.
type post struct {
	request
	stream responseStream
	watch  callctx.Hook // for a legacy client that goes away
}

// begin makes the request's context, and reports false if its id is in use.
func (p *post) begin(ctx context.Context) bool {
	if p.modern { // its client is made for this request alone
		p.Begin(ctx)
		return true
	}
	p.BeginDetached(ctx)
	return p.c.begin(&p.running, p.msg.ID)
}

// ContextEnded implements [callctx.Watcher]: a legacy client has lost its connection. A client that
// loses its stream may resume it; without any event, it has nothing to resume.
func (p *post) ContextEnded() {
	p.stream.mu.Lock()
	rec, conn := p.stream.record, p.stream.conn
	p.stream.mu.Unlock()
	if rec == nil {
		p.finish(errNoAnswer)
		return
	}
	rec.away(conn, func() { p.finish(errNoAnswer) })
}

// serve runs a request and writes its response: plain JSON, or a stream from the first message
// before the result. It reports whether the request's memory can be reused.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, in *incoming, p *post) (reuse bool) {
	x, rs := &p.exchange, &p.stream
	c, modern := x.c, x.modern
	c.enter()
	defer c.leave()
	rs.w = w
	defer p.finish(nil)
	if !p.begin(r.Context()) {
		refuse(w, http.StatusBadRequest, in.msg.ID, jsonrpc.CodeInvalidRequest, "a request with this id is running")
		return false
	}
	if !modern {
		rs.resumable, rs.request = c, in.msg.ID
		p.watch.Attach(r.Context(), p)
		defer p.watch.Detach()
	}
	ctx := context.Context(&p.Context)
	x.ctx, x.stream = ctx, rs
	if s.cfg.Telemetry != nil {
		x.overHTTP = true
		if parent := r.Header.Get("traceparent"); parent != "" {
			x.ambient = telemetry.Context{Parent: []byte(parent), State: []byte(r.Header.Get("tracestate"))}
		}
	}
	if modern {
		x.header = func(name string) (string, bool) {
			v := r.Header.Values(name)
			if len(v) == 0 {
				return "", false
			}
			return v[0], true
		}
		x.level = c.level
	}
	x.caps = c.capabilities()
	x.narrow()
	if in.msg.Method == "subscriptions/listen" && modern && !x.caller.IsServer() {
		rs.mu.Lock()
		rs.open()
		rs.mu.Unlock()
		stop := rs.conn.keepAlive(ctx)
		defer stop()
	}
	out := s.answer(ctx, in.out[:0], x)
	defer func() { x.buf.Release() }()
	switch {
	case rs.started():
		if out != nil {
			_ = rs.sendParts(out)
		}
		rs.finish()
	case out == nil:
		// A notification cancelled the request, but its POST still needs a response, although
		// nobody waits for it.
		refuse(w, http.StatusOK, in.msg.ID, jsonrpc.CodeInvalidRequest, "the request was cancelled")
	case x.list != nil:
		writeList(w, r, x.list, out)
		in.out = out[0]
	default:
		write(w, x.status(), out...)
		in.out = out[0]
	}
	if in.msg.Method == "initialize" && !modern && !c.introduced() {
		s.drop(c.token) // the handshake failed: there is no session
	}
	return ctx.Err() == nil && !x.keep
}
