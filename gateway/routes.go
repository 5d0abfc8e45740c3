package gateway

import "net/http"

// policy says who may use a route.
type policy int

const (
	public     policy = iota // whoever reaches the listener
	localOwner               // the user that runs yaya, on this machine
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
		{"/mcp", localOwner, s.cfg.MCP},
		{"/mcp/{profile}", localOwner, s.cfg.MCP},
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
		if p == localOwner && !peerOf(r.Context()).owner() {
			http.Error(w, "this belongs to the user that runs yaya on this machine", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
