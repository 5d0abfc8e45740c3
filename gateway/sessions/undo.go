package sessions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/undo"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// noteUndo is the name of the note that tells the model that its changes were undone.
const noteUndo = "undo"

// maxUndoNamed is how many files the note names.
const maxUndoNamed = 50

func (s *Service) describeUndo() {
	api.Handle(s.API, op("POST", "/v1/sessions/{session_id}/undo", "undo", auth.SessionsWrite, "Undo the last change of files by the session's agent; repeat for the one before", http.StatusOK), func(ctx context.Context, in *InSession) (*struct{ Body undo.Undone }, error) {
		done, err := s.undo(ctx, in.SessionID)
		if err != nil {
			return nil, err
		}
		return &struct{ Body undo.Undone }{done}, nil
	})
}

// undo undoes the last step of a session and tells the model, which has its changes in mind. No turn begins
// meanwhile: it would patch what it has read before.
func (s *Service) undo(ctx context.Context, id string) (done undo.Undone, err error) {
	k, _, err := s.steer(ctx, id)
	if err != nil {
		return undo.Undone{}, err
	}
	err = s.cfg.Loop.AtRest(id, k, func() error {
		done, err = s.undoAtRest(ctx, k)
		return err
	})
	return done, err
}

func (s *Service) undoAtRest(ctx context.Context, k *session.Session) (undo.Undone, error) {
	id := k.ID()
	done, err := undo.Undone{}, undo.ErrNothing
	if s.cfg.Undo != nil {
		done, err = s.cfg.Undo(ctx, id)
	}
	switch {
	case errors.Is(err, undo.ErrNothing):
		return done, api.Coded(http.StatusConflict, "nothing_to_undo", "%v", err)
	case errors.Is(err, undo.ErrChanged):
		return done, api.Coded(http.StatusConflict, "changed_since", "%v; put them back as the agent left them, or change them by hand", err)
	case errors.Is(err, undo.ErrInTheWay):
		return done, api.Coded(http.StatusConflict, "changed_since", "%v; move it away and undo again, or change the files by hand", err)
	case errors.Is(err, undo.ErrContent):
		return done, api.Coded(http.StatusConflict, "nothing_to_undo", "%v; no earlier change can be undone either: use Git, or change the files by hand", err)
	case errors.Is(err, undo.ErrOtherFolder):
		return done, api.Coded(http.StatusConflict, "other_folder", "%v; move that folder back, or change the files by hand", err)
	case errors.Is(err, undo.ErrGone):
		return done, api.Coded(http.StatusConflict, "other_folder", "%v; put it back there, and undo again", err)
	case errors.Is(err, undo.ErrUntrusted):
		return done, api.Coded(http.StatusForbidden, "workspace_not_allowed", "%v", err)
	case err != nil && done.Folder == "":
		return done, err
	}
	note := event.TurnNote{Name: noteUndo, Text: undoNote(done)}
	_, nerr := k.Note(event.Event{Kind: event.TurnNoted.Name(), SessionID: id, ID: uuid.NewString(), Time: time.Now(), Source: event.KernelSource, Payload: note}, note)
	if err != nil { // with what is undone
		err = api.Coded(http.StatusInternalServerError, "internal", "%v", err)
	}
	return done, errors.Join(err, nerr)
}

// undoNote tells the model which of its changes are undone, and which are not.
func undoNote(done undo.Undone) string {
	var back, rest []string
	for _, name := range done.Files {
		back = append(back, workspace.Shown(name)) // a command may have chosen it
	}
	for _, name := range done.Without {
		rest = append(rest, workspace.Shown(name))
	}
	for _, r := range done.Remaining {
		rest = append(rest, workspace.Shown(r.Path)+": "+workspace.Shown(r.Why))
	}
	text := "The user wanted to undo your last changes, and nothing is undone."
	if len(back) > 0 {
		text = "The user has undone your last changes. These files are as they were before:\n" + listed(back)
	}
	if len(rest) > 0 {
		text += "\nThese are not:\n" + listed(rest)
	}
	return text
}

// listed has one name a line, and how many more there are.
func listed(names []string) string {
	more := ""
	if n := len(names) - maxUndoNamed; n > 0 {
		names, more = names[:maxUndoNamed], fmt.Sprintf("\n… and %d more", n)
	}
	return strings.Join(names, "\n") + more
}
