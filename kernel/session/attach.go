package session

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// liveItems is how many recent events are held for connections; a connection
// further behind reads the tape.
const liveItems = 1024

// liveKept is how many places of items that were sent are used again.
const liveKept = 32

// Item is one message to a connection: an event, or the notice that its cursor is
// not valid.
type Item struct {
	Event event.Event
	// Entry is the event's tape entry, if it has one. Some entries have no event: then
	// Event has no kind.
	Entry Entry
	// Cursor is the reader's position after this item. Events that are not on the tape
	// do not move it.
	Cursor Cursor
	// Offset is the start of an assistant.message.delta's content in the
	// text in flight, in bytes.
	Offset int
	// Resync is set instead of Event: the reader replaces its state by this one.
	Resync *Resync
	// Snapshot precedes all events, for readers that asked for it.
	Snapshot *Snapshot
}

// Resync tells a reader why it cannot continue from its cursor.
type Resync struct {
	Reason  string   `json:"reason"` // "epoch": the tape was reset or repaired; "ahead": the tape has no such entry
	Current Snapshot `json:"current"`
}

// AttachOptions describe a connection.
type AttachOptions struct {
	Adapter string
	// Send delivers one item, on the connection's own goroutine, one at a time.
	// An error detaches. Its context ends with the connection.
	Send func(ctx context.Context, it Item) error
	// Since asks for a replay of every entry after that id; nil for none.
	Since *int64
	// Epoch is the epoch that Since belongs to; "" trusts the caller.
	Epoch string
	// Snapshot asks for a snapshot before anything else.
	Snapshot bool
	// Entries also asks for entries without an event: messages with other roles than
	// user and assistant.
	Entries bool
	// Answers reports whether the connection's user may answer asks; nil means yes. It
	// must not block.
	Answers func() bool
}

// Connection is one reader of a session.
type Connection struct {
	s      *Session
	id     string
	o      AttachOptions
	cancel context.CancelFunc // ends run
	wakeup chan struct{}
	done   chan struct{}
	once   sync.Once

	// Guarded by the session's mutex.
	beat time.Time
	pos  int64 // of the next live item

	// The connection's own.
	cursor Cursor
	items  []Item // the places of those that were sent last
}

// ID returns the connection's id, 32 hexadecimal digits.
func (c *Connection) ID() string { return c.id }

// Done is closed when nothing more will be sent.
func (c *Connection) Done() <-chan struct{} { return c.done }

// Attach adds a reader to a session. It gets the replay that it asked for and then
// all new events, without gap or duplicate.
func (m *Manager) Attach(id string, o AttachOptions) (*Connection, error) {
	if o.Send == nil {
		return nil, errors.New("attach: Send is not set")
	}
	s, err := m.Open(id, "")
	if err != nil {
		return nil, err
	}
	u := uuid.New()
	c := &Connection{s: s, id: hex.EncodeToString(u[:]), o: o, wakeup: make(chan struct{}, 1), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	s.mu.Lock()
	if err := s.load(); err != nil {
		s.mu.Unlock()
		c.cancel()
		return nil, err
	}
	first := c.greeting()
	c.cursor, c.pos, c.beat = s.cursor(), s.liveFrom+int64(len(s.live)), time.Now()
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		s.mu.Unlock()
		c.cancel()
		return nil, bus.ErrClosed
	}
	m.conns.Add(1)
	m.mu.Unlock()
	s.conns = append(s.conns, c)
	s.mu.Unlock()
	m.tell(func(e *bus.Emitter) error {
		_, err := bus.Publish(e, event.SessionContextAttached, event.KernelSession, event.ContextAttached{SessionID: s.id, ConnectionID: c.id, AdapterID: o.Adapter})
		return err
	})
	go c.run(ctx, first)
	return c, nil
}

func (m *Manager) tell(f func(e *bus.Emitter) error) {
	m.publish(func(e *bus.Emitter) error { return f(e.Named(ContextSource)) })
}

// Detach ends a connection at its client's request.
func (m *Manager) Detach(id, connection string) error {
	return m.with(id, connection, (*Connection).close)
}

// Drop ends a connection because its surface stops.
func (m *Manager) Drop(id, connection string) error {
	return m.with(id, connection, func(c *Connection) { c.end("shutdown") })
}

// Heartbeat records a sign of life of a connection's client.
func (m *Manager) Heartbeat(id, connection string) error {
	return m.with(id, connection, func(c *Connection) {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		c.beat = time.Now()
	})
}

func (m *Manager) with(id, connection string, f func(*Connection)) error {
	if s, ok := m.lookup(id); ok {
		s.mu.Lock()
		i := slices.IndexFunc(s.conns, func(c *Connection) bool { return c.id == connection })
		var c *Connection
		if i >= 0 {
			c = s.conns[i]
		}
		s.mu.Unlock()
		if c != nil {
			f(c)
			return nil
		}
	}
	return fmt.Errorf("session %s has no connection %s", id, connection)
}

func (c *Connection) close() { c.end("client_close") }

// end detaches once, for the first reason given.
func (c *Connection) end(reason string) {
	c.once.Do(func() {
		c.cancel()
		c.s.mu.Lock()
		c.s.conns = slices.DeleteFunc(c.s.conns, func(x *Connection) bool { return x == c })
		if len(c.s.conns) == 0 {
			c.s.liveFrom += int64(len(c.s.live))
			c.s.live = nil
		}
		c.s.touch()
		c.s.mu.Unlock()
		c.s.m.tell(func(e *bus.Emitter) error {
			_, err := bus.Publish(e, event.SessionContextDetached, event.KernelSession, event.ContextDetached{SessionID: c.s.id, ConnectionID: c.id, Reason: reason})
			return err
		})
	})
}

// connections returns the readers of a session.
func (s *Session) connections() []*Connection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.conns)
}

// silent returns the connections whose last sign of life is not after a time.
func (s *Session) silent(since time.Time) (out []*Connection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		if !c.beat.After(since) {
			out = append(out, c)
		}
	}
	return out
}

// Answerable reports whether the session has a reader that may answer asks.
func (s *Session) Answerable() bool {
	s.mu.Lock()
	conns := slices.Clone(s.conns)
	s.mu.Unlock()
	return slices.ContainsFunc(conns, func(c *Connection) bool { return c.o.Answers == nil || c.o.Answers() })
}

// shown reports whether readers see an event: all events of the session except the
// kernel's requests to plugins.
func shown(ev event.Event) bool {
	return ev.Kind != event.LLMCallDelta.Name() && (!ev.Unrecorded || canonical(ev.Kind) || event.IsExtension(ev.Kind))
}

// fanOut hands an event to the connections; mu is held. It never waits.
func (s *Session) fanOut(ev event.Event) {
	it := Item{Event: ev}
	if ev.Entry > 0 {
		it.Entry = s.latest
	}
	switch p := ev.Payload.(type) {
	case event.Delta:
		it.Offset = len(s.text)
		s.text = append(s.text, p.Content...)
	case event.DecideResponse:
		if p.Next == event.NextLLM { // the next call begins
			s.text = nil
		}
	case event.AssistantMessage, event.TurnCompleted, event.TurnFailed, event.TurnCancelled:
		s.text = nil
	}
	if len(s.conns) == 0 || s.j == nil || !shown(ev) {
		return
	}
	it.Cursor = s.cursor()
	s.forgetSent()
	s.live = append(s.live, it)
	if len(s.live) > liveItems {
		drop := len(s.live) - liveItems/2
		s.live = slices.Clone(s.live[drop:])
		s.liveFrom += int64(drop)
	}
	s.wake()
}

// forgetSent empties the live items if all connections have got them. A few places are kept: most
// items are sent before the next one comes.
func (s *Session) forgetSent() {
	end := s.liveFrom + int64(len(s.live))
	for _, c := range s.conns {
		if c.pos < end {
			return
		}
	}
	s.liveFrom = end
	if cap(s.live) > liveKept {
		s.live = nil
	}
	clear(s.live)
	s.live = s.live[:0]
}

func (s *Session) wake() {
	for _, c := range s.conns {
		select {
		case c.wakeup <- struct{}{}:
		default:
		}
	}
}

// plan is the part of a connection before it goes live.
type plan struct {
	snapshot *Snapshot
	resync   *Resync
	replay   bool
	from, to int64
	asks     []Ask
}

// greeting decides what a new connection gets first; the session's mutex is
// held.
func (c *Connection) greeting() plan {
	s, p := c.s, plan{}
	now := s.snapshot()
	if c.o.Snapshot {
		p.snapshot = &now
	}
	switch {
	case c.o.Since == nil:
		p.asks = now.Asks
	case c.o.Epoch != "" && c.o.Epoch != s.st.epoch:
		p.resync = &Resync{"epoch", now}
	case *c.o.Since > now.AsOfSeq || *c.o.Since < 0:
		p.resync = &Resync{"ahead", now}
	default:
		p.replay, p.from, p.to = true, *c.o.Since+1, now.AsOfSeq
	}
	return p
}

func (c *Connection) run(ctx context.Context, first plan) {
	defer c.s.m.conns.Done()
	defer close(c.done)
	err := c.greet(ctx, first)
	for err == nil {
		err = c.follow(ctx)
	}
	c.end("send_failed") // unless it was ended for another reason
}

func (c *Connection) send(ctx context.Context, it Item) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("send: panic: %v", r)
		}
	}()
	if err := ctx.Err(); err != nil {
		return err
	}
	if it.Event.Kind == "" && it.Entry.ID > 0 && !c.o.Entries {
		return nil
	}
	return c.o.Send(ctx, it)
}

func (c *Connection) greet(ctx context.Context, p plan) error {
	if p.snapshot != nil {
		if err := c.send(ctx, Item{Snapshot: p.snapshot, Cursor: c.cursor}); err != nil {
			return err
		}
	}
	if p.resync != nil {
		return c.send(ctx, Item{Resync: p.resync, Cursor: c.cursor})
	}
	for _, a := range p.asks {
		ev := c.own(event.ApprovalRequested.Name(), a.ApprovalRequest)
		if err := c.send(ctx, Item{Event: ev, Cursor: c.cursor}); err != nil {
			return err
		}
	}
	if !p.replay {
		return nil
	}
	n := 0
	err := c.read(p.from, p.to, func(e Entry) error {
		n++
		return c.send(ctx, Item{
			Entry:  e,
			Event:  c.own(event.SessionReplayEntry.Name(), event.ReplayEntry{SessionID: c.s.id, EntryID: e.ID, Kind: e.Kind, Payload: e.Payload}),
			Cursor: Cursor{c.cursor.Epoch, e.ID},
		})
	})
	if err != nil {
		return err
	}
	return c.send(ctx, Item{Event: c.own(event.SessionReplayDone.Name(), event.ReplayDone{SessionID: c.s.id, ConnectionID: c.id, Replayed: n}), Cursor: c.cursor})
}

// own creates an event for this connection only.
func (c *Connection) own(kind string, payload any) event.Event {
	return event.Event{ID: uuid.NewString(), Kind: kind, SessionID: event.KernelSession, Time: time.Now(), Source: ContextSource, Payload: payload}
}

// read visits entries of the session, inherited ones included.
func (c *Connection) read(from, to int64, visit func(Entry) error) error {
	if from > to {
		return nil
	}
	return c.s.Entries(from, func(e Entry) error {
		if e.ID > to {
			return fs.SkipAll
		}
		return visit(e)
	})
}

// follow waits for something new and sends it.
func (c *Connection) follow(ctx context.Context) error {
	s := c.s
	s.mu.Lock()
	if err := s.load(); err != nil {
		s.mu.Unlock()
		return err
	}
	now, end := s.cursor(), s.liveFrom+int64(len(s.live))
	if now.Epoch != c.cursor.Epoch {
		sn := s.snapshot()
		c.cursor, c.pos = now, end
		s.mu.Unlock()
		return c.send(ctx, Item{Resync: &Resync{"epoch", sn}, Cursor: now})
	}
	if c.pos < s.liveFrom { // too far behind for the live items: read the tape
		from := c.cursor.Seq + 1
		c.cursor, c.pos = now, end
		s.mu.Unlock()
		return c.read(from, now.Seq, func(e Entry) error {
			ev, _ := e.Event(s.id) // without a kind if there is none
			return c.send(ctx, Item{Event: ev, Entry: e, Cursor: Cursor{now.Epoch, e.ID}})
		})
	}
	items := append(c.items[:0], s.live[c.pos-s.liveFrom:]...)
	c.pos = end
	s.mu.Unlock()
	defer func() {
		if clear(items); cap(items) <= liveKept {
			c.items = items[:0]
		}
	}()
	for _, it := range merge(items) {
		c.cursor = it.Cursor
		if err := c.send(ctx, it); err != nil {
			return err
		}
	}
	if len(items) > 0 {
		return nil
	}
	select {
	case <-c.wakeup:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// merge joins adjacent deltas: a slow reader gets everything that it missed as one
// chunk.
func merge(items []Item) []Item {
	out := items[:0]
	for i := 0; i < len(items); i++ {
		d, ok := items[i].Event.Payload.(event.Delta)
		if !ok {
			out = append(out, items[i])
			continue
		}
		first := items[i]
		var text strings.Builder
		text.WriteString(d.Content)
		for i+1 < len(items) {
			next, ok := items[i+1].Event.Payload.(event.Delta)
			if !ok {
				break
			}
			text.WriteString(next.Content)
			i++
		}
		first.Event.Payload = event.Delta{Content: text.String()}
		first.Cursor = items[i].Cursor
		out = append(out, first)
	}
	return out
}
