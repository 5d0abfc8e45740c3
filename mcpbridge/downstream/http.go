package downstream

import (
	"net/http"
	"strconv"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// ServeHTTP implements [http.Handler]: the MCP endpoint. Earlier handlers check access, Host
// and Origin; this one refuses a request without a caller.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.endpoint(w, r, tool.OriginMCP)
}

// CommandLine returns the endpoint for the calls that the owner types: their origin is
// the command line, and nobody is asked about them. It refuses everybody else.
func (s *Server) CommandLine() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.endpoint(w, r, tool.OriginCLI) })
}

// PassedOn serves a request of another node of the cluster, about the servers that the caller is
// limited to, and passes nothing on to a third one.
func (s *Server) PassedOn(w http.ResponseWriter, r *http.Request, who tool.Caller) {
	if r.Method != http.MethodPost || r.Header.Get(mcp.HeaderSessionID) != "" || who.Principal == "" || who.Via == "" || len(who.Servers) == 0 {
		notAllowed(w)
		return
	}
	s.post(w, r, who, tool.OriginNode)
}

// endpoint serves the requests of one origin.
func (s *Server) endpoint(w http.ResponseWriter, r *http.Request, origin tool.Origin) {
	var who tool.Caller
	ok := s.cfg.Caller != nil
	if ok {
		who, ok = s.cfg.Caller(r)
	}
	if !ok || who.Principal == "" {
		s.cfg.Log.Error().Str("method", r.Method).Msg("refused an MCP request without an established caller")
		http.Error(w, "the caller of this request is not established", http.StatusForbidden)
		return
	}
	if origin == tool.OriginCLI && who.Principal != tool.Owner {
		s.cfg.Log.Warn().Str("principal", who.Principal).Msg("an MCP request was refused: only the owner calls from the command line")
		http.Error(w, "this is for the commands of the user that runs yaya", http.StatusForbidden)
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, who, origin)
	case http.MethodGet, http.MethodDelete:
		if next := s.sessionElsewhere(r); next != nil {
			next.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodDelete {
			s.delete(w, r, who)
			return
		}
		if who.IsServer() { // such a client gets no unsolicited messages (see narrow)
			notAllowed(w)
			return
		}
		s.get(w, r, who)
	default:
		notAllowed(w)
	}
}

func notAllowed(w http.ResponseWriter) {
	w.Header().Set("Allow", "POST, GET, DELETE")
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
}

// refuse writes a JSON-RPC error for the request id, or for no particular request.
func refuse(w http.ResponseWriter, status int, id []byte, code int, format string, args ...any) {
	write(w, status, jsonrpc.AppendError(nil, id, fail(code, format, args...)))
}

func write(w http.ResponseWriter, status int, body ...[]byte) {
	h := w.Header()
	h["Content-Type"] = contentJSON
	h["X-Content-Type-Options"] = nosniff
	if len(body) > 1 {
		h["Content-Length"] = []string{strconv.Itoa(parts(body).size())}
	}
	w.WriteHeader(status)
	_ = parts(body).writeTo(w, http.NewResponseController(w)) // a client that went away gets nothing
}

var (
	contentJSON = []string{"application/json"}
	contentSSE  = []string{"text/event-stream"}
	nosniff     = []string{"nosniff"}
)

// status is that of the response: the modern era wants some errors visible in it.
func (x *exchange) status() int {
	if !x.modern || x.refused == nil {
		return http.StatusOK
	}
	code := x.refused.Code
	if x.refused.Raw != nil { // a server's own words
		code = jsonrpc.ParseError(x.refused.Raw).Code
	}
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION,
		jsonrpc.CodeInvalidRequest, jsonrpc.CodeInvalidParams, jsonrpc.CodeParse:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

func (s *Server) delete(w http.ResponseWriter, r *http.Request, who tool.Caller) {
	if mcp.IsModernProtocol(r.Header.Get(mcp.HeaderProtocolVersion)) {
		w.Header().Set("Allow", "POST")
		http.Error(w, "this protocol version has no sessions", http.StatusMethodNotAllowed)
		return
	}
	c, _, ok := s.opened(w, r, who)
	if !ok {
		return
	}
	if !s.drop(c.token) {
		status, why := s.noSession()
		http.Error(w, why, status)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
