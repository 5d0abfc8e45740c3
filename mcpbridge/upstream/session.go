package upstream

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/workgroup"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Methods of the protocol that this side uses.
const (
	methodInitialize  = "initialize"
	methodDiscover    = "server/discover"
	methodListTools   = "tools/list"
	methodCallTool    = "tools/call"
	methodGetPrompt   = "prompts/get"
	methodRead        = "resources/read"
	methodListen      = "subscriptions/listen"
	methodSubscribe   = "resources/subscribe"
	methodUnsubscribe = "resources/unsubscribe"
	methodSetLevel    = "logging/setLevel"

	noteInitialized  = "notifications/initialized"
	noteCancelled    = "notifications/cancelled"
	noteProgress     = "notifications/progress"
	noteMessage      = "notifications/message"
	noteToolsChanged = "notifications/tools/list_changed"
	noteUpdated      = "notifications/resources/updated"
	noteAcknowledged = "notifications/subscriptions/acknowledged"
	noteRootsChanged = "notifications/roots/list_changed"
)

// Times of the protocol.
const (
	startTimeout = 20 * time.Second // of a session that a call opens; a server's configuration may override it
	callTimeout  = 60 * time.Second
)

// request is one message that expects an answer. The id in body is id.
type request struct {
	s        *session
	id       int64
	method   string
	by       string // the principal whose request it is
	body     []byte
	buf      *bufpool.Buffer // holds the body
	kept     bool            // the transport keeps the buffer, which it still sends
	header   http.Header     // extra headers, HTTP only
	peer     relay.Peer      // the client that made the request; nil for our own
	limit    *limit          // nil if the request has none of its own
	progress func(note)      // nil when nobody listens
	asked    atomic.Int64    // questions that the server asked in the meantime
	told     *masked.Joint   // of its progress

	prev, next *request // position among the client requests in flight

	raw rawBody         // HTTP only
	msg jsonrpc.Message // the answer
}

// has reports whether an id is that of the request.
func (r *request) has(id []byte) bool {
	var own [20]byte
	return bytes.Equal(id, strconv.AppendInt(own[:0], r.id, 10))
}

// listens reports whether the caller wants the notes of a request.
func (r *request) listens() bool { return r.progress != nil || r.peer != nil }

// took handles a note.
func (r *request) took(n note) {
	if r.limit != nil {
		r.limit.extend()
	}
	if n.method == noteProgress {
		n.params = r.concealProgress(n.params)
	}
	n = n.passedOn()
	switch {
	case n.method != noteProgress && r.peer != nil:
		r.s.tell(r.peer, n)
	case n.method == noteProgress && r.progress != nil:
		r.progress(n)
	default:
		r.s.p.stats.dropped.Add(1)
	}
}

// enter and leave maintain the list of client requests in flight.
func (s *session) enter(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.next = s.flights; r.next != nil {
		r.next.prev = r
	}
	s.flights = r
}

func (s *session) leave(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		s.flights = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	}
}

// transport carries messages to one server and back.
type transport interface {
	// roundTrip sends a request and waits for its answer. An error that wraps
	// feature.ErrNotSent means that the server never processed the request.
	roundTrip(ctx context.Context, req *request) (reply, error)
	// copies reports whether a request's body is unused once roundTrip has returned without an
	// error.
	copies() bool
	// send sends a notification or an answer.
	send(ctx context.Context, msg []byte) error
	// done is closed when the connection is lost; failed says why.
	done() <-chan struct{}
	failed() error
	// close ends the connection and waits for its goroutines and processes.
	close(ctx context.Context)
}

// peer is a server's description of itself.
type peer struct {
	Era        servers.Era `json:"era"`
	Version    string      `json:"protocol_version"`
	Name       string      `json:"name"`
	ServerVers string      `json:"version"`

	Instructions string `json:"-"` // verbatim

	caps jsonrpc.Object // as declared
}

// has reports whether a capability is declared, or a boolean inside one is true.
func (p *peer) has(capability, part string) bool {
	raw := p.caps.Get(capability)
	if raw == nil || string(raw) == "null" {
		return false
	}
	if part == "" {
		return true
	}
	obj, err := jsonrpc.ParseObject(raw)
	return err == nil && string(obj.Get(part)) == "true"
}

// tenant is the owner of a session: one client, all clients of a principal, or, if both are
// empty, everybody.
type tenant struct{ principal, client string }

// session is one initialised connection.
type session struct {
	p     *Provider
	of    tenant
	first relay.Peer // the client whose request opens it, during opening
	t     transport
	peer  peer
	tasks bool   // the server creates tasks
	hop   []byte // members of _meta that every modern request has, without braces
	ids   atomic.Int64
	gate  *gate // places for requests in flight

	mu       sync.Mutex
	flights  *request                           // of clients, the newest first
	asks     map[string]context.CancelCauseFunc // the server's pending requests
	odd      string                             // the first line that could not be read, as it is shown
	oddLines *masked.Joint                      // hides secrets over several such lines
	level    int                                // severity requested with logging/setLevel
	relist   chan struct{}                      // makes the subscription check its filter again
	wanted   int                                // changes of the filter
	granted  int                                // the last change that the server acknowledged
	asking   int                                // the change that the open subscription requests
	acked    chan struct{}                      // closed and replaced when granted changes
	logMu    sync.Mutex
	log      *masked.Joint // of its log messages
	notes    []note        // of its client, that wait to be sent
	noting   bool          // a goroutine is sending them

	life   context.Context // a base context: of what no request of a client asks for, until close
	cancel context.CancelFunc
	work   workgroup.Group
}

func newSession(p *Provider, of tenant, first relay.Peer) *session {
	s := &session{
		p: p, of: of, first: first, gate: newGate(cmp.Or(p.cfg.Server.MaxInFlight, maxInFlight), of.client != ""),
		asks: map[string]context.CancelCauseFunc{}, relist: make(chan struct{}, 1), acked: make(chan struct{}),
	}
	s.life, s.cancel = context.WithCancel(context.Background())
	return s
}

// ask sends a request of our own and returns its result.
func (s *session) ask(ctx context.Context, method string, params []byte) ([]byte, error) {
	if params == nil {
		params = []byte("{}")
	}
	obj, err := jsonrpc.ParseObject(params)
	if err != nil {
		return nil, err
	}
	r, err := s.relay(ctx, outgoing{method: method, params: obj})
	if err == nil && r.err != nil {
		err = jsonrpc.ParseError(r.err)
	}
	if err != nil {
		return nil, err
	}
	r.buf.Forget()
	return r.result.Raw(), nil
}

// outgoing is a request that is to be sent.
type outgoing struct {
	method   string
	target   string // the tool's own name, for telemetry; see [outgoing.named]
	params   jsonrpc.Object
	edits    []jsonrpc.Edit // to params
	header   http.Header
	by       string // the principal whose request it is
	caller   tool.Caller
	origin   tool.Origin
	peer     relay.Peer // the client whose request it is
	limit    *limit
	progress func(note) // nil when nobody listens
	// The trace context that the server gets in place of the client's; "" leaves that.
	trace, state string
}

// relay sends a request and waits. It returns the server's answer, result or error, unparsed.
func (s *session) relay(ctx context.Context, o outgoing) (reply, error) {
	id := s.ids.Add(1)
	req := &request{s: s, id: id, method: o.method, by: o.by, peer: o.peer, limit: o.limit, progress: o.progress}
	buf := bufpool.Get(len(o.params.Raw()) + len(s.hop) + 256)
	body := buf.B
	body = append(body, `{"jsonrpc":"2.0","id":`...)
	body = strconv.AppendInt(body, id, 10)
	body = append(body, `,"method":"`...)
	body = append(body, o.method...)
	body = append(body, `","params":`...)
	if meta, changed := s.metaFor(o, id); changed {
		o.edits = append(o.edits, jsonrpc.Edit{Name: "_meta", Value: meta})
	}
	body = o.params.Append(body, o.edits...)
	req.body, req.buf = append(body, '}'), buf
	buf.B = req.body
	if s.hop != nil {
		req.header = modernHeader(o)
	}
	o.traceHeader(req)
	s.p.vouch(o, req)
	if o.peer != nil {
		s.enter(req)
		defer s.leave(req)
	}
	r, err := s.t.roundTrip(ctx, req)
	if err == nil && s.t.copies() && !req.kept {
		buf.Release()
	}
	if err != nil && ctx.Err() != nil && o.method != methodInitialize {
		s.abandon(id, context.Cause(ctx))
	}
	return r, err
}

// metaFor builds the _meta of a request: the caller's, without the keys that belong to the hop,
// plus ours. It reports false if the caller's stays unchanged.
func (s *session) metaFor(o outgoing, id int64) ([]byte, bool) {
	callers, progress := o.params.Get("_meta"), o.progress != nil
	if callers == nil && !progress && s.hop == nil && o.trace == "" {
		return nil, false
	}
	callers = o.retraced(callers)
	out := []byte{'{'}
	comma := func() {
		if len(out) > 1 {
			out = append(out, ',')
		}
	}
	out, _ = appendForeign(out, callers, false)
	if s.hop != nil {
		comma()
		out = append(out, s.hop...)
		out = s.appendClient(out, o.peer)
	}
	if progress {
		comma()
		out = append(out, `"progressToken":`...)
		out = strconv.AppendInt(out, id, 10)
	}
	if len(out) == 1 {
		return nil, true // nothing is left: remove the member
	}
	return append(out, '}'), true
}

// appendClient appends the client's properties to a modern request: its capabilities, and the
// log messages that it wants.
func (s *session) appendClient(dst []byte, p relay.Peer) []byte {
	dst = append(dst, `,"`+mcp.MetaKeyClientCapabilities+`":`...)
	caps := jsonrpc.Object{}
	if p != nil {
		caps = p.Capabilities()
	}
	switch {
	case s.follows(p):
		dst = append(dst, withTasks(caps)...)
	case caps.IsObject():
		dst = append(dst, caps.Raw()...)
	default:
		dst = append(dst, "{}"...)
	}
	if p == nil {
		return dst
	}
	level := p.LogLevel()
	if level == "" && !p.Modern() {
		level = "info" // such a client expects the server to choose
	}
	if level != "" {
		dst = append(dst, `,"`+mcp.MetaKeyLogLevel+`":`...)
		dst = jsonrpc.AppendString(dst, level)
	}
	return dst
}

// isReserved reports whether a key of _meta is the protocol's own and applies to one hop.
func isReserved(name []byte) bool {
	const prefix = "io.modelcontextprotocol/"
	return len(name) > len(prefix) && string(name[:len(prefix)]) == prefix
}

// named are the members of params that the header Mcp-Name repeats.
var named = map[string]string{
	methodCallTool: "name", methodGetPrompt: "name", methodRead: "uri",
	"tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId",
}

// vouch has a node learn who a request is from: yaya itself acts as the owner.
func (p *Provider) vouch(o outgoing, req *request) {
	if p.cfg.Vouch == nil {
		return
	}
	if o.caller.Principal == "" {
		o.caller, o.origin = tool.LocalOwner, tool.OriginMCP
	}
	if req.header == nil {
		req.header = http.Header{}
	}
	maps.Copy(req.header, p.cfg.Vouch(o.caller, o.origin))
}

func modernHeader(o outgoing) http.Header {
	h := http.Header{mcp.HeaderMethod: {o.method}}
	if member := named[o.method]; member != "" {
		name, ok := o.params.String(member)
		for _, e := range o.edits {
			if e.Name == member {
				name, ok = jsonrpc.AsString(e.Value)
			}
		}
		if v, valid := mcp.EncodeHeaderValue(name); ok && valid {
			h[mcp.HeaderName] = []string{v}
		}
	}
	for k, v := range o.header {
		h[k] = v
	}
	return h
}

// abandon tells the server that the caller no longer waits. Over modern HTTP, closing the
// response stream does that.
func (s *session) abandon(id int64, why error) {
	if _, overHTTP := s.t.(*httpTransport); overHTTP && s.peer.Era == servers.EraModern {
		return
	}
	params := append([]byte(`{"requestId":`), strconv.FormatInt(id, 10)...)
	params = append(params, `,"reason":`...)
	params = jsonrpc.AppendString(params, why.Error())
	msg := jsonrpc.AppendRequest(nil, nil, noteCancelled, append(params, '}'))
	if st, ok := s.t.(*stdio); ok { // it does not block, and keeps the order
		_ = st.send(s.life, msg)
		return
	}
	s.work.Go(func() {
		ctx, cancel := context.WithTimeout(s.life, 5*time.Second)
		defer cancel()
		_ = s.t.send(ctx, msg) // the server may be the cause
	})
}

func (s *session) close(ctx context.Context) {
	s.cancel()
	s.t.close(ctx)
	s.p.buried(s.t)
	s.work.Close()
}
