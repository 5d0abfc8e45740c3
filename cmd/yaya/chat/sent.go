package chat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/screen"
)

// unsent is a message that was not sent: it goes back into the input.
type unsent struct {
	session, text string
	command       bool // of the shell
	err           error
	key           string // of a message that may have arrived
}

// say sends a message. While a turn runs, the message waits for its end, unless it steers the
// turn.
func (m *model) say(text, delivery string) action {
	if delivery == "" {
		delivery = "queue"
	}
	if m.errand != nil && m.errand.sends || m.errand == nil && len(m.ran[m.id]) > 0 || len(mentions(text)) > 0 {
		return m.sayWith("sending the message", text, delivery, func(context.Context) (string, error) { return text, nil })
	}
	id := m.id
	key, again := m.keyOf(text)
	m.sending = append(m.sending, unsent{session: id, text: text, key: key})
	return func() error {
		defer func() { m.send(delivered{key}) }()
		err := m.api.deliver(m.ctx, id, key, []Part{{Type: "text", Text: text}}, delivery)
		if err != nil && !known(err, again) && m.ctx.Err() == nil {
			m.send(unsent{session: id, text: text, err: err, key: key})
		}
		return nil //nolint:nilerr // the message goes back into the input, with the error
	}
}

// delivered is the message that the sending of a message has ended, one way or the other.
type delivered struct{ key string }

// waiting renders the messages that are being sent: without a connection that takes a while.
func (m *model) waiting() (out []string) {
	for _, u := range m.sending {
		if u.session != m.id {
			continue
		}
		lines := screen.Prose(u.text+"\n(waits to be sent)", m.room())
		for i := range lines {
			lines[i] = screen.Paint(screen.Faint, lines[i])
		}
		out = append(out, m.beside("you", m.palette.Accent, lines)...)
	}
	return out
}

// keyOf returns the id of a message: that of the last one if that had the same text and may have arrived
// although its sending failed. Any other message ends the doubt: who sends the same words later means
// another message.
func (m *model) keyOf(typed string) (key string, again bool) {
	key = newMessage()
	if u := m.unsure; u.session == m.id && u.text == typed {
		key, again = u.key, true
	}
	m.unsure = unsent{}
	return key, again
}

// known reports whether an error says that a message that was sent again has arrived before, with another
// delivery or with attachments of other names.
func known(err error, again bool) bool {
	refused, ok := errors.AsType[*Error](err)
	return ok && again && refused.Code == "idempotency_conflict"
}

// arrived ends the doubt about a message when it is among the events of its session: it is not sent again.
func (m *model) arrived(events []Event) {
	u := m.unsure
	if u.key == "" || u.session != m.id {
		return
	}
	for _, ev := range events {
		var d struct {
			Message struct {
				ID string `json:"id"`
			} `json:"message"`
		}
		if ev.Type != "message_added" || json.Unmarshal(ev.Data, &d) != nil || d.Message.ID != u.key {
			continue
		}
		m.unsure = unsent{}
		if m.input.Value() == u.text {
			m.input.Reset()
			m.say1("the message has arrived after all")
		}
		return
	}
}

// newMessage returns the id of a new message.
func newMessage() string { return "msg_" + strings.ToLower(rand.Text()) }

// deliver sends a message, several times if yaya cannot be reached: the same id means the same message.
func (c *Client) deliver(ctx context.Context, session, id string, parts []Part, delivery string) (err error) {
	for try := range 5 {
		if try > 0 {
			select {
			case <-time.After(time.Duration(try) * time.Second):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		err = c.Say(ctx, session, id, parts, delivery)
		if refused, ok := errors.AsType[*Error](err); err == nil || (ok && refused.Status < 500) {
			break
		}
	}
	return err
}

// takeBack puts a message that was not sent into the input, or where Ctrl+Y finds it; that of another
// session waits until the user is there again.
func (m *model) takeBack(u unsent) {
	if errors.Is(u.err, context.Canceled) {
		u.err = errors.New("stopped; the message was not sent")
	}
	if u.key != "" {
		m.unsure = u
	}
	switch {
	case u.session != m.id:
		m.back[u.session] = u
		m.complain(fmt.Errorf("a message to the session %s was not sent, and is in its input: %w", u.session, u.err))
	case m.input.Value() == "":
		m.restore(u)
		m.complain(u.err)
	default:
		m.killed = u.text
		m.complain(fmt.Errorf("%w; Ctrl+Y brings the message back", u.err))
	}
}

// restore puts a message that was not sent into the empty input.
func (m *model) restore(u unsent) {
	m.input.SetValue(u.text)
	m.answers = false
	m.bang = u.command
}
