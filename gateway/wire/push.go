package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/wire/codec"
)

// handle handles one message of a client.
func (s *Server) handle(c *conn, m codec.Message) {
	switch {
	case m.Topic == "phoenix":
		s.phoenix(c, m)
	case m.Event == "phx_join":
		s.join(c, m)
	case m.Event == "phx_leave":
		if sub := c.unsubscribe(m.Topic, nil); sub != nil {
			sub.leave()
		}
		c.reply(m, nil, nil)
	case strings.HasPrefix(m.Event, "phx_"):
		c.reply(m, nil, Refuse("%s is not for clients", m.Event))
	default:
		s.push(c, m)
	}
}

// phoenix is the topic of the connection itself.
func (s *Server) phoenix(c *conn, m codec.Message) {
	switch m.Event {
	case "heartbeat":
		c.reply(m, nil, nil)
	case "auth": // a refreshed token (AU-18)
		var body tokenPush
		err := json.Unmarshal(m.Payload, &body)
		if err == nil {
			var p auth.Principal
			if p, err = s.cfg.Authority.VerifyToken(body.Token); err == nil && p.ID == c.principal().ID {
				c.become(p, body.Token)
				c.reply(m, nil, nil)
				return
			}
		}
		c.reply(m, nil, Refuse("the token is not acceptable"))
	default:
		c.reply(m, nil, Refuse("there is no event %.64q on this topic", m.Event))
	}
}

type tokenPush struct {
	Token string `json:"device_token"`
}

// push is an event that a client sends to a topic that it has joined.
func (s *Server) push(c *conn, m codec.Message) {
	sub := c.subscription(m.Topic)
	if sub == nil { // WS-21
		c.reply(m, nil, Refuse("unmatched topic"))
		return
	}
	if m.JoinRef == nil {
		m.JoinRef = sub.joinRef
	} else if sub.joinRef != nil && *m.JoinRef != *sub.joinRef { // of a join before
		c.reply(m, nil, Refuse("unmatched topic"))
		return
	}
	payload := append(json.RawMessage(nil), m.Payload...) // the frame's buffer is used again
	if sub.relay != nil {
		m.Payload = payload
		if err := sub.relay.say(m); err != nil {
			c.reply(m, nil, err)
		}
		return
	}
	t := s.find(m.Topic)
	if t == nil {
		c.reply(m, nil, Refuse("unmatched topic"))
		return
	}
	response, err := t.Push(sub.ctx, s.client(c, sub), m.Topic, m.Event, payload)
	later, ok := response.(Later)
	if err != nil || !ok {
		c.reply(m, response, err)
		return
	}
	if c.running.Add(1) > maxRunning { // WS-23
		c.running.Add(-1)
		c.reply(m, nil, Refuse("more than %d of your requests are still running", maxRunning))
		return
	}
	m.Payload = nil
	c.jobs.Go(func() {
		defer c.running.Add(-1)
		response, err := later(sub.ctx)
		c.reply(m, response, err)
	})
}

// ErrServerToClient is the reply to a push on a topic on which only the server speaks.
var ErrServerToClient = Refuse("only the server speaks on this topic")

var errNoSuchEvent = errors.New("no such event")

// NoSuchEvent returns the reply to an event that a topic does not know.
func NoSuchEvent(event string) error {
	return &Problem{Reason: fmt.Sprintf("%v: %.64q", errNoSuchEvent, event)}
}

// Problem is an error that a client gets to read, as the response of a reply with
// status "error".
type Problem struct {
	Reason string `json:"reason"`
	Code   int    `json:"code,omitempty"`
}

func (p *Problem) Error() string { return p.Reason }

// Refuse returns a [Problem].
func Refuse(format string, args ...any) error { return &Problem{Reason: fmt.Sprintf(format, args...)} }

// problem returns the problem that a client gets for an error.
func (s *Server) problem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if errors.Is(err, auth.ErrForbidden) {
		return &Problem{Reason: "forbidden"}
	}
	id := uuid.NewString()
	s.cfg.Log.Error().Err(err).Str("id", id).Msg("a message could not be handled")
	return &Problem{Reason: "internal error " + id}
}
