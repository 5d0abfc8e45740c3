package loop

import (
	"fmt"
	"slices"

	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// history returns the model's view of the conversation.
func (t *turn) history() ([]event.Message, error) {
	if t.session == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.own.Messages(), nil
	}
	msgs, err := t.session.Messages()
	if err == nil {
		err = t.landed()
	}
	if err != nil {
		return nil, &stepError{"storage", err}
	}
	return msgs, nil
}

// landed returns once the messages that have joined the turn are on the disk. Until then
// nothing may act on them: after a loss of power the client sends them again.
func (t *turn) landed() error {
	t.mu.Lock()
	newest := t.newest
	t.mu.Unlock()
	if newest.Entry <= t.safe {
		return nil
	}
	if err := t.l.landed(t.ctx, t.session, newest.ClientID, newest.Entry); err != nil {
		return err
	}
	t.safe = newest.Entry
	return nil
}

// observe keeps the history of a turn without a tape.
func (t *turn) observe(ev event.Event) {
	if t.l.cfg.Sessions != nil {
		return
	}
	if e, ok := session.EntryOf(ev); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.own.Apply(e)
	}
}

// closing waits for the end of a turn that is about to end, and returns false for others.
// Clients learn of the end a moment before the turn makes room for the next one, and
// whoever goes on at once is not refused for it.
func (t *turn) closing() bool {
	t.mu.Lock()
	ending := t.ending
	t.mu.Unlock()
	if ending {
		<-t.done
	}
	return ending
}

// join publishes a message into the turn, unless it is about to end. The model
// sees it at its next call.
func (t *turn) join(publish func() (event.Event, error)) (ev event.Event, joined bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending {
		return event.Event{}, false, nil
	}
	if ev, err = publish(); err != nil {
		return event.Event{}, false, err
	}
	t.steers++
	t.newest = ev
	if t.session == nil {
		if e, ok := session.EntryOf(ev); ok {
			t.own.Apply(e)
		}
	}
	return ev, true, nil
}

// said reports whether the model has answered every message.
func (t *turn) said() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answered && t.seen == t.steers
}

// unseen returns a history for a model that takes no pictures. Those of tools have a name in the
// text of their results.
func unseen(history []event.Message) []event.Message {
	var out []event.Message
	for i, m := range history {
		if len(m.Images) == 0 {
			continue
		}
		if out == nil {
			out = slices.Clone(history)
		}
		m.Content += fmt.Sprintf("\n[%s not shown: this model takes no pictures]", worded.Count(len(m.Images), "picture is", "pictures are"))
		m.Images = nil
		out[i] = m
	}
	if out == nil {
		return history
	}
	return out
}
