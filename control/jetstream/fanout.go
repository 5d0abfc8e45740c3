package jetstream

import (
	"cmp"
	"encoding/json"
	"errors"
	"sync"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/control"
)

// Fanout is the [control.Fanout] of several nodes, over NATS without JetStream. Subscribers of the
// node that publishes get the payload itself, at once; those of others get it as a
// [json.RawMessage]. An event that NATS cannot carry (1 MiB, or what its servers allow) reaches
// only the former.
type Fanout struct {
	here    control.Loopback
	conn    *nats.Conn
	subject string
	self    string
	sub     *nats.Subscription
	log     zerolog.Logger
	out     chan []byte   // events on their way: a server that does not read holds up nobody
	over    chan struct{} // closed by Close
	sender  sync.WaitGroup
}

// maxOut is how many events wait until they are sent. Later ones are lost.
const maxOut = 1024

var _ control.Fanout = (*Fanout)(nil)

// carried is an event on its way.
type carried struct {
	From    string          `json:"from"`
	Topic   string          `json:"topic"`
	Event   string          `json:"event"`
	Payload json.RawMessage `json:"payload"`
}

// NewFanout returns a fan-out over a subject; default "yaya_fanout".
func NewFanout(conn *nats.Conn, subject string, log zerolog.Logger) (_ *Fanout, err error) {
	f := &Fanout{conn: conn, subject: cmp.Or(subject, "yaya_fanout"), self: uuid.NewString(), log: log, out: make(chan []byte, maxOut), over: make(chan struct{})}
	if f.sub, err = conn.Subscribe(f.subject, f.take); err != nil {
		return nil, err
	}
	f.sender.Go(f.send)
	return f, nil
}

// send sends events until Close.
func (f *Fanout) send() {
	for {
		select {
		case raw := <-f.out:
			if err := f.conn.Publish(f.subject, raw); err != nil && !errors.Is(err, nats.ErrConnectionReconnecting) && !errors.Is(err, nats.ErrReconnectBufExceeded) {
				f.log.Warn().Err(err).Msg("an event does not reach other nodes")
			}
		case <-f.over:
			return
		}
	}
}

func (f *Fanout) take(m *nats.Msg) {
	var c carried
	if err := json.Unmarshal(m.Data, &c); err != nil {
		f.log.Warn().Err(err).Msg("an event of another node cannot be read")
		return
	}
	if c.From != f.self {
		f.here.Publish(c.Topic, c.Event, c.Payload)
	}
}

// Publish implements [control.Fanout].
func (f *Fanout) Publish(topic, event string, payload any) {
	f.here.Publish(topic, event, payload)
	raw, err := json.Marshal(payload)
	if err == nil {
		raw, err = json.Marshal(carried{f.self, topic, event, raw})
	}
	if err == nil {
		select {
		case f.out <- raw:
		default:
			err = errors.New("too many events wait")
		}
	}
	if err != nil {
		f.log.Warn().Err(err).Str("topic", topic).Str("event", event).Msg("an event does not reach other nodes")
	}
}

// Subscribe implements [control.Fanout].
func (f *Fanout) Subscribe(fn func(topic, event string, payload any)) (cancel func()) {
	return f.here.Subscribe(fn)
}

// Close sends what waits, and ends it.
func (f *Fanout) Close() error {
	close(f.over)
	f.sender.Wait()
	for len(f.out) > 0 {
		_ = f.conn.Publish(f.subject, <-f.out) // it may be lost
	}
	return f.sub.Unsubscribe()
}
