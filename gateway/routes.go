package gateway

import (
	"crypto/rand"
	"net/http"
	"runtime/debug"

	"github.com/yaya-ai/yaya/auth"
)

// where the user that runs yaya is let in without a token.
type where int

const (
	nowhere where = iota
	socket        // over the Unix socket
	local         // and from this machine
)

// access says who may use a route; what is not said is denied (R7).
type access struct {
	public   bool       // whoever reaches the listener
	owner    where      // the user that runs yaya
	device   auth.Scope // devices with that scope; "" lets none in
	external bool       // who has a token of the configured issuer
	vital    bool       // is served even when there is no memory for anything else
}

// route is one route and who may use it.
type route struct {
	pattern string
	access  access
	handler http.Handler // nil leaves the route out
}

// table is every route with its policy. All of them pass the Host and Origin
// checks. SECURITY.md shows the same table.
func (s *Server) table() []route {
	return []route{
		{"GET /health", access{public: true, vital: true}, http.HandlerFunc(s.health)},
		{"POST /auth/register", access{public: true}, s.ifAuthority(s.register)},
		{"POST /auth/refresh", access{public: true}, s.ifAuthority(s.refresh)},
		{"GET /.well-known/jwks.json", access{public: true}, s.ifAuthority(s.jwks)},
		{"GET /.well-known/oauth-protected-resource", access{public: true}, s.metadataHandler()},
		{"GET /.well-known/oauth-protected-resource/{path...}", access{public: true}, s.metadataHandler()},
		{"GET /ws", access{public: true}, s.cfg.Wire}, // and then token and challenge, always
		{"GET /socket/websocket", access{public: true}, s.cfg.Wire},
		{"GET /{$}", access{public: true}, s.cfg.Page}, // files alone: what they show is asked for with rights
		{"GET /ui/{file...}", access{public: true}, s.cfg.Page},
		{"POST /cli/run", access{owner: socket}, s.cfg.CLI}, // what yaya's own commands ask for
		{"POST /cli/mcp", access{owner: socket}, s.cfg.CLI},
		{"POST /cli/sessions/{id}/{what}", access{owner: socket}, s.cfg.CLI},
		{"POST /rpc", access{owner: socket, device: auth.AgentsRead}, s.cfg.RPC}, // each method asks for more
		{"GET /agents", access{owner: socket, device: auth.AgentsRead}, s.cfg.Agents},
		{"GET /agents/{id}", access{owner: socket, device: auth.AgentsRead}, s.cfg.Agents},
		{"/mcp", access{owner: local, device: auth.ToolsCall, external: true}, s.cfg.MCP},
		{"/mcp/{profile}", access{owner: local, device: auth.ToolsCall, external: true}, s.cfg.MCP},
		{"GET /metrics", access{owner: local, device: auth.MetricsRead, vital: true}, s.cfg.Metrics},
		{"GET /status", access{owner: local, device: auth.AgentsRead, vital: true}, s.statusHandler()},
		{"/api/", access{owner: local, device: auth.SessionsRead}, s.cfg.API}, // nothing is there
		{"GET /api/openapi.json", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"GET /api/docs", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"GET /api/me", access{owner: local, device: auth.SessionsRead}, s.cfg.API},
		{"GET /api/setup", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"GET /api/cluster", access{owner: local, device: auth.AgentsRead}, s.cfg.API},
		{"GET /api/metrics", access{owner: local, device: auth.MetricsRead}, s.cfg.API},
		{"GET /api/audit", access{owner: local, device: auth.AuditRead}, s.cfg.API},
		{"GET /api/traffic", access{owner: local, device: auth.AuditRead}, s.cfg.API}, // bodies: the owner alone
		{"GET /api/traffic/events", access{owner: local, device: auth.AuditRead}, s.cfg.API},
		{"GET /api/traffic/daily", access{owner: local, device: auth.AuditRead}, s.cfg.API},
		{"GET /api/traffic/{id}", access{owner: local, device: auth.AuditRead}, s.cfg.API},
		{"GET /api/config", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"GET /api/settings", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"GET /api/config/{key}", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"PATCH /api/config/{key}", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"DELETE /api/config/{key}", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"GET /api/doctor", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"GET /api/sandbox", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"GET /api/plugins", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"PATCH /api/plugins/{name}", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"DELETE /api/plugins/{name}", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"POST /api/plugins/install", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"GET /api/llm-providers", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"POST /api/llm-providers", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"PATCH /api/llm-providers/active", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"PATCH /api/llm-providers/{id}", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"DELETE /api/llm-providers/{id}", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"POST /api/llm-providers/{id}/test", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"GET /api/mcp/servers", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"POST /api/mcp/servers", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"PUT /api/mcp/servers/{name}", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"PATCH /api/mcp/servers/{name}", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"DELETE /api/mcp/servers/{name}", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"POST /api/mcp/servers/{name}/restart", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"POST /api/mcp/servers/{name}/sandbox", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"GET /api/mcp/servers/{name}/logs", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"GET /api/mcp/servers/{name}/logs/events", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"GET /api/mcp/import", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"POST /api/mcp/import", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"GET /api/mcp/changes", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"POST /api/mcp/changes/{id}/apply", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"DELETE /api/mcp/changes/{id}", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"GET /api/mcp/quarantine", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"POST /api/mcp/quarantine/{name}/approve", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"GET /api/tools", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"POST /api/tools/{name}/call", access{owner: local, device: auth.ToolsCall}, s.cfg.API}, // and approvals:answer
		{"GET /api/tools/artifacts/{id}", access{owner: local, device: auth.ToolsCall}, s.cfg.API},
		{"GET /api/approvals", access{owner: local, device: auth.SessionsRead}, s.cfg.API},
		{"POST /api/approvals/{id}", access{owner: local, device: auth.ApprovalsAnswer}, s.cfg.API},
		{"GET /api/folders", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"GET /api/folders/look", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"POST /api/folders", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"DELETE /api/folders", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"GET /api/devices", access{owner: local, device: auth.DevicesRead}, s.cfg.API},
		{"POST /api/devices/invite", access{owner: local, device: auth.DevicesApprove}, s.cfg.API},
		{"POST /api/devices/approve", access{owner: local, device: auth.DevicesApprove}, s.cfg.API},
		{"POST /api/devices/reject", access{owner: local, device: auth.DevicesApprove}, s.cfg.API},
		{"POST /api/devices/rotate-keys", access{owner: local, device: auth.DevicesManage}, s.cfg.API},
		{"POST /api/devices/{id}/revoke", access{owner: local, device: auth.DevicesManage}, s.cfg.API},
		{"PUT /api/devices/{id}/scopes", access{owner: local, device: auth.DevicesManage}, s.cfg.API},
		{"GET /api/secrets", access{owner: socket}, s.cfg.API},
		{"PUT /api/secrets/{name}", access{owner: socket}, s.cfg.API},
		{"DELETE /api/secrets/{name}", access{owner: socket}, s.cfg.API},
		{"POST /api/reload", access{owner: local, device: auth.ConfigWrite}, s.cfg.API},
		{"GET /api/notices", access{owner: local, device: auth.ConfigRead}, s.cfg.API},
		{"GET /api/tokens", access{owner: local, device: auth.DevicesRead}, s.cfg.API},
		{"POST /api/tokens", access{owner: local, device: auth.DevicesManage}, s.cfg.API},
		{"DELETE /api/tokens/{name}", access{owner: local, device: auth.DevicesManage}, s.cfg.API},
		{"GET /api/live", access{owner: local}, s.cfg.Live},                 // devices use /ws
		{"/v1/", access{owner: local, device: auth.SessionsRead}, s.cfg.V1}, // nothing is there
		{"GET /v1/openapi.json", access{owner: local, device: auth.SessionsRead}, s.cfg.V1},
		{"GET /v1/docs", access{owner: local, device: auth.SessionsRead}, s.cfg.V1},
		{"GET /v1/sessions", access{owner: local, device: auth.SessionsRead}, s.cfg.V1},
		{"POST /v1/sessions", access{owner: local, device: auth.SessionsWrite}, s.cfg.V1},
		{"GET /v1/sessions/{id}", access{owner: local, device: auth.SessionsRead}, s.cfg.V1},
		{"PATCH /v1/sessions/{id}", access{owner: local, device: auth.SessionsWrite}, s.cfg.V1},
		{"GET /v1/sessions/{id}/{what}", access{owner: local, device: auth.SessionsRead}, s.cfg.V1},
		{"GET /v1/sessions/{id}/{what}/{name}", access{owner: local, device: auth.SessionsRead}, s.cfg.V1},
		{"POST /v1/sessions/{id}/{what}", access{owner: local, device: auth.SessionsWrite}, s.cfg.V1},
		{"POST /v1/sessions/{id}/turns/{turn}/retry", access{owner: local, device: auth.SessionsWrite}, s.cfg.V1},
		{"PUT /v1/sessions/{id}/queue", access{owner: local, device: auth.SessionsWrite}, s.cfg.V1},
		{"POST /v1/sessions/{id}/approve", access{owner: local, device: auth.ApprovalsAnswer}, s.cfg.V1},
		{"GET /api/sessions/{id}/events", access{owner: local, device: auth.SessionsRead}, s.sessionsHandler()},
	}
}

func (s *Server) routes() http.Handler {
	mux := http.NewServeMux()
	for _, r := range s.table() {
		if r.handler == nil {
			continue
		}
		h := s.guard(r.access, r.handler)
		if !r.access.vital {
			h = s.load.guard(h)
		}
		mux.Handle(r.pattern, h)
	}
	return s.recovered(s.timed(s.sameSite(mux)))
}

// recovered answers for a handler that panics: with an id that the log has, too,
// and nothing else (HT-22, R37).
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
			id := "req_" + rand.Text()
			s.cfg.Log.Error().Str("request_id", id).Str("path", r.URL.Path).Interface("panic", v).Bytes("stack", debug.Stack()).Msg("a handler has panicked")
			deny(w, r, http.StatusInternalServerError, "internal error, request id "+id)
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
