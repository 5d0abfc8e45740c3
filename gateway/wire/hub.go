package wire

import (
	"context"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/wire/codec"
)

// Limits of one connection.
const (
	maxTopics  = 256  // that it has joined
	maxRunning = 1024 // requests that are still running
)

// Cursor is a place in a topic's durable events. A client that comes back says
// the last one that it has seen.
type Cursor struct {
	Epoch string `json:"epoch"`
	Seq   int64  `json:"seq"`
}

// Event is one event of a topic.
type Event struct {
	Name    string
	Payload any // becomes a JSON object
	// Seq is the sequence number of a durable event in its topic; 0 for a volatile one.
	Seq int64
	// Soon lets the event wait a little for others.
	Soon bool
}

// Topic implements the topics of one kind. Its methods are called concurrently.
type Topic interface {
	// Join reports whether a client may join, and returns its reply. since is what
	// the client has seen, nil if it starts from the beginning.
	Join(ctx context.Context, c Client, topic string, since *Cursor) (Joined, error)
	// Push handles the messages of a client, in the order in which it sent them. It
	// returns work that takes long as a [Later], which runs beside.
	Push(ctx context.Context, c Client, topic, event string, payload json.RawMessage) (response any, err error)
}

// Guarded is a [Topic] that says who may be there now: a client that loses the right
// is sent away at once.
type Guarded interface {
	Allows(p auth.Principal, topic string) error
}

// recheck sends a device's clients away from topics that they may no longer have.
func (s *Server) recheck(device string) {
	for _, c := range s.connections() {
		who := c.principal()
		if who.ID != device {
			continue
		}
		c.mu.Lock()
		subs := maps.Clone(c.subs)
		c.mu.Unlock()
		for name, sub := range subs {
			if g, ok := s.find(name).(Guarded); ok && g.Allows(who, name) != nil {
				sub.fail("the right to it was taken")
			}
		}
	}
}

// Later is a response that takes its time.
type Later func(ctx context.Context) (response any, err error)

// Joined is the answer to a join.
type Joined struct {
	Response any // of the reply; nil for {}
	// Replay visits the durable events after a cursor up to one, in order; nil if
	// the topic has none, or the client needs none.
	Replay func(ctx context.Context, after, upTo int64, visit func(Event) error) error
	After  int64 // Seq of what the client has seen
	Last   int64 // Seq of the last event that there is
	// Live are events that go to this client before the first live one: what is
	// under way. It must not block.
	Live func() []Event
	// Elsewhere, unless "", says that this node does not have the topic, and where nodes ask each
	// other for it. Nothing else is set then.
	Elsewhere string
	// Still, unless nil, is held while Live is called and the client goes live: the
	// lock under which the topic's events are published.
	Still sync.Locker
}

// Client is who joins and pushes.
type Client struct {
	auth.Principal
	ConnectionID string
	// Send sends an event to this client alone, if it has joined the topic.
	Send func(e Event)
}

type handler struct {
	prefix string // of the topic, or the whole of it
	exact  bool
	topic  Topic
}

// Handle makes t serve the topic of that name, or those that start with it if it
// ends in a colon. It has to be called before the server serves.
func (s *Server) Handle(name string, t Topic) {
	s.handlers = append(s.handlers, handler{name, !strings.HasSuffix(name, ":"), t})
}

func (s *Server) find(topic string) Topic {
	for _, h := range s.handlers {
		if topic == h.prefix || (!h.exact && strings.HasPrefix(topic, h.prefix) && len(topic) > len(h.prefix)) {
			return h.topic
		}
	}
	return nil
}

// topic is one that somebody has joined.
type topic struct {
	s    *Server
	name string

	mu   sync.Mutex
	last int64 // Seq of the last durable event
	subs map[*subscription]struct{}
}

// subscription is one client's place in a topic.
type subscription struct {
	t       *topic
	c       *conn
	joinRef *string
	ctx     context.Context // a base context: of what the client pushes to the topic, until it leaves
	cancel  context.CancelFunc
	relay   *relay // for the reader; nil for a topic that this node has

	// Guarded by the topic.
	live bool  // it gets what is published
	seen int64 // Seq of the last durable event that it was sent in catching up
}

// Publish sends an event to everybody who has joined a topic. It never waits.
// Events of one topic have to be published one after the other.
func (s *Server) Publish(name string, e Event) {
	s.mu.Lock()
	t := s.topics[name]
	s.mu.Unlock()
	if t == nil {
		return
	}
	t.publish(e)
}

// Subscribers returns how many have joined a topic.
func (s *Server) Subscribers(name string) int {
	s.mu.Lock()
	t := s.topics[name]
	s.mu.Unlock()
	if t == nil {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.subs)
}

func (t *topic) publish(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.Seq > 0 {
		t.last = e.Seq
	}
	if len(t.subs) == 0 {
		return
	}
	enc := encoder{topic: t.name, event: e}
	for sub := range t.subs {
		if sub.live && (e.Seq == 0 || e.Seq > sub.seen) {
			frame, err := enc.frame(sub.c.fmt)
			if err != nil {
				t.s.cfg.Log.Error().Err(err).Str("topic", t.name).Msg("an event could not be written")
				return
			}
			sub.c.push(frame, e.Soon)
			t.s.stats.delivered.Add(1)
		}
	}
}

// encoder encodes an event once for each format that somebody wants.
type encoder struct {
	topic   string
	event   Event
	payload []byte
	frames  [codec.Formats][]byte
}

func (e *encoder) frame(f codec.Format) ([]byte, error) {
	i := f.Index()
	if e.frames[i] != nil {
		return e.frames[i], nil
	}
	if e.payload == nil {
		var err error
		if e.payload, err = json.Marshal(e.event.Payload); err != nil {
			return nil, err
		}
	}
	e.frames[i] = f.Frame(codec.Message{Topic: e.topic, Event: e.event.Name, Payload: e.payload})
	return e.frames[i], nil
}

// stats are the numbers that /metrics shows.
type stats struct{ slow, delivered atomic.Int64 }

// Stats tells how many connections there are, how many were closed because they
// did not keep up, and how many events were delivered.
func (s *Server) Stats() (connections int, slow, delivered int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns) - s.passed.all, s.stats.slow.Load(), s.stats.delivered.Load()
}

func (c *conn) subscription(topic string) *subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.subs[topic]
}

// unsubscribe takes a subscription out; only, unless it is nil, says which.
func (c *conn) unsubscribe(topic string, only *subscription) *subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	sub := c.subs[topic]
	if sub == nil || (only != nil && sub != only) {
		return nil
	}
	delete(c.subs, topic)
	return sub
}

// leave ends a subscription: nothing is delivered after it has returned, and the
// topic goes with the last.
func (sub *subscription) leave() {
	sub.cancel()
	t := sub.t
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.subs, sub)
	if len(t.subs) == 0 && t.s.topics[t.name] == t {
		delete(t.s.topics, t.name)
	}
}

func (s *Server) client(c *conn, sub *subscription) Client {
	return Client{Principal: c.principal(), ConnectionID: c.id, Send: func(e Event) {
		if sub == nil {
			return
		}
		enc := encoder{topic: sub.t.name, event: e}
		if frame, err := enc.frame(c.fmt); err == nil && sub.ctx.Err() == nil {
			c.push(frame, e.Soon)
		}
	}}
}

// enlist puts a subscription into its topic, which it keeps in existence.
func (s *Server) enlist(name string, sub *subscription) *topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.topics[name]
	if t == nil {
		t = &topic{s: s, name: name, subs: map[*subscription]struct{}{}}
		s.topics[name] = t
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.subs[sub] = struct{}{}
	return t
}

// Restart says that the numbers of a topic's durable events start over, from seq on.
func (s *Server) Restart(name string, seq int64) {
	s.mu.Lock()
	t := s.topics[name]
	s.mu.Unlock()
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = seq
	for sub := range t.subs {
		sub.seen = 0
	}
}

// End ends a topic for everybody: for good (phx_close), or so that clients join
// again (phx_error).
func (s *Server) End(name, reason string, forGood bool) {
	s.mu.Lock()
	t := s.topics[name]
	s.mu.Unlock()
	if t == nil {
		return
	}
	t.mu.Lock()
	subs := make([]*subscription, 0, len(t.subs))
	for sub := range t.subs {
		subs = append(subs, sub)
	}
	t.mu.Unlock()
	for _, sub := range subs {
		if !forGood {
			sub.fail(reason)
			continue
		}
		if sub.c.unsubscribe(name, sub) != nil {
			sub.leave()
			sub.c.push(sub.c.fmt.Frame(codec.Message{JoinRef: sub.joinRef, Ref: sub.joinRef, Topic: name, Event: "phx_close", Payload: []byte("{}")}), false)
		}
	}
}

// closeTopics forgets all topics, after the last client has gone.
func (s *Server) closeTopics() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.topics)
}
