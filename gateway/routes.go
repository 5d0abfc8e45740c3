package gateway

import (
	"net/http"

	"github.com/yaya-ai/yaya/internal/principal"
)

// policy says who may use a route.
type policy int

const (
	public     policy = iota // whoever reaches the listener
	localOwner               // the user that runs yaya, on this machine
	bearer                   // that user, or who has a token of the configured issuer
)

// routes is every route with its policy. All of them pass the Host and Origin
// checks.
func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range []struct {
		pattern string
		policy  policy
		handler http.Handler
	}{
		{"GET /health", public, http.HandlerFunc(s.health)},
		{"/mcp", bearer, s.cfg.MCP},
		{"/mcp/{profile}", bearer, s.cfg.MCP},
		{"GET /.well-known/oauth-protected-resource", public, s.metadataHandler()},
		{"GET /.well-known/oauth-protected-resource/{path...}", public, s.metadataHandler()},
		{"GET /metrics", localOwner, s.cfg.Metrics},
		{"GET /status", localOwner, s.statusHandler()},
		{"/api/", localOwner, s.cfg.API},
		{"GET /api/sessions/{id}/events", localOwner, s.sessionsHandler()},
	} {
		if r.handler == nil {
			continue
		}
		mux.Handle(r.pattern, s.guard(r.policy, r.handler))
	}
	return s.sameSite(mux)
}

func (s *Server) statusHandler() http.Handler {
	if s.cfg.Status == nil {
		return nil
	}
	return http.HandlerFunc(s.status)
}

func (s *Server) sessionsHandler() http.Handler {
	if s.cfg.Sessions == nil {
		return nil
	}
	return http.HandlerFunc(s.sessionEvents)
}

func (s *Server) guard(p policy, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		owner := peerOf(r.Context()).owner()
		switch {
		case p == public:
		case p == bearer && (r.Header["Authorization"] != nil || !owner) && s.cfg.Tokens != nil:
			id, ok := s.authenticate(w, r)
			if !ok {
				return
			}
			r = r.WithContext(principal.With(r.Context(), id))
		case !owner:
			http.Error(w, "this belongs to the user that runs yaya on this machine", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
