package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/gateway/wire/codec"
)

// Join describes what a [Channel] does with what it gets.
type Join struct {
	// Since is the client's last position; nil begins with new events.
	Since *Cursor
	// OnEvent gets every event, in order, one at a time. It must not wait for the
	// client, and not block for long: who does not keep up is closed, and resumes.
	OnEvent func(Event)
	// OnJoined gets the response to every join: the first, and those after a
	// connection was lost. resync says that events were missed and the response is
	// the state.
	OnJoined func(response json.RawMessage, resync bool)
	// OnClosed is called when the server has closed the topic permanently, or has refused
	// the join.
	OnClosed func(err error)
}

// Channel is one topic that was joined. It is joined again whenever the connection
// was lost, where it was.
type Channel struct {
	c     *Client
	topic string
	j     Join

	ref string // of the join; guarded by the client's mutex

	mu    sync.Mutex
	at    *Cursor
	epoch string // of the topic's cursors, where events carry an index alone
	ok    bool
	err   error
	first chan struct{} // closed when the first join was answered
	once  sync.Once
}

// Join joins a topic. It returns at once; see [Channel.Joined].
func (c *Client) Join(topic string, j Join) *Channel {
	ch := &Channel{c: c, topic: topic, j: j, at: j.Since, first: make(chan struct{})}
	c.mu.Lock()
	c.channels[topic] = ch
	cn := c.conn
	c.mu.Unlock()
	if cn != nil {
		_ = ch.join(cn) // if it fails, so does the reader, and all are joined again
	}
	return ch
}

// keepJoined has a channel joined on the next connection, even one that was refused.
func (c *Client) keepJoined(ch *Channel) {
	c.mu.Lock()
	c.channels[ch.topic] = ch
	c.mu.Unlock()
}

// join sends phx_join.
func (ch *Channel) join(cn *conn) error {
	payload := map[string]any{"session_id": cn.Session}
	ch.mu.Lock()
	if ch.at != nil {
		payload["since"], payload["epoch"] = ch.at.Seq, ch.at.Epoch
	}
	ch.mu.Unlock()
	raw, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	ch.c.mu.Lock()
	ch.ref = ch.c.ref()
	ref := ch.ref
	ch.c.mu.Unlock()
	return cn.send(cn.fmt.Body(codec.Message{JoinRef: &ref, Ref: &ref, Topic: ch.topic, Event: "phx_join", Payload: raw}))
}

func (ch *Channel) isJoin(ref string) bool {
	ch.c.mu.Lock()
	defer ch.c.mu.Unlock()
	return ch.ref == ref
}

// joined takes in the answer to a join.
func (ch *Channel) joined(status string, response json.RawMessage) {
	if status != "ok" {
		ch.end(refused(response))
		return
	}
	var r struct {
		Cursor *Cursor `json:"cursor"`
		Resync string  `json:"resync"`
	}
	_ = json.Unmarshal(response, &r) // a topic without cursors has none
	ch.mu.Lock()
	if r.Cursor != nil {
		ch.epoch = r.Cursor.Epoch
		if ch.at == nil || r.Resync != "" {
			ch.at = r.Cursor
		}
	}
	ch.ok = true
	ch.mu.Unlock()
	ch.once.Do(func() { close(ch.first) })
	if ch.j.OnJoined != nil {
		ch.j.OnJoined(response, r.Resync != "")
	}
}

// end is when the topic is no more ours.
func (ch *Channel) end(err error) {
	ch.c.mu.Lock()
	if ch.c.channels[ch.topic] == ch {
		delete(ch.c.channels, ch.topic)
	}
	ch.c.mu.Unlock()
	ch.mu.Lock()
	ch.err = err
	ch.mu.Unlock()
	ch.once.Do(func() { close(ch.first) })
	if ch.j.OnClosed != nil {
		ch.j.OnClosed(err)
	}
}

func (ch *Channel) closed() { ch.end(fmt.Errorf("%s was closed by the server", ch.topic)) }

// event takes in an event.
func (ch *Channel) event(m codec.Message) {
	var p struct {
		Cursor *Cursor `json:"cursor"`
		Index  int64   `json:"raft_log_index"`
		Reason string  `json:"reason"`
	}
	_ = json.Unmarshal(m.Payload, &p) // a payload that is not an object has no cursor
	ch.mu.Lock()
	at := p.Cursor
	if at == nil && p.Index > 0 && ch.epoch != "" {
		at = &Cursor{ch.epoch, p.Index}
	}
	// Gateways of earlier versions send updates behind changes with higher indexes.
	if at != nil && (ch.at == nil || ch.at.Epoch != at.Epoch || ch.at.Seq < at.Seq) {
		ch.at = at
	}
	if m.Event == "resync" {
		ch.resync(m.Payload)
	}
	ch.mu.Unlock()
	if ch.j.OnEvent != nil {
		ch.j.OnEvent(Event{Topic: m.Topic, Name: m.Event, Payload: m.Payload, Cursor: at})
	}
}

// resync goes on from the state that a resync carries; mu is held.
func (ch *Channel) resync(payload json.RawMessage) {
	var p struct {
		Current struct {
			Epoch string `json:"epoch"`
			Seq   int64  `json:"as_of_seq"`
		} `json:"current"`
	}
	if json.Unmarshal(payload, &p) == nil && p.Current.Epoch != "" {
		ch.at = &Cursor{p.Current.Epoch, p.Current.Seq}
	}
}

// Cursor returns where the client is, nil before the topic has said so.
func (ch *Channel) Cursor() *Cursor {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.at
}

// Joined waits until the topic was joined for the first time, and returns why it
// was not.
func (ch *Channel) Joined(ctx context.Context) error {
	select {
	case <-ch.first:
		ch.mu.Lock()
		defer ch.mu.Unlock()
		return ch.err
	case <-ctx.Done():
		return ctx.Err()
	case <-ch.c.done:
		return ErrClosed
	}
}

// Push sends an event and waits for the answer, which goes into out unless that is
// nil. An error is a [*Refusal], wraps [ErrUnavailable], or is that of ctx.
func (ch *Channel) Push(ctx context.Context, event string, payload, out any) error {
	res, err := ch.c.push(ctx, ch, event, payload)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(res, out)
}

// Leave leaves the topic.
func (ch *Channel) Leave(ctx context.Context) error {
	_, err := ch.c.push(ctx, ch, "phx_leave", struct{}{})
	ch.c.mu.Lock()
	defer ch.c.mu.Unlock()
	if ch.c.channels[ch.topic] == ch {
		delete(ch.c.channels, ch.topic)
	}
	return err
}

// Invoke has a skill done, by whichever kernel has it. The client has to have
// joined agent:lobby and kernel, the topic of a kernel. A dead letter with the
// invocation's id rejects it and names the reason.
func (c *Client) Invoke(ctx context.Context, kernel *Channel, skill string, payload any, timeout time.Duration) (json.RawMessage, error) {
	id := "req_" + rand.Text()
	dead := make(chan error, 1)
	c.mu.Lock()
	c.invoked[id] = dead
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.invoked, id)
		c.mu.Unlock()
	}()
	type result struct {
		out json.RawMessage
		err error
	}
	ctx, cancel := context.WithCancel(ctx)
	got := make(chan result, 1)
	go func() {
		var r struct {
			Result json.RawMessage `json:"result"`
		}
		err := kernel.Push(ctx, "skill.invoke", map[string]any{"skill": skill, "payload": payload, "timeout_ms": timeout.Milliseconds(), "request_id": id}, &r)
		got <- result{r.Result, err}
	}()
	select {
	case r := <-got:
		cancel()
		return r.out, r.err
	case err := <-dead:
		cancel()
		<-got
		return nil, err
	}
}

// rejected is skill_error.
func (c *Client) rejected(payload json.RawMessage) {
	var p struct {
		RequestID string `json:"request_id"`
		Handler   string `json:"handler_id"`
		Reason    string `json:"reason"`
	}
	if json.Unmarshal(payload, &p) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if w := c.invoked[p.RequestID]; w != nil {
		select {
		case w <- &Refusal{Reason: p.Reason + ": " + p.Handler}:
		default:
		}
	}
}
