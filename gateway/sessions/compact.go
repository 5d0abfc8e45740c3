package sessions

import (
	"context"
	"errors"
	"net/http"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/kernel/loop"
)

type inCompact struct {
	InSession
	Body *struct {
		Keep string `json:"keep,omitempty" maxLength:"2000" doc:"what the summary must keep, in the user's words"`
	}
}

func (s *Service) describeCompact() {
	api.Handle(s.API, op("POST", "/v1/sessions/{session_id}/compact", "compactSession", auth.SessionsWrite, "Summarize the earlier part of the history for the model; ends with the request", http.StatusOK), func(ctx context.Context, in *inCompact) (*struct{ Body loop.Compacted }, error) {
		keep := ""
		if in.Body != nil {
			keep = in.Body.Keep
		}
		done, err := s.compact(ctx, in.SessionID, keep)
		return &struct{ Body loop.Compacted }{done}, err
	})
}

// compact summarizes the history of a session on demand. A client that goes away ends it.
func (s *Service) compact(ctx context.Context, id, keep string) (loop.Compacted, error) {
	_, rec, err := s.steer(ctx, id)
	if err != nil {
		return loop.Compacted{}, err
	}
	if rec.Status == Completed {
		return loop.Compacted{}, completed()
	}
	f, err := s.feed(id) // so that its readers hear of it
	if err != nil {
		return loop.Compacted{}, err
	}
	defer f.Leave()
	done, err := s.cfg.Loop.Compact(ctx, id, keep)
	switch {
	case err == nil:
		return done, nil
	case errors.Is(err, loop.ErrNothingToCompact):
		return done, api.Coded(http.StatusConflict, "nothing_to_compact", "%v", loop.ErrNothingToCompact)
	case errors.Is(err, loop.ErrBudget):
		return done, api.Coded(http.StatusConflict, "budget", "%v", err)
	case errors.Is(err, loop.ErrDenied):
		return done, api.Coded(http.StatusForbidden, "denied", "%v", err)
	case errors.Is(err, loop.ErrInterrupted), errors.Is(err, loop.ErrSuperseded), ctx.Err() != nil:
		return done, api.Coded(http.StatusConflict, "canceled", "%v; the history is as it was", err)
	case errors.Is(err, loop.ErrSummary):
		return done, api.Coded(http.StatusBadGateway, "summary_failed", "%v; the history is as it was: try again, or choose another model", err)
	}
	return done, err
}
