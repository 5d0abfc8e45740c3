package upstream

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/callctx"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Limits of what a server sends.
const (
	maxGarbage  = 20      // lines that are not messages, per connection
	maxNotes    = 64      // notifications waiting for one call
	maxHeavy    = 8 << 20 // bytes of those; a single one may be larger
	maxInFlight = 64      // requests at a time, per session
)

var (
	errGarbage = errors.New("the server keeps sending output that is not JSON-RPC (does it print to standard output?)")
)

// reply is the answer to a request: exactly one of the two is set.
type reply struct {
	result jsonrpc.Object
	err    []byte
	buf    *bufpool.Buffer // holds the bytes of both, if set
}

// note is a notification that belongs to a request.
type note struct {
	method string
	params []byte // raw object, nil when absent
}

// pending is a request that waits for its reply.
type pending struct {
	done   chan answer // one answer
	notes  chan note
	heavy  atomic.Int64 // bytes of the notes
	listen bool         // the caller wants the notes
	by     string       // the principal that made the request
	m      *mux
	id     int64
	into   *jsonrpc.Message // room for the answer, until it is given
	watch  callctx.Hook     // on the context of the request
}

// ContextEnded implements [callctx.Watcher]: the request no longer waits.
func (p *pending) ContextEnded() { p.m.give(p.id, answer{err: errEnded}) }

// errEnded stands for the error of a request's context.
var errEnded = errors.New("the context has ended")

type answer struct {
	msg    *jsonrpc.Message // the reply, which give puts into the request's memory
	reply  reply
	parked *parked // the reply is in a file
	err    error   // set if there will be no reply
}

// mux matches the messages of a two-way connection to the pending requests.
type mux struct {
	mu      sync.Mutex
	waiting map[int64]*pending
	dead    error

	batches atomic.Bool     // the server may send batches
	garbage int             // owned by the reading goroutine, like told
	told    int             // lines that were logged
	msg     jsonrpc.Message // the one that is being handled
	dropped *atomic.Uint64

	in incoming
	// answer sends the reply to a request of the server's. It must not block.
	answer func(msg []byte)
}

func newMux(dropped *atomic.Uint64, in incoming, answer func([]byte)) *mux {
	return &mux{waiting: map[int64]*pending{}, dropped: dropped, in: in, answer: answer}
}

var pendings = sync.Pool{New: func() any {
	return &pending{done: make(chan answer, 1), notes: make(chan note, maxNotes)}
}}

// add registers a request before it is sent.
func (m *mux) add(req *request) (*pending, error) {
	p := pendings.Get().(*pending)
	p.listen, p.by, p.m, p.id, p.into = req.listens(), req.by, m, req.id, &req.msg
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead != nil {
		return nil, m.dead
	}
	m.waiting[req.id] = p
	return p, nil
}

// drop forgets a request and recycles its slot; a later answer is dropped and counted.
func (m *mux) drop(id int64, p *pending) {
	m.mu.Lock()
	delete(m.waiting, id)
	m.mu.Unlock()
	select {
	case a := <-p.done:
		a.discard()
	default:
	}
	for len(p.notes) > 0 {
		<-p.notes
	}
	if !p.watch.Detach() {
		return // somebody may be about to use it
	}
	p.heavy.Store(0)
	p.m, p.into = nil, nil
	pendings.Put(p)
}

// discard releases an answer that no caller wants.
func (a *answer) discard() {
	a.reply.buf.Release()
	a.parked.close()
}

// fail ends every pending and every later request with err.
func (m *mux) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead != nil {
		return
	}
	m.dead = err
	for id, p := range m.waiting {
		delete(m.waiting, id)
		p.done <- answer{err: err}
	}
}

func (m *mux) failed() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// dispatch handles one message and keeps its bytes; buf, if set, holds them. An error ends the
// connection.
func (m *mux) dispatch(data []byte, buf *bufpool.Buffer) error {
	data = m.in.conceal(data)
	msg := &m.msg
	if len(data) > intake.Small {
		msg = new(jsonrpc.Message) // which does not keep the bytes until the next one
	}
	if err := msg.Parse(data); errors.Is(err, jsonrpc.ErrBatch) && m.batches.Load() {
		return m.dispatchBatch(data, buf)
	} else if err != nil {
		buf.Forget()
		return m.unreadable(data, err)
	}
	switch {
	case msg.IsResponse():
		m.deliver(msg.ID, answer{msg: msg, reply: reply{buf: buf}})
	case msg.IsRequest():
		asked := new(jsonrpc.Message) // the answer may be long in coming
		msg.CopyTo(asked)
		m.in.asked(nil, asked, buf, m.answer)
	default:
		buf.Forget()
		m.note(msg)
	}
	return m.enough()
}

// enough returns an error if the server has sent more garbage than a connection may.
func (m *mux) enough() error {
	if m.garbage > maxGarbage {
		return errGarbage
	}
	return nil
}

// tell logs an unusable line, but not so often that it floods the log.
func (m *mux) tell(line []byte, why error) {
	if m.told++; m.told <= maxGarbage+1 {
		m.in.unread(line, why)
	}
}

// begin implements [versionHolder]: servers of 2025-03-26 may send batches.
func (m *mux) begin(version string, _ bool) {
	m.batches.Store(version == mcp.ProtocolVersion20250326)
}

// dispatchBatch handles the messages of a batch, whose memory counts until the last of them is
// released. A batch inside a batch is not a message.
func (m *mux) dispatchBatch(data []byte, buf *bufpool.Buffer) error {
	parts, err := jsonrpc.Batch(data)
	if err != nil {
		buf.Forget()
		return m.unreadable(data, err)
	}
	left := new(atomic.Int64)
	left.Store(int64(len(parts)) + 1)
	done := func() {
		if left.Add(-1) == 0 {
			buf.Forget()
		}
	}
	defer done()
	for i, part := range parts {
		if part[0] == '[' {
			err = m.unreadable(part, jsonrpc.ErrBatch)
			done()
		} else {
			held := new(bufpool.Buffer)
			held.OnRelease(done)
			err = m.dispatch(part, held)
		}
		if err != nil {
			for range parts[i+1:] { // they are not parsed
				done()
			}
			return err
		}
	}
	return nil
}

// late delivers an answer in a file to the pending request.
func (m *mux) late(head, tail []byte, p *parked) bool {
	id, call := jsonrpc.Glimpse(head, tail)
	if id == nil || call {
		return false
	}
	m.deliver(id, answer{parked: p})
	return true
}

// reply reads a request's answer back from a file, on the budget of the request's principal.
func (p *parked) reply(ctx context.Context, req *request) (reply, error) {
	if err := p.settle(ctx, req.by); err != nil {
		p.close()
		return reply{}, err
	}
	buf, err := p.load(ctx)
	if err != nil {
		return reply{}, err
	}
	var msg jsonrpc.Message
	if err = msg.Parse(req.s.conceal(buf.B)); err == nil && (!msg.IsResponse() || string(msg.ID) != strconv.FormatInt(req.id, 10)) {
		err = errors.New("it has two ids")
	}
	if err != nil {
		buf.Release()
		return reply{}, malformed(err)
	}
	return reply{msg.Result, msg.Err, buf}, nil
}

// lost fails the call whose answer cannot be read. It reports whether it could tell which
// message was lost.
func (m *mux) lost(head, tail []byte, why error) bool {
	id, call := jsonrpc.Glimpse(head, tail)
	switch {
	case id == nil && tail == nil:
		return false
	case id == nil:
		m.dropped.Add(1)
	case call:
		m.answer(jsonrpc.AppendError(nil, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: why.Error()}))
	default:
		m.deliver(id, answer{err: why})
	}
	return true
}

// unreadable counts input that is not a message. If it still shows which calls it answers, they
// fail with the reason; other input is logged.
func (m *mux) unreadable(data []byte, err error) error {
	known := false
	for _, id := range claimed(data) {
		known = m.give(id, answer{err: malformed(err)}) || known
	}
	if !known {
		m.dropped.Add(1)
		m.tell(data, err)
	}
	m.garbage++
	return m.enough()
}

// deliver hands an answer to the request with that id, if it is still pending. Ids are compared
// as exactly the integers that we sent: an answer whose id is written differently is garbage,
// and only tells that no answer will come.
func (m *mux) deliver(rawID []byte, a answer) {
	id, err := strconv.ParseInt(string(rawID), 10, 64)
	if err == nil && m.give(id, a) {
		return
	}
	m.dropped.Add(1)
	defer a.discard() // the id may be in it
	if err == nil {
		return // no caller waits for it
	}
	m.garbage++
	if id, err = strconv.ParseInt(strings.Trim(string(rawID), `"`), 10, 64); err != nil || !m.give(id, answer{err: malformed(errIDType)}) {
		m.tell(rawID, errNobody)
	}
}

// give hands an answer to the request with that id. It reports false if none is pending.
func (m *mux) give(id int64, a answer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.waiting[id]
	if p == nil {
		return false
	}
	delete(m.waiting, id)
	if a.parked != nil {
		a.parked.of(p.by) // without room for it, the request waits
	}
	if a.msg != nil {
		a.msg.CopyTo(p.into)
		a.msg, a.reply.result, a.reply.err = nil, p.into.Result, p.into.Err
	}
	p.done <- a
	return true
}

func (m *mux) note(msg *jsonrpc.Message) {
	params := msg.Params.Raw()
	if msg.Method != noteProgress {
		m.in.note(nil, msg.Method, params)
		return
	}
	token, err := strconv.ParseInt(string(msg.Params.Get("progressToken")), 10, 64)
	if err != nil || !m.offer(token, note{msg.Method, params}) {
		m.dropped.Add(1)
	}
}

// offer implements [transport]. Notes are lossy: a call holds at most maxNotes unread ones.
func (m *mux) offer(id int64, n note) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.waiting[id]
	if p == nil || !p.listen {
		return false
	}
	size := int64(len(n.params))
	if has := p.heavy.Add(size); has > maxHeavy && has > size {
		p.heavy.Add(-size)
		m.dropped.Add(1)
		return true
	}
	select {
	case p.notes <- n:
	default:
		p.heavy.Add(-size)
		m.dropped.Add(1)
	}
	return true
}
