package session

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/kernel/event"
)

// repair ends what a crash left open, before anybody can attach: calls get the
// result that they were interrupted, asks are withdrawn, and the turn has
// failed. The lock on the tape is the lease under which it runs; mu is held.
func (s *Session) repair() error {
	if s.st.turn == "" && len(s.st.asks) == 0 {
		return nil
	}
	note := func(kind string, data any) error {
		raw, err := json.Marshal(data)
		if err != nil {
			return err
		}
		_, err = s.append(KindEvent, Note{Name: kind, Data: raw}, Meta{Event: uuid.NewString()})
		return err
	}
	for _, a := range append([]Ask(nil), s.st.asks...) {
		if err := note(event.ApprovalWithdrawn.Name(), event.ApprovalCancelled{ID: a.ID, Reason: "shutdown"}); err != nil {
			return err
		}
	}
	for _, id := range append([]string(nil), s.st.calls...) {
		if _, err := s.append(KindToolResult, ToolResult{ToolCallID: id, Error: interrupted}, Meta{Event: uuid.NewString()}); err != nil {
			return err
		}
	}
	if s.st.turn == "" {
		return nil
	}
	return note(event.TurnHasFailed.Name(), event.TurnFailed{TurnID: s.st.turn, Error: "yaya stopped while the turn was running", Kind: "interrupted"})
}
