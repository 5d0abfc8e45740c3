package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Repair opens every session that a crash has left in a turn, which repairs it, and visits
// it. It looks at the last bytes of those tapes of which the index does not say that nothing
// is open, once the index is up to date: after an unclean end, those that have changed since
// it was written. It skips tapes that another process has open. A session that somebody
// opens before is repaired then.
func (m *Manager) Repair(ctx context.Context, visit func(*Session)) error {
	if err := m.exact(ctx); err != nil {
		return err
	}
	m.index.recon.Lock()
	errs := slices.Clone(m.index.unread)
	m.index.recon.Unlock()
	for _, r := range m.index.find(func(r *row) bool { return !r.settled }) {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		name := tapeFile(r.key.tape())
		if size, is := m.settledTape(name); is {
			m.index.settled(r.key, size)
			continue
		}
		h, _, err := m.header(name)
		if errors.Is(err, errEmpty) || errors.Is(err, fs.ErrNotExist) {
			continue // never used, or gone since
		}
		var s *Session
		if err == nil {
			s, err = m.Find(h.SessionID, h.Workspace)
		}
		if err == nil {
			visit(s)
		}
		if err != nil && !errors.Is(err, journal.ErrLocked) && !errors.Is(err, ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// settledTape reports whether a tape of that size needs no repair: it ends with the end of
// a turn, or never had one.
func (m *Manager) settledTape(name string) (size int64, is bool) {
	const tail = 4 << 10
	f, err := m.cfg.FS.Open(name, journal.ReadOnly)
	if err != nil {
		return 0, false
	}
	defer func() { _ = f.Close() }()
	size, err = f.Size()
	if err != nil || size == 0 {
		return size, err == nil
	}
	buf := make([]byte, min(size, tail))
	if _, err := f.ReadAt(buf, size-int64(len(buf))); err != nil {
		return size, false
	}
	lines := bytes.Split(bytes.TrimSuffix(buf, []byte("\n")), []byte("\n"))
	last := lines[len(lines)-1]
	for _, end := range []string{event.TurnWasCompleted.Name(), event.TurnHasFailed.Name(), event.TurnWasCancelled.Name()} {
		if bytes.Contains(last, []byte(`"name":"`+end+`"`)) {
			return size, buf[len(buf)-1] == '\n'
		}
	}
	return size, buf[len(buf)-1] == '\n' && strings.Contains(string(last), `"name":"`+anchorStart+`"`)
}

// withdrawn is the end of an ask in the form that the approval runtime records.
type withdrawn struct {
	event.ApprovalCancelled
	ToolName string `json:"tool_name"`
	CallID   string `json:"call_id"`
}

// afterCrash is the [event.TurnFailed.Kind] of a turn that a crash has ended.
const afterCrash = "interrupted"

// repair ends everything that a crash left open, before anybody can attach: calls
// get an interrupted result, asks are withdrawn, and the turn fails. The lock on
// the tape is the lease under which it runs; mu is held.
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
	return note(event.TurnHasFailed.Name(), event.TurnFailed{TurnID: s.st.turn, Error: "yaya stopped while the turn was running", Kind: afterCrash})
}
