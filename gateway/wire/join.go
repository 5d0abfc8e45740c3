package wire

import (
	"context"
	"encoding/json"
	"math"

	"github.com/yaya-ai/yaya/gateway/wire/codec"
)

// join is phx_join. The answer comes at once; what was missed follows, and then
// what is new, without gap or duplicate.
func (s *Server) join(c *conn, m codec.Message) {
	t := s.find(m.Topic)
	if t == nil {
		c.reply(m, nil, Refuse("unmatched topic"))
		return
	}
	var body joinPayload
	if err := json.Unmarshal(m.Payload, &body); err != nil || (body.Since != nil && *body.Since < 0) {
		c.reply(m, nil, Refuse("the payload of phx_join is {session_id?, since?, epoch?}"))
		return
	}
	if body.SessionID != nil && *body.SessionID != c.id {
		c.reply(m, nil, Refuse("session_id is that of another connection"))
		return
	}
	// Joining again replaces the join before, which is told so, as Phoenix does.
	if old := c.unsubscribe(m.Topic, nil); old != nil {
		old.leave()
		c.push(c.fmt.Frame(codec.Message{JoinRef: old.joinRef, Ref: old.joinRef, Topic: m.Topic, Event: "phx_close", Payload: []byte("{}")}), false)
	}
	if m.JoinRef == nil {
		m.JoinRef = m.Ref // vsn 1.0.0 has none in its pushes
	}
	sub := &subscription{c: c, joinRef: m.JoinRef}
	sub.ctx, sub.cancel = context.WithCancel(context.Background())
	c.mu.Lock()
	full := len(c.subs) >= maxTopics
	if !full {
		if c.subs == nil {
			c.subs = map[string]*subscription{}
		}
		sub.t = s.enlist(m.Topic, sub)
		c.subs[m.Topic] = sub
	}
	c.mu.Unlock()
	if full {
		sub.cancel()
		c.reply(m, nil, Refuse("at most %d topics can be joined", maxTopics))
		return
	}
	var since *Cursor
	if body.Since != nil {
		since = &Cursor{body.Epoch, *body.Since}
	}
	joined, err := t.Join(sub.ctx, s.client(c, sub), m.Topic, since)
	if err != nil {
		if c.unsubscribe(m.Topic, sub) != nil {
			sub.leave()
		}
		c.reply(m, nil, err)
		return
	}
	if joined.Elsewhere != "" {
		s.joinElsewhere(sub, m, joined.Elsewhere, since)
		return
	}
	if joined.Replay == nil {
		joined.After = math.MaxInt64
	}
	// After its answer, a client gets everything that is published; so if it has nothing
	// to catch up with, it is answered and goes live at once.
	answer := func() { c.reply(m, joined.Response, nil) }
	if _, live := sub.tryLive(joined, joined.After, answer); live {
		return
	}
	answer()
	c.jobs.Go(func() {
		if err := sub.catchUp(joined); err != nil && sub.ctx.Err() == nil {
			s.cfg.Log.Error().Err(err).Str("topic", m.Topic).Msg("a client cannot catch up")
			sub.fail("what was missed cannot be read")
		}
	})
}

// joinPayload is the payload of phx_join; what else is in it is for nobody.
type joinPayload struct {
	SessionID *string `json:"session_id,omitempty"` // of this connection
	Since     *int64  `json:"since,omitempty"`      // what the client has seen
	Epoch     string  `json:"epoch,omitempty"`
}

// begin lets a subscription have what is published from now on; the topic's mutex
// is held.
func (sub *subscription) begin(first func() []Event) {
	if first != nil {
		for _, e := range first() {
			enc := encoder{topic: sub.t.name, event: e}
			if frame, err := enc.frame(sub.c.fmt); err == nil {
				sub.c.push(frame, true)
			}
		}
	}
	sub.live = true
}

// catchUp sends what was missed until there is nothing more, and goes live in the
// moment in which that is so.
func (sub *subscription) catchUp(j Joined) error {
	after := j.After
	for {
		upTo, live := sub.tryLive(j, after, nil)
		if live {
			return nil
		}
		err := j.Replay(sub.ctx, after, upTo, func(e Event) error {
			if err := sub.ctx.Err(); err != nil {
				return err
			}
			enc := encoder{topic: sub.t.name, event: e}
			frame, err := enc.frame(sub.c.fmt)
			if err != nil {
				return err
			}
			return sub.c.q.wait(frame, sub.ctx.Done())
		})
		if err != nil {
			return err
		}
		after = upTo
	}
}

// tryLive goes live if nothing was missed behind after, having called first unless
// that is nil; else it says up to where.
func (sub *subscription) tryLive(j Joined, after int64, first func()) (upTo int64, live bool) {
	if j.Still != nil {
		j.Still.Lock()
		defer j.Still.Unlock()
	}
	sub.t.mu.Lock()
	defer sub.t.mu.Unlock()
	upTo = max(sub.t.last, j.Last)
	if after < upTo {
		return upTo, false
	}
	if after != math.MaxInt64 {
		sub.seen = after
	}
	if first != nil {
		first()
	}
	sub.begin(j.Live)
	return upTo, true
}

// fail tells a client that its join has ended and that it may join again.
func (sub *subscription) fail(reason string) {
	if sub.c.unsubscribe(sub.t.name, sub) == nil {
		return
	}
	sub.leave()
	payload, err := json.Marshal(Problem{Reason: reason})
	if err != nil { // cannot be
		payload = []byte("{}")
	}
	sub.c.push(sub.c.fmt.Frame(codec.Message{JoinRef: sub.joinRef, Ref: sub.joinRef, Topic: sub.t.name, Event: "phx_error", Payload: payload}), false)
}
