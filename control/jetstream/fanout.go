package jetstream

import (
	"cmp"
	"encoding/json"

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
}

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
	f := &Fanout{conn: conn, subject: cmp.Or(subject, "yaya_fanout"), self: uuid.NewString(), log: log}
	f.sub, err = conn.Subscribe(f.subject, f.take)
	return f, err
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
		err = f.conn.Publish(f.subject, raw)
	}
	if err != nil {
		f.log.Warn().Err(err).Str("topic", topic).Str("event", event).Msg("an event does not reach other nodes")
	}
}

// Subscribe implements [control.Fanout].
func (f *Fanout) Subscribe(fn func(topic, event string, payload any)) (cancel func()) {
	return f.here.Subscribe(fn)
}

// Close ends it.
func (f *Fanout) Close() error { return f.sub.Unsubscribe() }
