package downstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// ServeHTTP implements [http.Handler]: the MCP endpoint. Who may reach it, and
// from which Host and Origin, is decided before it; a request without a caller is
// nobody's, and is refused.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var who tool.Caller
	ok := s.cfg.Caller != nil
	if ok {
		who, ok = s.cfg.Caller(r)
	}
	if !ok || who.Principal == "" {
		s.cfg.Log.Error().Str("method", r.Method).Msg("an MCP request was refused: it is not established who it is from")
		http.Error(w, "it is not established who this request is from", http.StatusForbidden)
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r, who)
	case http.MethodGet:
		s.get(w, r, who)
	case http.MethodDelete:
		s.delete(w, r, who)
	default:
		notAllowed(w)
	}
}

func notAllowed(w http.ResponseWriter) {
	w.Header().Set("Allow", "POST, GET, DELETE")
	http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
}

// refuse writes a JSON-RPC error that answers no particular request, or id.
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

// incoming is the state of one POST; it is recycled.
type incoming struct {
	body []byte
	held intake.Held // of the budget for bodies
	msg  jsonrpc.Message
	out  []byte
}

const keptBuffer = 512 << 10 // larger buffers are not kept for the next request

var incomings = sync.Pool{New: func() any { return new(incoming) }}

func recycle(in *incoming) {
	if cap(in.body) > keptBuffer || cap(in.out) > keptBuffer {
		return
	}
	in.body, in.out = in.body[:0], in.out[:0]
	in.msg = jsonrpc.Message{}
	incomings.Put(in)
}

func (s *Server) post(w http.ResponseWriter, r *http.Request, who tool.Caller) {
	if ct := r.Header.Get("Content-Type"); ct != "application/json" {
		if mt, _, err := mime.ParseMediaType(ct); err != nil || mt != "application/json" {
			refuse(w, http.StatusUnsupportedMediaType, nil, jsonrpc.CodeInvalidRequest, "Content-Type must be application/json")
			return
		}
	}
	if r.Header.Get("Content-Encoding") != "" {
		refuse(w, http.StatusUnsupportedMediaType, nil, jsonrpc.CodeInvalidRequest, "compressed requests are not accepted")
		return
	}
	in := incomings.Get().(*incoming)
	var err error
	limit := s.cfg.MaxMessage()
	in.body, in.held, err = intake.Bodies().ReadQueued(r.Context(), intake.Requests(), in.body, r.Body, r.ContentLength, who.Principal, limit)
	if err != nil {
		unread(w, err, limit)
		return
	}
	reuse := false
	defer func() {
		in.held.Release() // unless work that outlives the request has moved it
		if reuse {
			recycle(in)
		}
	}()
	if err = in.msg.Parse(in.body); errors.Is(err, jsonrpc.ErrBatch) {
		s.postBatch(w, r, who, in.body)
		return
	}
	if err != nil {
		code := jsonrpc.CodeInvalidRequest
		if errors.Is(err, jsonrpc.ErrSyntax) {
			code = jsonrpc.CodeParse
		}
		refuse(w, http.StatusBadRequest, in.msg.ID, code, "%v", err)
		return
	}
	p, ok := s.shown(w, r, &in.msg, who)
	if !ok {
		return
	}
	c, modern, ok := s.admit(w, r, &in.msg, who, p)
	if !ok {
		return
	}
	if !in.msg.IsRequest() {
		s.oneWay(c, &in.msg)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	reuse = s.serve(w, r, in, &exchange{c: c, profile: p, caller: who, msg: &in.msg, held: &in.held, modern: modern})
}

// unread refuses a request whose body cannot be had.
func unread(w http.ResponseWriter, err error, limit int) {
	status, why := http.StatusBadRequest, "the request cannot be read"
	switch {
	case errors.Is(err, intake.ErrTooLarge):
		status, why = http.StatusRequestEntityTooLarge, tooLong(limit)
	case errors.Is(err, intake.ErrBusy):
		w.Header().Set("Retry-After", "1")
		status, why = http.StatusServiceUnavailable, fmt.Sprintf("%v: come back later", err)
	}
	refuse(w, status, nil, jsonrpc.CodeInvalidRequest, "%s", why)
}

// tooLong says that a message is over the limit, and where that is set.
func tooLong(limit int) string {
	return fmt.Sprintf("the message is larger than %d MiB; raise the setting servers.max_message_bytes if it must be", limit>>20)
}

// shown finds the profile of a request. When it reports false, the answer has been
// written.
func (s *Server) shown(w http.ResponseWriter, r *http.Request, msg *jsonrpc.Message, who tool.Caller) (*profile, bool) {
	name := r.PathValue("profile")
	p, err := s.profile(name, who)
	switch {
	case err == nil:
		return p, true
	case errors.Is(err, errNoProfile):
		refuse(w, http.StatusNotFound, msg.ID, jsonrpc.CodeInvalidRequest, "there is no profile %q", clip(name))
	case errors.Is(err, errNotYours):
		s.cfg.Log.Warn().Str("principal", who.Principal).Str("profile", name).Msg("an MCP request was refused: the profile is not for this principal")
		refuse(w, http.StatusForbidden, msg.ID, jsonrpc.CodeInvalidRequest, "the profile %q is not for %s: use /mcp, or have its owner add you to the profile", clip(name), clip(who.Principal))
	default:
		s.cfg.Log.Error().Err(err).Msg("an MCP request was refused")
		refuse(w, http.StatusServiceUnavailable, msg.ID, jsonrpc.CodeInternal, "the profiles cannot be read; yaya's log says why")
	}
	return nil, false
}

// admit settles the era of a message and finds its client. When it reports
// false, the answer has been written.
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
		c, err := s.open(who.Principal, p)
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
		refuse(w, http.StatusNotFound, msg.ID, jsonrpc.CodeInvalidRequest, "there is no such session")
		return nil, false, false
	}
	return c, false, true
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

// checkModern holds a modern message to the rules of its transport (DN-03,
// DN-04).
func (s *Server) checkModern(w http.ResponseWriter, r *http.Request, msg *jsonrpc.Message, header string, meta requestMeta) bool {
	version := meta.version
	mismatch := func(format string, args ...any) bool {
		refuse(w, http.StatusBadRequest, msg.ID, mcp.HEADER_MISMATCH, format, args...)
		return false
	}
	switch {
	case msg.Method == "":
		refuse(w, http.StatusBadRequest, nil, jsonrpc.CodeInvalidRequest, "there are no requests of the server in this protocol version that a response could answer")
		return false
	case r.Header.Get(mcp.HeaderLastEventID) != "":
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
	// The library knows no tasks: their header repeats the task's id.
	if id, ok := msg.Params.String("taskId"); ok && strings.HasPrefix(msg.Method, "tasks/") {
		if name, valid := mcp.DecodeHeaderValue(r.Header.Get(mcp.HeaderName)); r.Header.Get(mcp.HeaderName) != "" && (!valid || name != id) {
			return mismatch("the header %s does not name the task", mcp.HeaderName)
		}
	}
	if err := mcp.ValidateStandardHeaders(r.Header.Get, version, mcp.MCPMethod(msg.Method), nameOnly(msg)); err != nil {
		return mismatch("%v", err)
	}
	return true
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

// oneWay takes notifications, and responses to what the client was asked.
func (s *Server) oneWay(c *client, msg *jsonrpc.Message) {
	if msg.IsResponse() {
		c.answered(msg)
		return
	}
	switch msg.Method {
	case noteCancelled:
	case noteProgress:
		c.progressed(msg.Params)
		return
	case noteRootsChanged:
		params := bytes.Clone(msg.Params.Raw())
		for _, server := range s.cfg.Router.Servers() {
			server.Notify(c.session, noteRootsChanged, params)
		}
		return
	default:
		s.extensionNote(c, msg)
		return
	}
	id := msg.Params.Get("requestId")
	c.mu.Lock()
	cancel := c.inflight[string(id)]
	c.mu.Unlock()
	if cancel != nil {
		cancel(errNoAnswer)
	}
}

// begin registers a request for cancellation. It reports false when the id is
// in use.
func (c *client) begin(ctx context.Context, id string) (context.Context, context.CancelCauseFunc, bool) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, dup := c.inflight[id]; dup {
		cancel(nil)
		return nil, nil, false
	}
	c.inflight[id] = cancel
	return ctx, func(cause error) {
		cancel(cause)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.inflight, id)
	}, true
}

// serve runs a request and writes its response: plain JSON, or a stream from the
// moment when something is to be said before the result. It reports whether nobody
// needs the request's memory any longer.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, in *incoming, x *exchange) (reuse bool) {
	c, modern := x.c, x.modern
	c.enter()
	defer c.leave()
	rs := &responseStream{w: w}
	base := r.Context()
	if !modern {
		rs.resumable = c
		base = context.WithoutCancel(base)
	}
	ctx, done, ok := c.begin(base, string(in.msg.ID))
	if !ok {
		refuse(w, http.StatusBadRequest, in.msg.ID, jsonrpc.CodeInvalidRequest, "a request with this id is running")
		return false
	}
	defer done(nil)
	if !modern {
		// A legacy client that loses its stream may come back for the rest; one
		// that has got nothing has nothing to come back to.
		defer context.AfterFunc(r.Context(), func() {
			rs.mu.Lock()
			rec, conn := rs.record, rs.conn
			rs.mu.Unlock()
			if rec == nil {
				done(errNoAnswer)
				return
			}
			rec.away(conn, func() { done(errNoAnswer) })
		})()
	}
	x.ctx, x.notify = ctx, rs.send
	if modern {
		x.header = func(name string) (string, bool) {
			v := r.Header.Values(name)
			if len(v) == 0 {
				return "", false
			}
			return v[0], true
		}
		meta := openMeta(in.msg.Params)
		x.caps, x.level = meta.open(), meta.level
	} else {
		x.caps = c.capabilities()
	}
	if in.msg.Method == "subscriptions/listen" && modern {
		rs.mu.Lock()
		rs.open()
		rs.mu.Unlock()
		stop := rs.conn.keepAlive(ctx)
		defer stop()
	}
	out := s.answer(ctx, in.out[:0], x)
	defer func() { x.buf.Release() }()
	switch {
	case rs.started():
		if out != nil {
			_ = rs.sendParts(out)
		}
		rs.finish()
	case out == nil:
		// The request was cancelled by a notification, and its POST wants some
		// end: an answer that says so and that nobody waits for.
		refuse(w, http.StatusOK, in.msg.ID, jsonrpc.CodeInvalidRequest, "the request was cancelled")
	default:
		write(w, statusOf(out[0], modern), out...)
		in.out = out[0]
	}
	if in.msg.Method == "initialize" && !modern && !c.introduced() {
		s.drop(c.token) // the handshake failed: there is no session
	}
	return ctx.Err() == nil && !x.keep
}

// statusOf maps the errors that the modern era wants visible in the status.
func statusOf(out []byte, modern bool) int {
	if !modern {
		return http.StatusOK
	}
	var msg jsonrpc.Message
	// Only short messages can be refusals of ours; results are not parsed again.
	if len(out) > 4096 || msg.Parse(out) != nil || msg.Err == nil {
		return http.StatusOK
	}
	switch jsonrpc.ParseError(msg.Err).Code {
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
		http.Error(w, "there are no sessions in this protocol version", http.StatusMethodNotAllowed)
		return
	}
	token := r.Header.Get(mcp.HeaderSessionID)
	if token == "" {
		http.Error(w, "the header Mcp-Session-Id is missing", http.StatusBadRequest)
		return
	}
	if s.find(who.Principal, token) == nil || !s.drop(token) {
		http.Error(w, "there is no such session", http.StatusNotFound)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
