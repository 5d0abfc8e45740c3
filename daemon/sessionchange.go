package daemon

import (
	"context"
	"fmt"

	"github.com/yaya-ai/yaya/gateway/sessions"
)

// SessionRequest is how a command wants a session changed.
type SessionRequest struct {
	Workspace string `json:"workspace,omitempty"` // if the id exists in several
	Child     string `json:"child,omitempty"`     // of a fork
	Discard   bool   `json:"discard,omitempty"`   // of a reset: keep nothing
}

// SessionAnswer is the result.
type SessionAnswer struct {
	Path string `json:"path,omitempty"` // of the tape in the archive
	Kept bool   `json:"kept,omitempty"` // a deleted tape, until no fork reads it
}

// changeSession forks, resets, archives or deletes a session of the running yaya.
func changeSession(ctx context.Context, v1 *sessions.Service, id, what string, req SessionRequest) (done SessionAnswer, err error) {
	switch what {
	case "fork":
		_, err = v1.Fork(ctx, id, req.Child)
	case "reset":
		_, done.Path, err = v1.Reset(ctx, id, !req.Discard)
	case "archive":
		done.Path, err = v1.Archive(id)
	case "delete":
		done.Kept, err = v1.Delete(ctx, id)
	default:
		err = fmt.Errorf("a session cannot be changed by %q", what)
	}
	return done, err
}
