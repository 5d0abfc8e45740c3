package downstream

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/sse"
)

// Bounds of the events that are kept for clients that lose their connection.
const (
	maxRecords    = 16        // streams of a session
	maxRecorded   = 256 << 10 // bytes of a stream; one event may be larger
	maxRecordedN  = 1024      // events of a stream
	maxUnsent     = 8 << 20   // bytes of an event that could not be sent, above those of a stream
	resumeTimeout = time.Minute
)

// record is a stream of a legacy session that can be resumed with Last-Event-ID: it keeps the
// events and sends them to the current connection.
type record struct {
	id    string
	prime bool // it starts with an event that only carries an id (SEP-1699)
	// request is the id of the request that the stream answers, nil for none.
	request []byte
	over    chan struct{}

	mu     sync.Mutex
	first  int // number of events[0]
	events [][]byte
	size   int
	conn   *conn
	done   bool
	lost   *time.Timer // runs while a client that may come back is away
}

// send keeps a message and forwards it. A broken connection is not an error; an ended stream
// is.
func (r *record) send(msg []byte) error { return r.sendParts(parts{msg}) }

func (r *record) sendParts(msg parts) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		return errAnswered
	}
	id := r.eventID(len(r.events))
	if size := msg.size(); size > intake.Small {
		sent := r.conn != nil && r.conn.write(msg.event(id)...) == nil
		if !sent {
			r.conn = nil
		}
		if sent || size > maxUnsent {
			// A large message is not kept if the client has received it, or may have. A client
			// that comes back for it gets an error.
			msg = unkept(msg, size)
		}
		ev, err := sse.Append(nil, sse.Event{Name: "message", ID: id, Data: msg.joined()})
		if err == nil {
			r.keep(ev)
		}
		return err
	}
	ev, err := sse.Append(nil, sse.Event{Name: "message", ID: id, Data: msg.joined()})
	if err != nil {
		return err
	}
	r.keep(ev)
	if r.conn != nil && r.conn.write(ev) != nil {
		r.conn = nil
	}
	return nil
}

// eventID is the id of the event at a place of events.
func (r *record) eventID(at int) string { return r.id + "-" + strconv.Itoa(r.first+at) }

// keep keeps an event; the caller holds mu.
func (r *record) keep(ev []byte) {
	r.events = append(r.events, ev)
	r.size += len(ev)
	for len(r.events) > 1 && (r.size > maxRecorded || len(r.events) > maxRecordedN) {
		r.size -= len(r.events[0])
		r.events[0] = nil
		r.events = r.events[1:]
		r.first++
	}
}

// unkept returns the replacement for a message that is too large to be kept.
func unkept(msg parts, size int) parts {
	id, call := jsonrpc.Glimpse(msg[0], msg[len(msg)-1])
	if id == nil || call {
		return parts{[]byte(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","data":"a large message was not kept for the stream's resumption"}}`)}
	}
	return parts{jsonrpc.AppendError(nil, id, fail(jsonrpc.CodeInternal, "the answer has %d bytes, and the limit for resuming a broken stream is %d MiB: repeat the call", size, intake.Small>>20))}
}

// event returns a large message as an event: one line, without copying it.
func (p parts) event(id string) parts {
	head := "event: message\ndata: "
	if id != "" {
		head = "event: message\nid: " + id + "\ndata: "
	}
	return append(append(parts{[]byte(head)}, p.line()...), []byte("\n\n"))
}

// attach makes a connection the receiver of the events from now on.
func (r *record) attach(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.take(c)
	if r.prime && r.first+len(r.events) == 0 {
		r.first = 1
		_ = c.write(fmt.Appendf(nil, "id: %s-0\ndata: \n\n", r.id)) // a failure shows with the next event
	}
}

func (r *record) take(c *conn) {
	if r.conn != nil && r.conn != c {
		close(r.conn.over)
	}
	r.conn = c
	if r.lost != nil {
		r.lost.Stop()
		r.lost = nil
	}
}

// replay sends the events after seq, and the later ones as they come.
func (r *record) replay(c *conn, seq int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := max(0, seq+1-r.first)
	if from < len(r.events) {
		if err := c.write(bytes.Join(r.events[from:], nil)); err != nil {
			return err
		}
	}
	r.take(c)
	return nil
}

func (r *record) detach(c *conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.conn == c {
		r.conn = nil
	}
}

func (r *record) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.done {
		r.done = true
		close(r.over)
	}
	if r.lost != nil {
		r.lost.Stop()
	}
}

// away records that the connection is gone, and calls giveUp unless the client resumes the
// stream in time.
func (r *record) away(c *conn, giveUp func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done || (r.conn != nil && r.conn != c) {
		return
	}
	r.conn = nil
	r.lost = time.AfterFunc(resumeTimeout, giveUp)
}

// newRecord returns the record of a new stream of the session.
func (c *client) newRecord(request []byte) *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recordSeq++
	r := &record{id: "r" + strconv.Itoa(c.recordSeq), prime: c.version >= "2025-11-25", request: bytes.Clone(request), over: make(chan struct{})}
	c.records = append(c.records, r)
	if len(c.records) > maxRecords {
		c.records = c.records[1:]
	}
	return r
}

// unasked is the record of messages that concern no request.
func (c *client) unasked() *record {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.getRecord == nil {
		c.getRecord = &record{id: "g", over: make(chan struct{})}
	}
	return c.getRecord
}

// resumed returns the stream that an event id belongs to.
func (c *client) resumed(lastID string) (*record, int, bool) {
	id, n, ok := strings.Cut(lastID, "-")
	seq, err := strconv.Atoi(n)
	if !ok || err != nil || seq < 0 {
		return nil, 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.getRecord != nil && c.getRecord.id == id {
		return c.getRecord, seq, true
	}
	for _, r := range c.records {
		if r.id == id {
			return r, seq, true
		}
	}
	return nil, 0, false
}
