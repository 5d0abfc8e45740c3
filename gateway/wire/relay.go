package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/wire/codec"
)

// The paths at which nodes ask each other.
const (
	NodeAgents = "/node/agents" // below it, whether an agent is here
	NodeTopics = "/node/topics" // takes a WebSocket of a client of another node
)

// Limits of a join that another node serves.
const (
	maxUnsaid       = 64      // messages of the client that wait until the other node takes them
	maxUnsaidSize   = 1 << 20 // bytes of them
	maxRelayedFrame = 8 << 20 // bytes; an event has one entry of a tape, and a snapshot a message
)

// Nodes leads to the topics of other nodes.
type Nodes interface {
	// Open opens a WebSocket at a path of the node that has something, for somebody whose token it is,
	// "" for the owner. has is where nodes ask each other for it. Without error, it returns nil if no
	// node that answers has it.
	Open(ctx context.Context, has, path string, who auth.Principal, token string) (ws *websocket.Conn, node string, err error)
}

// share counts what principals hold of something that there is little of.
type share struct {
	all int
	of  map[string]int
}

// take takes one, if one is left.
func (s *share) take(name string) bool {
	if s.all >= maxRelays || s.of[name] >= maxRelaysOfOne {
		return false
	}
	s.all++
	s.of[name]++
	return true
}

func (s *share) give(name string) {
	s.all--
	if s.of[name]--; s.of[name] == 0 {
		delete(s.of, name)
	}
}

// relay is a client's join of a topic that another node has. It has a WebSocket of its own to that
// node, which serves it as it serves its own clients: with what was missed, with the client's rights,
// and with a bounded queue of what the client has not read.
type relay struct {
	out chan codec.Message // what the client says, on its way

	mu      sync.Mutex
	over    bool
	unsaid  int                      // bytes of the messages on their way
	waiting map[string]codec.Message // without an answer so far, by ref
}

var (
	errTopicOver = Refuse("unmatched topic")
	errUnsaid    = Refuse("the node that has this topic does not keep up with what you send: try again")
)

// say passes a message on. It never waits.
func (r *relay) say(m codec.Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return errTopicOver
	}
	if len(r.waiting) >= maxRunning {
		return Refuse("more than %d of your requests are still running", maxRunning)
	}
	if r.unsaid > 0 && r.unsaid+len(m.Payload) > maxUnsaidSize {
		return errUnsaid
	}
	select {
	case r.out <- m:
	default:
		return errUnsaid
	}
	r.unsaid += len(m.Payload)
	if m.Ref != nil {
		m.Payload = nil
		r.waiting[*m.Ref] = m
	}
	return nil
}

// said makes room for others.
func (r *relay) said(m codec.Message) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unsaid -= len(m.Payload)
}

// answered forgets a message that has an answer.
func (r *relay) answered(ref string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, ref)
}

// end takes no more messages, and returns those that get no answer.
func (r *relay) end() map[string]codec.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
	return r.waiting
}

// joinElsewhere has another node serve a join.
func (s *Server) joinElsewhere(sub *subscription, m codec.Message, has string, since *Cursor) {
	who, token := sub.c.shown()
	err := errTopicOver
	if s.cfg.Nodes != nil && !sub.c.passed { // a node that asks for a topic of a third one was told wrong
		s.mu.Lock()
		free := s.relays.take(who.Name())
		s.mu.Unlock()
		if err = nil; !free {
			err = Refuse("%s: leave some that you do not look at", tooManyRelays)
		}
	}
	if err != nil {
		sub.refuse(m, err)
		return
	}
	m.Payload = nil
	sub.relay = &relay{out: make(chan codec.Message, maxUnsaid), waiting: map[string]codec.Message{}}
	sub.c.jobs.Go(func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.relays.give(who.Name())
		}()
		ws, node, err := s.cfg.Nodes.Open(sub.ctx, has, NodeTopics+"?vsn=2.0.0", who, token)
		switch {
		case err != nil && sub.ctx.Err() == nil:
			s.cfg.Log.Warn().Err(err).Str("topic", m.Topic).Str("node", node).Msg("a topic of another node cannot be joined")
			sub.refuse(m, Refuse("the node %s cannot be reached now: join again", node))
		case err != nil || ws == nil:
			sub.refuse(m, errTopicOver)
		default:
			sub.pass(ws, m, node, since)
		}
		for _, unanswered := range sub.relay.end() {
			sub.c.reply(unanswered, nil, Refuse("no answer has come from the node that has this topic: it may have done this"))
		}
	})
}

var tooManyRelays = fmt.Sprintf("at most %d topics of other nodes can be joined on a node, and %d by one principal", maxRelays, maxRelaysOfOne)

// refuse answers a join with an error.
func (sub *subscription) refuse(m codec.Message, err error) {
	if sub.c.unsubscribe(m.Topic, sub) != nil {
		sub.leave()
	}
	sub.c.reply(m, nil, err)
}

// pass passes messages on, in both directions, until the join ends.
func (sub *subscription) pass(ws *websocket.Conn, m codec.Message, node string, since *Cursor) {
	ws.SetReadLimit(maxRelayedFrame)
	var job sync.WaitGroup
	defer job.Wait()
	defer sub.cancel()
	job.Go(func() { // ends both directions
		<-sub.ctx.Done()
		_ = ws.Close()
	})
	job.Go(func() { sub.speak(ws, m.Topic, since) })
	err := sub.hear(ws, m)
	code := 0
	if e, ok := errors.AsType[*websocket.CloseError](err); ok {
		code = e.Code
	}
	switch {
	case err == nil: // the join has ended, and the client knows
	case code == CloseSlow:
		sub.c.s.stats.slow.Add(1)
		sub.c.q.finish(sub.c.farewell(CloseSlow, tooSlow), slowGrace)
	case code == CloseUnauthed:
		sub.fail("the node " + node + " no longer admits you: join again")
	case code == CloseTooMany:
		sub.refuse(m, Refuse("the node %s has too many joins of other nodes: leave some that you do not look at", node))
	default:
		sub.fail("the node " + node + " has gone: join again")
	}
}

var relayed = codec.Format{Arrays: true}

// speak joins at the other node, and then sends what the client says.
func (sub *subscription) speak(ws *websocket.Conn, topic string, since *Cursor) {
	var at joinPayload
	if since != nil {
		at.Since, at.Epoch = &since.Seq, since.Epoch
	}
	payload, err := json.Marshal(at)
	if err != nil { // cannot be
		payload = []byte("{}")
	}
	join := "join" // the client may not have given one
	m := codec.Message{Ref: &join, Topic: topic, Event: "phx_join", Payload: payload}
	for {
		if ws.WriteMessage(websocket.TextMessage, relayed.Body(m)) != nil {
			return // the other direction ends as well, and says why
		}
		if m.Event != "phx_join" {
			sub.relay.said(m)
		}
		select {
		case m = <-sub.relay.out:
			m.JoinRef = nil // that of the join
		case <-sub.ctx.Done():
			return
		}
	}
}

// hear passes on what the other node says. The client's pace is that of the connection: the other node
// decides who is too slow. nil means that the join has ended and the client knows.
func (sub *subscription) hear(ws *websocket.Conn, join codec.Message) error {
	for joined := false; ; {
		_, data, err := ws.ReadMessage()
		if err != nil {
			return err
		}
		m, err := relayed.Parse(data)
		if err != nil || m.Topic != join.Topic {
			continue // about the connection: auth_ok, and why it closes
		}
		var ended bool
		switch m.Event {
		case "phx_reply":
			m.JoinRef = sub.joinRef
			switch {
			case !joined: // it is answered before all else
				joined, m.Ref = true, join.Ref
				ended = !succeeded(m.Payload)
			case m.Ref != nil:
				sub.relay.answered(*m.Ref)
			}
		case "phx_error":
			var why Problem
			if json.Unmarshal(m.Payload, &why) != nil {
				why.Reason = ""
			}
			sub.fail(cmp.Or(why.Reason, "the join has ended"))
			return nil
		case "phx_close":
			m.JoinRef, m.Ref = sub.joinRef, sub.joinRef
			ended = true
		default:
			m.JoinRef, m.Ref = nil, nil
			sub.c.s.stats.delivered.Add(1)
		}
		if ended && sub.c.unsubscribe(m.Topic, sub) == nil {
			return nil // the client has left
		}
		if m.Ref != nil || m.Event != "phx_reply" {
			if err := sub.c.q.wait(sub.c.fmt.Frame(m), sub.ctx.Done()); err != nil {
				return err
			}
		}
		if ended {
			sub.leave()
			return nil
		}
	}
}

// succeeded reports whether a reply says that all is well.
func succeeded(payload []byte) bool {
	var reply struct {
		Status string `json:"status"`
	}
	return json.Unmarshal(payload, &reply) == nil && reply.Status == "ok"
}

// PassedOn returns the handler of WebSockets that other nodes open for their clients, whose principals
// they have established. The server does not count these clients as connected to this node.
func (s *Server) PassedOn() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := auth.FromContext(r.Context())
		if p.Kind != auth.Owner && p.Kind != auth.Device {
			api.Refuse(w, r, api.Detail, api.Fail(http.StatusForbidden, "this is for the owner and for devices"))
			return
		}
		if !s.all.Begin() {
			stopping(w, r)
			return
		}
		s.open(w, r, nil, nil, func(c *conn) (auth.Principal, error) {
			c.passed = true
			return p, nil
		})
	})
}

// admitPassed takes a connection in that another node has opened.
func (s *Server) admitPassed(c *conn, p auth.Principal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.passed.take(p.Name()) {
		return false
	}
	c.who = p
	s.conns[c] = struct{}{}
	return true
}

// Passed returns how many connections other nodes have opened for their clients.
func (s *Server) Passed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.passed.all
}
