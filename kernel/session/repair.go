package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Repair opens every session whose tape does not end with the end of a turn,
// which repairs it. It looks at the last bytes of each tape only; a tape that
// another process works on is left to that.
func (m *Manager) Repair(ctx context.Context) error {
	var errs []error
	err := m.tapes(func(name string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if m.settledTape(name) {
			return nil
		}
		h, _, err := m.header(name)
		if errors.Is(err, errEmpty) {
			return nil // never used
		}
		if err == nil {
			_, err = m.Find(h.SessionID, h.Workspace)
		}
		if err != nil && !errors.Is(err, journal.ErrLocked) {
			errs = append(errs, err)
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// settledTape reports whether a tape ends in a way that leaves nothing to
// repair: with the end of a turn, or without ever a turn.
func (m *Manager) settledTape(name string) bool {
	const tail = 4 << 10
	f, err := m.cfg.FS.Open(name, journal.ReadOnly)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	size, err := f.Size()
	if err != nil || size == 0 {
		return err == nil
	}
	buf := make([]byte, min(size, tail))
	if _, err := f.ReadAt(buf, size-int64(len(buf))); err != nil {
		return false
	}
	lines := bytes.Split(bytes.TrimSuffix(buf, []byte("\n")), []byte("\n"))
	last := lines[len(lines)-1]
	for _, end := range []string{event.TurnWasCompleted.Name(), event.TurnHasFailed.Name(), event.TurnWasCancelled.Name()} {
		if bytes.Contains(last, []byte(`"name":"`+end+`"`)) {
			return buf[len(buf)-1] == '\n'
		}
	}
	return buf[len(buf)-1] == '\n' && strings.Contains(string(last), `"name":"`+anchorStart+`"`)
}

// withdrawn is the end of an ask as the approval runtime keeps it.
type withdrawn struct {
	event.ApprovalCancelled
	ToolName string `json:"tool_name"`
	CallID   string `json:"call_id"`
}

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
		if err := note(event.ApprovalWithdrawn.Name(), withdrawn{event.ApprovalCancelled{ID: a.ID, Reason: "shutdown"}, a.ToolName, a.CallID}); err != nil {
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
