package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/kernel/event"
)

// NoteModel is the entry with the model that was chosen for a session.
const NoteModel = "x.session.model"

type modelNote struct {
	Model string `json:"model"`
}

// ChosenModel returns the model of a [NoteModel].
func ChosenModel(data json.RawMessage) (model string, ok bool) {
	var n modelNote
	return n.Model, json.Unmarshal(data, &n) == nil
}

// SetModel chooses the model of this session, as ID of a provider or ID/MODEL; "" is the active
// one. The choice is on the disk when it returns. The session does not know whether there is such a
// model.
func (s *Session) SetModel(ctx context.Context, model string) error {
	return s.settle(ctx, NoteModel, modelNote{model})
}

// settle notes a choice of a person about this session. When it returns, the choice is on the disk.
func (s *Session) settle(ctx context.Context, kind string, choice any) error {
	if err := s.m.hold(s.id, s.workspace); err != nil {
		return err
	}
	entry, err := s.Note(event.Event{Kind: kind, SessionID: s.id, ID: uuid.NewString(), Time: time.Now(), Source: event.KernelSource, Payload: choice}, choice)
	if err != nil {
		return err
	}
	return s.Sync(ctx, entry)
}

// Model returns the model that was chosen for this session, "" if none was.
func (s *Session) Model() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return "", err
	}
	return s.st.model, nil
}
