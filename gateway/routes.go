package gateway

import (
	"math"
	"net/http"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
)

// table is every route with its policy: those of the listener itself, and those of the
// APIs. All of them pass the Host and Origin checks. SECURITY.md has the same table.
func (s *Server) table() []api.Route {
	cli := api.OverSocket()
	mcp := api.Access{Owner: api.Local, Device: auth.ToolsCall, External: true}
	vital := func(a api.Access) api.Access {
		a.Vital = true
		return a
	}
	own := []api.Route{
		{Pattern: "GET /health", Access: vital(api.Public()), Handler: http.HandlerFunc(s.health)},
		{Pattern: "POST /auth/register", Access: api.Public(), Note: "a code, or somebody's approval", Handler: s.ifAuthority(s.register)},
		{Pattern: "POST /auth/refresh", Access: api.Public(), Note: "a device token", Handler: s.ifAuthority(s.refresh)},
		{Pattern: "POST " + JoinPath, Access: api.Public(), Note: "an invitation; only nodes of a cluster serve it", Handler: s.ifCluster(s.join)},
		{Pattern: "GET /.well-known/jwks.json", Access: api.Public(), Handler: s.ifAuthority(s.jwks)},
		{Pattern: "GET /.well-known/oauth-protected-resource", Access: api.Public(), Handler: s.metadataHandler()},
		{Pattern: "GET /.well-known/oauth-protected-resource/{path...}", Access: api.Public(), Handler: s.metadataHandler()},
		{Pattern: "GET /ws", Access: api.Public(), Note: "a token and a signature, in the first frame", Handler: s.cfg.Wire},
		{Pattern: "GET /socket/websocket", Access: api.Public(), Note: "a token and a signature, in the first frame", Handler: s.cfg.Wire},
		{Pattern: "GET /{$}", Access: api.Public(), Note: "files without data", Style: api.Text, Handler: s.cfg.Page},
		{Pattern: "GET /ui/{file...}", Access: api.Public(), Note: "files without data", Style: api.Text, Handler: s.cfg.Page},
		{Pattern: "POST /cli/{path...}", Access: cli, Note: "for yaya's own commands", Handler: s.cfg.CLI},
		{Pattern: "POST /cli/mcp", Access: cli, Note: "for yaya's own commands", Style: api.Text, Handler: s.cfg.CLI},
		{Pattern: "GET /cli/{path...}", Access: cli, Note: "for yaya's own commands", Handler: s.cfg.CLI},
		{Pattern: "GET /debug/pprof/{profile...}", Access: cli, Note: "profiles of the Go runtime", Style: api.Text, Handler: s.cfg.Profiles},
		{Pattern: "/mcp", Access: mcp, Style: api.Text, Handler: tried(s.cfg.MCP)},
		{Pattern: "/mcp/{profile}", Access: mcp, Style: api.Text, Handler: tried(s.cfg.MCP)},
		{Pattern: "GET /metrics", Access: vital(api.For(auth.MetricsRead)), Handler: s.cfg.Metrics},
		{Pattern: "GET /status", Access: vital(api.For(auth.AgentsRead)), Handler: s.statusHandler()},
		{Pattern: "GET /api/live", Access: api.Access{Owner: api.Local}, Note: "devices use `/ws`", Handler: s.cfg.Live},
		{Pattern: "GET /api/sessions/{id}/events", Access: api.For(auth.SessionsRead), Handler: s.sessionsHandler()},
	}
	own = slices.DeleteFunc(own, func(r api.Route) bool { return r.Handler == nil }) // it is left out
	for i := range own {
		if own[i].Style == nil {
			own[i].Style = api.Detail
		}
	}
	rest := api.Route{Pattern: "/", Access: vital(api.Public()), Style: api.Detail}
	return slices.Concat(own, s.cfg.Routes, []api.Route{rest})
}

// routes makes the handler of the listener.
func (s *Server) routes() http.Handler {
	s.routed = api.NewTable(s.table(), func(r api.Route) http.Handler {
		h := s.guard(r.Access, r.Handler)
		if !r.Access.Vital {
			h = s.load.guard(h)
		}
		return h
	})
	s.checked = s.sameSite(s.routed)
	return s.always(s.checked)
}

// always wraps the handler with what is done for every request.
func (s *Server) always(next http.Handler) http.Handler {
	return s.logged(s.moved(unsniffed(s.dated(s.recovered(s.timed(next))))))
}

// staleHeader has how old an answer may be, in seconds, while this node does not hear of other nodes' changes.
const staleHeader = "Yaya-Stale"

// youngest is the age from which on answers say it: nodes look for changes once a second.
const youngest = 2 * time.Second

// dated has answers say how old they may be.
func (s *Server) dated(next http.Handler) http.Handler {
	if s.cfg.Age == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if age := s.cfg.Age(); age == math.MaxInt64 { // since this process runs, it has heard of nobody
			w.Header().Set(staleHeader, "unknown")
		} else if age >= youngest {
			w.Header().Set(staleHeader, strconv.Itoa(int(age.Seconds())))
		}
		next.ServeHTTP(w, r)
	})
}

// logged logs each request at its end, at level debug. It does not know the status: a writer
// that did would hide what handlers do with the connection.
func (s *Server) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e := s.cfg.Log.Debug()
		if !e.Enabled() {
			next.ServeHTTP(w, r)
			return
		}
		began := time.Now()
		next.ServeHTTP(w, r)
		if id := w.Header().Get(api.RequestIDHeader); id != "" {
			e = e.Str("request_id", id)
		}
		e.Str("method", r.Method).Str("path", r.URL.Path).Dur("ms", time.Since(began)).Msg("a request has ended")
	})
}

var nosniff = []string{"nosniff"} // nobody writes to it

// unsniffed has browsers take every answer for what its type says.
func unsniffed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Content-Type-Options"] = nosniff
		next.ServeHTTP(w, r)
	})
}

// deny refuses a request in the style of the route that it is for.
func (s *Server) deny(w http.ResponseWriter, r *http.Request, status int, format string, args ...any) {
	s.refuse(w, r, api.Fail(status, format, args...))
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, f *api.Failure) {
	api.Refuse(w, r, s.routed.Style(r), f)
}

// recovered answers for a handler that panics: with an id that the log has, too,
// and nothing else.
func (s *Server) recovered(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it, too
				panic(v)
			}
			id := api.Identified(w, r)
			s.cfg.Log.Error().Str("request_id", id).Str("path", r.URL.Path).Interface("panic", v).Bytes("stack", debug.Stack()).Msg("a handler has panicked")
			s.deny(w, r, http.StatusInternalServerError, "internal error, request id %s", id)
		}()
		next.ServeHTTP(w, r)
	})
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

func (s *Server) ifAuthority(h http.HandlerFunc) http.Handler {
	if s.cfg.Authority == nil {
		return nil
	}
	return h
}
