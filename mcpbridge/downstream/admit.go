package downstream

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// shown finds the profile of a request. If it reports false, it has written the response.
func (s *Server) shown(w http.ResponseWriter, r *http.Request, msg *jsonrpc.Message, who tool.Caller) (*profile, bool) {
	name := r.PathValue("profile")
	p, err := s.profile(name, who)
	switch {
	case err == nil:
		return p, true
	case errors.Is(err, ErrNoProfile):
		refuse(w, http.StatusNotFound, msg.ID, jsonrpc.CodeInvalidRequest, "%v %q; the profiles are %s", ErrNoProfile, clip(name), s.profileNames(who))
	case errors.Is(err, errNotYours):
		s.cfg.Log.Warn().Str("principal", who.Principal).Str("profile", name).Msg("refused an MCP request: the profile is not for this principal")
		refuse(w, http.StatusForbidden, msg.ID, jsonrpc.CodeInvalidRequest, "the profile %q is not for %s: use /mcp, or ask its owner to add you to the profile", clip(name), clip(who.Principal))
	default:
		s.cfg.Log.Error().Err(err).Msg("refused an MCP request")
		refuse(w, http.StatusServiceUnavailable, msg.ID, jsonrpc.CodeInternal, "the profiles cannot be read (see yaya's log)")
	}
	return nil, false
}

// admit determines the era of a message and finds its client. If it reports false, it has
// written the response.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, msg *jsonrpc.Message, who tool.Caller, p *profile) (*client, bool, bool) {
	header := r.Header.Get(mcp.HeaderProtocolVersion)
	meta := openMeta(msg.Params)
	if mcp.IsModernProtocol(header) || mcp.IsModernProtocol(meta.version) {
		if !s.checkModern(w, r, msg, header, meta) {
			return nil, true, false
		}
		return modernClient(who.Principal, meta, p), true, true
	}
	if header != "" && !mcp.IsValidProtocolVersion(header) {
		refuse(w, http.StatusBadRequest, msg.ID, jsonrpc.CodeInvalidRequest, "unsupported protocol version %q", clip(header))
		return nil, false, false
	}
	token := r.Header.Get(mcp.HeaderSessionID)
	switch {
	case msg.Method == "initialize" && token == "":
		c, err := s.open(r.Context(), who.Principal, p, msg)
		if err != nil {
			w.Header().Set("Retry-After", "30")
			refuse(w, http.StatusServiceUnavailable, msg.ID, jsonrpc.CodeInternal, "%v", err)
			return nil, false, false
		}
		w.Header()[mcp.HeaderSessionID] = []string{c.token}
		return c, false, true
	case token == "":
		refuse(w, http.StatusBadRequest, msg.ID, jsonrpc.CodeInvalidRequest, "the request has no session: send initialize first, or use protocol version %s", mcp.LATEST_PROTOCOL_VERSION)
		return nil, false, false
	}
	c := s.find(who.Principal, token)
	if c == nil || c.profile.name != p.name {
		status, why := s.noSession()
		refuse(w, status, msg.ID, jsonrpc.CodeInvalidRequest, "%s", why)
		return nil, false, false
	}
	return c, false, true
}

// opened finds the session of a request without a message. A session exists only under the path
// of its profile. If it reports false, it has written the response.
func (s *Server) opened(w http.ResponseWriter, r *http.Request, who tool.Caller) (*client, *profile, bool) {
	token := r.Header.Get(mcp.HeaderSessionID)
	if token == "" {
		http.Error(w, "the header Mcp-Session-Id is missing", http.StatusBadRequest)
		return nil, nil, false
	}
	p, ok := s.shown(w, r, new(jsonrpc.Message), who)
	if !ok {
		return nil, nil, false
	}
	c := s.find(who.Principal, token)
	if c == nil || c.profile.name != p.name {
		status, why := s.noSession()
		http.Error(w, why, status)
		return nil, nil, false
	}
	return c, p, true
}

// unsupportedVersion names the versions that a client can use instead.
func unsupportedVersion(version string) *jsonrpc.Error {
	e := mcp.UnsupportedProtocolVersionError{Version: version, Supported: mcp.ValidProtocolVersions}.JSONRPCError().Error
	data, err := json.Marshal(e.Data)
	if err != nil {
		return fail(e.Code, "unsupported protocol version")
	}
	return &jsonrpc.Error{Code: e.Code, Message: e.Message, Data: data}
}

// checkModern checks a modern message against the rules of its transport.
func (s *Server) checkModern(w http.ResponseWriter, r *http.Request, msg *jsonrpc.Message, header string, meta requestMeta) bool {
	version := meta.version
	mismatch := func(format string, args ...any) bool {
		refuse(w, http.StatusBadRequest, msg.ID, mcp.HEADER_MISMATCH, format, args...)
		return false
	}
	switch {
	case msg.Method == "":
		refuse(w, http.StatusBadRequest, nil, jsonrpc.CodeInvalidRequest, "unexpected response: servers send no requests in this protocol version")
		return false
	case r.Header.Get(lastEventID) != "":
		return mismatch("streams cannot be resumed in protocol version %s", mcp.ProtocolVersion20260728)
	case msg.IsRequest() && header == "":
		return mismatch("the header %s is missing", mcp.HeaderProtocolVersion)
	case msg.IsRequest() && version == "":
		refuse(w, http.StatusBadRequest, msg.ID, jsonrpc.CodeInvalidParams, "_meta has no %s", mcp.MetaKeyProtocolVersion)
		return false
	case msg.IsRequest() && header != version:
		return mismatch("the header %s says %q, the request %q", mcp.HeaderProtocolVersion, clip(header), clip(version))
	case msg.IsRequest() && !mcp.IsValidProtocolVersion(version):
		write(w, http.StatusBadRequest, jsonrpc.AppendError(nil, msg.ID, unsupportedVersion(version)))
		return false
	}
	if !msg.IsRequest() {
		return true
	}
	if meta.capabilities == nil {
		refuse(w, http.StatusBadRequest, msg.ID, jsonrpc.CodeInvalidParams, "_meta has no %s", mcp.MetaKeyClientCapabilities)
		return false
	}
	// The library does not know tasks, whose header repeats the task's id.
	if id, ok := msg.Params.String("taskId"); ok && strings.HasPrefix(msg.Method, "tasks/") {
		if name, valid := mcp.DecodeHeaderValue(r.Header.Get(mcp.HeaderName)); r.Header.Get(mcp.HeaderName) != "" && (!valid || name != id) {
			return mismatch("the header %s does not name the task", mcp.HeaderName)
		}
	}
	if repeated(r.Header, msg) {
		return true
	}
	if err := mcp.ValidateStandardHeaders(r.Header.Get, version, mcp.MCPMethod(msg.Method), nameOnly(msg)); err != nil {
		return mismatch("%v", err)
	}
	return true
}

// lastEventID is [mcp.HeaderLastEventID] as net/http keeps it, so that looking for it needs no memory.
const lastEventID = "Last-Event-Id"

// repeated reports whether the headers repeat the method and the name as they stand in the
// message: then [mcp.ValidateStandardHeaders] finds nothing, and need not decode anything.
func repeated(h http.Header, msg *jsonrpc.Message) bool {
	method := mcp.MCPMethod(msg.Method)
	if h.Get(mcp.HeaderMethod) != msg.Method {
		return false
	}
	if !mcp.MethodRequiresNameHeader(method) {
		return true
	}
	key := "name"
	if method == mcp.MethodResourcesRead {
		key = "uri"
	}
	name, ok := msg.Params.String(key)
	return ok && name != "" && name == h.Get(mcp.HeaderName) && !strings.HasPrefix(name, "=?") // which marks an encoded one
}

// nameOnly returns params with just the member that a header mirrors, so that
// the check does not decode the arguments.
func nameOnly(msg *jsonrpc.Message) []byte {
	out := []byte{'{'}
	for _, key := range []string{"name", "uri"} {
		if v := msg.Params.Get(key); v != nil {
			if len(out) > 1 {
				out = append(out, ',')
			}
			out = append(append(jsonrpc.AppendString(out, key), ':'), v...)
		}
	}
	return append(out, '}')
}
