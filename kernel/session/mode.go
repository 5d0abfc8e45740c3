package session

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/yaya-ai/yaya/kernel/event"
)

// Mode says what the agent of a session may do.
type Mode string

// The modes.
const (
	Work  Mode = "work"  // whatever rules and people allow
	Plan  Mode = "plan"  // it reads, until a person has approved its plan
	Edits Mode = "edits" // as Work, and most changes of files need no question
)

func (m Mode) known() bool { return m == Work || m == Plan || m == Edits }

// NoteMode is the note of a changed mode: {mode}.
const NoteMode = "x.session.mode"

type modeNote struct {
	Mode Mode `json:"mode"`
}

// ModeOf returns the mode of a tape's note or first anchor. Tapes of an older yaya have none.
func ModeOf(raw json.RawMessage) (Mode, bool) {
	var m modeNote
	if json.Unmarshal(raw, &m) != nil || !m.Mode.known() {
		return Work, false
	}
	return m.Mode, true
}

// Mode returns the mode of a session. A sub-agent has that of the conversation which it belongs to.
func (m *Manager) Mode(id string) (Mode, error) {
	s, err := m.Find(event.Root(id), "")
	if err != nil {
		return "", err
	}
	return s.Mode()
}

// Mode returns the mode of this session, which for a sub-agent says nothing.
func (s *Session) Mode() (Mode, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return "", err
	}
	return s.st.now(), nil
}

// SetMode sets the mode of this session. When it returns, the mode has reached the disk.
func (s *Session) SetMode(ctx context.Context, mode Mode) error {
	if !mode.known() {
		return fmt.Errorf("session %s: there is no mode %q", s.id, mode)
	}
	if was, err := s.Mode(); err != nil || was == mode {
		return err
	}
	return s.settle(ctx, NoteMode, modeNote{mode})
}

// now is the mode of a state.
func (s *state) now() Mode {
	if !s.mode.known() {
		return Work
	}
	return s.mode
}
