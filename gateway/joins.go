package gateway

import (
	"context"
	"errors"
	"net/http"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/gateway/api"
)

// Joins answers nodes that ask to join the cluster, as [nodes.Nodes] does.
type Joins interface {
	Answer(ctx context.Context, request []byte) ([]byte, error)
}

// JoinPath is where a node asks to join.
const JoinPath = "/cluster/join"

// JoinBody is the body of POST /cluster/join, and of its answer. It is sealed: see package nodes.
type JoinBody struct {
	Sealed []byte `json:"sealed"`
}

func (s *Server) ifCluster(h http.HandlerFunc) http.Handler {
	if s.cfg.Joins == nil {
		return nil
	}
	return h
}

// join is POST /cluster/join.
func (s *Server) join(w http.ResponseWriter, r *http.Request) {
	var body JoinBody
	if err := api.Decode(r, 2*nodes.MaxJoin, &body); err != nil {
		s.refuse(w, r, err)
		return
	}
	addr := Address(r)
	if wait := s.cfg.Attempts.Blocked(addr); wait > 0 {
		s.tooMany(w, r, wait)
		return
	}
	answer, err := s.cfg.Joins.Answer(r.Context(), body.Sealed)
	switch {
	case err == nil:
		w.Header().Set("Cache-Control", "no-store")
		api.Write(w, http.StatusOK, JoinBody{answer})
	case errors.Is(err, nodes.ErrRefused):
		s.cfg.Attempts.Fail(addr)
		s.deny(w, r, http.StatusForbidden, "%v", nodes.ErrRefused)
	case errors.Is(err, nodes.ErrTaken):
		s.deny(w, r, http.StatusConflict, "%v", err)
	case errors.Is(err, control.ErrUnavailable): // why is not for strangers
		s.cfg.Log.Error().Err(err).Msg("a node could not join")
		s.deny(w, r, http.StatusServiceUnavailable, "nothing can be changed now")
	default:
		s.deny(w, r, http.StatusBadRequest, "%v", err)
	}
}
