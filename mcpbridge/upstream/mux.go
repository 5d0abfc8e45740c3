package upstream

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Limits of what a server sends (R22, C.2).
const (
	maxMessage  = 8 << 20 // bytes of one line, event or body
	maxGarbage  = 20      // lines that are no messages, per connection
	maxNotes    = 64      // notifications waiting for one call
	maxInFlight = 64      // requests at a time, per session
)

var (
	errTooLarge = fmt.Errorf("the server sent a message of more than %d MiB", maxMessage>>20)
	errGarbage  = errors.New("the server keeps sending what is no JSON-RPC (does it print to standard output?)")
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
	done  chan answer // one answer
	notes chan note   // nil when nobody listens
}

type answer struct {
	reply reply
	err   error // the connection's, when there will be no reply
}

// mux matches what comes in on a two-way connection to the requests that wait.
type mux struct {
	mu      sync.Mutex
	waiting map[int64]*pending
	dead    error

	garbage int
	dropped *atomic.Uint64

	// notify gets the notifications that belong to no request. It must not
	// block.
	notify func(method string, params []byte)
	// answer sends the reply to a request of the server's. It must not block.
	answer func(msg []byte)
}

func newMux(dropped *atomic.Uint64, notify func(string, []byte), answer func([]byte)) *mux {
	return &mux{waiting: map[int64]*pending{}, dropped: dropped, notify: notify, answer: answer}
}

var pendings = sync.Pool{New: func() any { return &pending{done: make(chan answer, 1)} }}

// add registers a request before it is sent.
func (m *mux) add(id int64, notes bool) (*pending, error) {
	p := pendings.Get().(*pending)
	p.notes = nil
	if notes {
		p.notes = make(chan note, maxNotes)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead != nil {
		return nil, m.dead
	}
	m.waiting[id] = p
	return p, nil
}

// drop forgets a request and recycles its slot; an answer that comes later is
// dropped and counted.
func (m *mux) drop(id int64, p *pending) {
	m.mu.Lock()
	delete(m.waiting, id)
	m.mu.Unlock()
	select {
	case <-p.done:
	default:
	}
	pendings.Put(p)
}

// fail ends every request that waits, and all later ones, with err.
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

// dispatch takes one message, whose bytes it keeps; buf, if set, holds them. An
// error ends the connection.
func (m *mux) dispatch(data []byte, buf *bufpool.Buffer) error {
	var msg jsonrpc.Message
	if err := msg.Parse(data); err != nil {
		return m.unreadable(data, err)
	}
	switch {
	case msg.IsResponse():
		m.deliver(msg.ID, answer{reply: reply{msg.Result, msg.Err, buf}})
	case msg.IsRequest():
		m.answer(answerRequest(&msg))
	default:
		m.note(&msg)
	}
	return nil
}

// unreadable counts what is no message. Where an answer can still be told to be
// one, the call that waits for it learns why it will not come.
func (m *mux) unreadable(data []byte, err error) error {
	var probe struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(data, &probe) == nil && probe.Method == "" && len(probe.ID) > 0 {
		m.deliver(probe.ID, answer{err: fmt.Errorf("the server sent a malformed answer: %w", err)})
	}
	m.garbage++
	if m.garbage > maxGarbage {
		return errGarbage
	}
	return nil
}

// deliver hands an answer to the request of that id, if it still waits. Ids are
// compared as the integers that we sent and nothing else (UP-16).
func (m *mux) deliver(rawID []byte, a answer) {
	id, err := strconv.ParseInt(string(rawID), 10, 64)
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.waiting[id]
	if err != nil || p == nil {
		m.dropped.Add(1)
		return
	}
	delete(m.waiting, id)
	p.done <- a
}

func (m *mux) note(msg *jsonrpc.Message) {
	params := msg.Params.Raw()
	if msg.Method == "notifications/progress" {
		token, err := strconv.ParseInt(string(msg.Params.Get("progressToken")), 10, 64)
		m.mu.Lock()
		defer m.mu.Unlock()
		p := m.waiting[token]
		if err != nil || p == nil || p.notes == nil {
			m.dropped.Add(1)
			return
		}
		select {
		case p.notes <- note{msg.Method, params}:
		default: // progress is lossy
			m.dropped.Add(1)
		}
		return
	}
	m.notify(msg.Method, params)
}

// answerRequest replies to what a server asks of its client. Only ping has an
// answer: no other client capability was declared.
func answerRequest(msg *jsonrpc.Message) []byte {
	if msg.Method == "ping" {
		return jsonrpc.AppendResult(nil, msg.ID, []byte("{}"))
	}
	return jsonrpc.AppendError(nil, msg.ID, &jsonrpc.Error{
		Code: jsonrpc.CodeMethodNotFound, Message: fmt.Sprintf("the client does not offer %q", clip(msg.Method, 64)),
	})
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}
