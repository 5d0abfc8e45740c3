package tapes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"
)

// maxRow bounds what is said of a session, in bytes.
const maxRow = 16 << 10

// Row says of a session what a list of those shows whose node does not answer.
type Row struct {
	Session   string          `json:"session"`
	Node      string          `json:"node"` // that owned it when this was said
	Workspace string          `json:"workspace,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"` // of the caller; nil for a session of which nothing was said
	At        time.Time       `json:"-"`              // when it was said
}

// Describe says what a session is. It does not wait; what is said last counts.
func (t *Tapes) Describe(id string, data json.RawMessage) {
	if len(data) > maxRow {
		return
	}
	s := t.session(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.row, s.rowWanted = data, true
	if s.run != "" {
		s.send()
	}
}

// sendRow says what the session is.
func (s *session) sendRow() error {
	s.mu.Lock()
	r, wanted := Row{Session: s.id, Node: s.t.o.Node, Workspace: s.workspace, Data: s.row}, s.rowWanted
	s.rowWanted = false
	s.mu.Unlock()
	if !wanted {
		return nil
	}
	raw, err := json.Marshal(r)
	if err == nil {
		ctx, cancel := context.WithTimeout(s.t.ctx, answerTime)
		defer cancel()
		_, err = s.t.js.PublishMsg(ctx, &nats.Msg{Subject: rowsOf + token(s.id), Data: raw}, js.WithExpectStream(state), js.WithRetryAttempts(0))
	}
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.rowWanted = true
	}
	return err
}

// inheritRow says of a session that was taken over what its node has said.
func (s *session) inheritRow(ctx context.Context) error {
	msg, err := s.t.last(ctx, state, rowsOf+token(s.id))
	if err != nil || msg == nil {
		return err
	}
	var r Row
	if err := json.Unmarshal(msg.data, &r); err != nil {
		return fmt.Errorf("what is said of session %s cannot be read: %w", s.id, err)
	}
	s.t.Describe(s.id, r.Data)
	return nil
}

// Rows returns what nodes have said of their sessions.
func (t *Tapes) Rows(ctx context.Context, nodes []string) (out []Row, err error) {
	err = t.read(ctx, state, rowsOf+"*", 0, func(m stored) error {
		var r Row
		if json.Unmarshal(m.data, &r) == nil && slices.Contains(nodes, r.Node) { // what cannot be read is another version's
			r.At = m.at
			out = append(out, r)
		}
		return nil
	})
	return out, err
}

// forgetRow has a session that was deleted no longer listed.
func (s *session) forgetRow(ctx context.Context) error {
	st, err := s.t.stream(state)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	return st.Purge(ctx, js.WithPurgeSubject(rowsOf+token(s.id)))
}
