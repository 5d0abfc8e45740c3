package downstream

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// A batch is an array of messages that is answered by an array (2025-03-26, Basic Protocol).
// The revisions before and after it have no batches.

// batches reports whether a client's protocol version supports batches.
func (c *client) batches() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.version == mcp.ProtocolVersion20250326
}

var errNoBatches = errors.New("batches exist in protocol version " + mcp.ProtocolVersion20250326 + " only: send the messages one by one")

// batch is an array of messages in progress.
type batch struct {
	mu      sync.Mutex
	answers [][]byte
	size    int // bytes of the responses
	work    sync.WaitGroup
}

// maxBatched bounds the total size of a batch's responses, which leave as one message.
const maxBatched = 64 << 20

// add adds the response to a request. If it makes the batch too large, add replaces it with an
// error.
func (b *batch) add(id, answer []byte) {
	if answer == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.size+len(answer) > maxBatched {
		answer = jsonrpc.AppendError(nil, id, fail(jsonrpc.CodeInternal, "the responses of this batch exceed %d MiB in total: send the request by itself", maxBatched>>20))
	}
	b.size += len(answer)
	b.answers = append(b.answers, answer)
}

// openBatch splits a batch. It handles notifications and responses at once, returns the
// requests, and answers elements that are not messages with an error.
func (s *Server) openBatch(c *client, p *profile, who tool.Caller, data []byte) (b *batch, requests []*jsonrpc.Message, err error) {
	parts, err := jsonrpc.Batch(data)
	if err != nil {
		return nil, nil, err
	}
	b = new(batch)
	for _, part := range parts {
		msg := new(jsonrpc.Message)
		switch err := msg.Parse(part); {
		case err != nil:
			b.add(msg.ID, jsonrpc.AppendError(nil, msg.ID, fail(jsonrpc.CodeInvalidRequest, "%v", err)))
		case !msg.IsRequest():
			s.oneWay(c, p, who, msg)
		case msg.Method == "initialize":
			b.add(msg.ID, jsonrpc.AppendError(nil, msg.ID, fail(jsonrpc.CodeInvalidRequest, "initialize cannot be part of a batch")))
		default:
			requests = append(requests, msg)
		}
	}
	return b, requests, nil
}

// run handles one request of a batch on its own goroutine, after room is closed, or at once if
// room is nil.
func (s *Server) run(ctx context.Context, b *batch, q *request, room <-chan struct{}) {
	x := &q.exchange
	q.Begin(ctx)
	if !x.c.begin(&q.running, x.msg.ID) { // from here on, it can be cancelled
		q.finish(nil)
		b.add(x.msg.ID, jsonrpc.AppendError(nil, x.msg.ID, fail(jsonrpc.CodeInvalidRequest, "a request with this id is running")))
		return
	}
	b.work.Go(func() {
		defer q.finish(nil)
		if room != nil {
			select {
			case <-room:
			case <-q.Done():
				return // the client has cancelled the request, or is gone
			}
		}
		x.ctx = &q.Context
		// A batch's collected responses do not count among the large messages in flight: its
		// other requests may have to wait for room there.
		if out := s.answer(x.ctx, nil, x); out != nil {
			b.add(x.msg.ID, out.joined())
		}
		x.buf.Release()
	})
}

// array returns the responses as one message, nil if there are none.
func (b *batch) array() []byte {
	if len(b.answers) == 0 {
		return nil
	}
	return append(append([]byte{'['}, bytes.Join(b.answers, []byte{','})...), ']')
}

// postBatch serves a POST whose body is an array. It owns the memory of the body.
func (s *Server) postBatch(w http.ResponseWriter, r *http.Request, who tool.Caller, origin tool.Origin, body []byte) {
	refused := func(status int, format string, args ...any) {
		refuse(w, status, nil, jsonrpc.CodeInvalidRequest, format, args...)
	}
	p, ok := s.shown(w, r, new(jsonrpc.Message), who)
	if !ok {
		return
	}
	token := r.Header.Get(mcp.HeaderSessionID)
	c := s.find(who.Principal, token)
	switch {
	case mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)), token == "":
		refused(http.StatusBadRequest, "%v", errNoBatches)
		return
	case c == nil || c.profile.name != p.name:
		status, why := s.noSession()
		refused(status, "%s", why)
		return
	case !c.batches():
		refused(http.StatusBadRequest, "%v", errNoBatches)
		return
	}
	c.enter()
	defer c.leave()
	b, requests, err := s.openBatch(c, p, who, body)
	switch {
	case errors.Is(err, jsonrpc.ErrSyntax):
		refuse(w, http.StatusBadRequest, nil, jsonrpc.CodeParse, "%v", err)
		return
	case err != nil:
		refused(http.StatusBadRequest, "%v", err)
		return
	}
	rs := &responseStream{w: w}
	for _, msg := range requests {
		q := &request{exchange: exchange{c: c, profile: p, caller: who, origin: origin, msg: msg, stream: rs, caps: c.capabilities()}}
		q.narrow()
		s.run(r.Context(), b, q, nil)
	}
	b.work.Wait()
	switch out := b.array(); {
	case out == nil:
		w.WriteHeader(http.StatusAccepted)
	case rs.started():
		_ = rs.send(out) // a client that went away gets nothing
	default:
		write(w, http.StatusOK, out)
	}
}

// takeBatch handles a line that is an array. It takes one of the connection's slots, whatever
// its size.
func (sc *stdioConn) takeBatch(ctx context.Context, in Incoming) {
	s, c, lw := sc.s, sc.c, sc.lw
	done := in.Release
	defer func() { done() }()
	refused := func(code int, err error) {
		_ = lw.write(jsonrpc.AppendError(nil, nil, fail(code, "%v", err))) // a broken pipe ends the whole connection
	}
	if !c.batches() {
		refused(jsonrpc.CodeInvalidRequest, errNoBatches)
		return
	}
	b, requests, err := s.openBatch(c, c.profile, sc.who, in.Data)
	switch {
	case errors.Is(err, jsonrpc.ErrSyntax):
		refused(jsonrpc.CodeParse, err)
		return
	case err != nil:
		refused(jsonrpc.CodeInvalidRequest, err)
		return
	}
	// One batch may have as many requests as a connection.
	room := 0
	for room < len(requests) {
		select {
		case sc.slots <- struct{}{}:
			room++
			continue
		default:
		}
		break
	}
	for _, msg := range requests[room:] {
		b.add(msg.ID, jsonrpc.AppendError(nil, msg.ID, fail(jsonrpc.CodeInternal, "more than %d requests are running", maxConcurrent)))
	}
	found := make(chan struct{}) // closed when the line has its share of the budget
	for _, msg := range requests[:room] {
		s.run(ctx, b, &request{exchange: exchange{c: c, profile: c.profile, caller: sc.who, origin: tool.OriginMCP, msg: msg, notify: lw.write, caps: c.capabilities()}}, found)
	}
	done = func() {} // its requests are in it
	sc.work.Go(func() {
		defer in.Release()
		if in.await(ctx) == nil { // otherwise the connection is gone, and the requests with it
			close(found)
		}
		b.work.Wait()
		for range room {
			<-sc.slots
		}
		if out := b.array(); out != nil {
			_ = lw.write(out)
		}
	})
}
