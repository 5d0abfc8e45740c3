package downstream

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/bufpool"
	"github.com/yaya-ai/yaya/internal/intake"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/internal/telemetry"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// exchange is one request and the way to its client. It implements [relay.Peer].
type exchange struct {
	c       *client
	profile *profile
	caller  tool.Caller
	origin  tool.Origin
	msg     *jsonrpc.Message
	held    *intake.Held // for the message's memory; nil for none
	modern  bool
	caps    jsonrpc.Object  // the client's declared capabilities, zero if none
	level   string          // of log messages, modern only
	ctx     context.Context // a base context: of the request, as of an http.Request; relay.Peer's methods have none
	// stream is the request's own stream over HTTP; elsewhere, notify sends messages before the
	// result.
	stream *responseStream
	notify func(msg []byte) error
	buf    *bufpool.Buffer // holds the result, if set
	spare  *bufpool.Buffer // room for a copy of it
	parts  [3][]byte       // of the response
	// refused is the error that the response carries, nil for a result.
	refused *jsonrpc.Error
	list    *rendered // has the result, if that is a list of tools
	// header looks a header up, for transports that have them.
	header func(name string) (string, bool)
	// flight outlives the request, for a client that answers questions with another request. It
	// is nil if the client cannot be asked.
	flight *flight
	passed passage         // for the record of calls
	native tool.NativeCall // of the call that is relayed
	// For telemetry: whether the request came over HTTP, and the trace that its headers name.
	overHTTP bool
	ambient  telemetry.Context
	// keep says that the request's memory stays in use after the response.
	keep bool
}

var _ relay.Peer = (*exchange)(nil)

// Client implements [relay.Peer].
func (x *exchange) Client() string { return x.c.session }

// Name implements [relay.Peer]. The session of a modern client follows from its description; legacy
// clients without a name count as one.
func (x *exchange) Name() string {
	if x.c.token == "" {
		return ""
	}
	return cmp.Or(x.c.kind.name, "-")
}

// Caller implements [relay.Peer].
func (x *exchange) Caller() (tool.Caller, tool.Origin) { return x.caller, x.origin }

// Modern implements [relay.Peer].
func (x *exchange) Modern() bool { return x.modern }

// Capabilities implements [relay.Peer].
func (x *exchange) Capabilities() jsonrpc.Object { return x.caps }

// LogLevel implements [relay.Peer].
func (x *exchange) LogLevel() string {
	if x.modern {
		return x.level
	}
	return x.c.logLevel()
}

// Notify implements [relay.Peer].
func (x *exchange) Notify(method string, params []byte) {
	if x.caller.IsServer() && method != noteProgress {
		return
	}
	msg := jsonrpc.AppendRequest(nil, nil, method, params)
	if x.flight != nil {
		x.flight.notify(msg)
		return
	}
	_ = x.tell(msg) // the context ends if the client goes away
}

// tell sends a message on the request's own stream, before the result.
func (x *exchange) tell(msg []byte) error {
	if x.stream != nil {
		return x.stream.send(msg)
	}
	return x.notify(msg)
}

// Ask implements [relay.Peer].
func (x *exchange) Ask(ctx context.Context, method string, params []byte) (relay.Reply, error) {
	obj, err := jsonrpc.ParseObject(params)
	if err != nil {
		return relay.Reply{}, err
	}
	if x.caller.IsServer() {
		return relay.Refusal(jsonrpc.CodeMethodNotFound, "the client is a server and cannot be asked for "+method), nil
	}
	// An extension can only ask a client that can be asked at any time; the caller checks that
	// // both sides declare the extension.
	extended := !x.modern && !relay.Core(method) && relay.Extensions(x.caps).Len() > 0
	if !extended && !relay.Supports(x.caps, method, obj) {
		return relay.Refusal(jsonrpc.CodeMethodNotFound, "the client cannot be asked for "+method), nil
	}
	if x.modern {
		if x.flight == nil {
			return relay.Refusal(jsonrpc.CodeMethodNotFound, "the client cannot be asked during "+x.msg.Method), nil
		}
		return x.flight.ask(ctx, method, params)
	}
	if x.ctx != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(x.ctx, cancel)()
	}
	return x.c.ask(ctx, x.tell, method, params)
}

// maxAsked bounds the questions that wait for one client.
const maxAsked = 64

// pendingAsk is a pending question to a legacy client.
type pendingAsk struct {
	done     chan relay.Reply
	progress func(params []byte) // nil if nobody wants progress
}

// ask sends a request to a legacy client by send, and waits for its response.
func (c *client) ask(ctx context.Context, send func([]byte) error, method string, params []byte) (relay.Reply, error) {
	done := make(chan relay.Reply, 1)
	c.mu.Lock()
	if len(c.asks) >= maxAsked {
		c.mu.Unlock()
		return relay.Refusal(jsonrpc.CodeInternal, fmt.Sprintf("%d requests already wait for answers from this client", maxAsked)), nil
	}
	c.askSeq++
	id := c.askSeq
	c.asks[id] = pendingAsk{done, relay.ProgressOf(ctx)}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.asks, id)
		c.mu.Unlock()
	}()
	rawID := strconv.AppendInt(nil, id, 10)
	if relay.ProgressOf(ctx) != nil { // the token is the question's id
		obj, err := jsonrpc.ParseObject(params)
		if err != nil {
			return relay.Reply{}, err
		}
		meta, err := jsonrpc.ParseObject([]byte(cmp.Or(string(obj.Get("_meta")), "{}")))
		if err != nil {
			return relay.Reply{}, err
		}
		params = obj.Append(nil, jsonrpc.Edit{Name: "_meta", Value: meta.Append(nil, jsonrpc.Edit{Name: "progressToken", Value: rawID})})
	}
	if err := send(jsonrpc.AppendRequest(nil, rawID, method, params)); err != nil {
		return relay.Reply{}, fmt.Errorf("the client cannot be reached: %w", err)
	}
	select {
	case r := <-done:
		return r, nil
	case <-ctx.Done():
		note := append([]byte(`{"requestId":`), rawID...)
		_ = send(jsonrpc.AppendRequest(nil, nil, noteCancelled, append(note, '}')))
		return relay.Reply{}, cmp.Or(context.Cause(ctx), ctx.Err())
	}
}

// answered handles a client's response to a question. It keeps the message's memory, which the
// caller must not reuse. It reports false if no such question is pending.
func (c *client) answered(msg *jsonrpc.Message) bool {
	id, err := strconv.ParseInt(string(msg.ID), 10, 64)
	if err != nil {
		return false
	}
	c.mu.Lock()
	done := c.asks[id].done
	delete(c.asks, id)
	c.mu.Unlock()
	if done == nil {
		return false
	}
	if msg.Err == nil && !msg.Result.IsObject() {
		done <- relay.Refusal(jsonrpc.CodeInternal, "the client's answer is not an object")
		return true
	}
	done <- relay.Reply{Result: msg.Result, Err: msg.Err}
	return true
}

// progressed handles a client's progress on a question.
func (c *client) progressed(params jsonrpc.Object) {
	id, err := strconv.ParseInt(string(params.Get("progressToken")), 10, 64)
	if err != nil {
		return
	}
	c.mu.Lock()
	report := c.asks[id].progress
	c.mu.Unlock()
	if report != nil {
		report(bytes.Clone(params.Raw()))
	}
}

func (c *client) logLevel() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

func (c *client) capabilities() jsonrpc.Object {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.caps
}

// standing is the peer of a legacy client between its requests.
type standing struct {
	*exchange
	st *stream
}

// Standing returns the peer of a client that has no request in flight, or nil. Only a legacy
// client can be reached then, by the stream that it keeps open.
func (s *Server) Standing(session string) relay.Peer {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		if st.c != nil && st.c.session == session {
			x := &exchange{c: st.c, caller: tool.Caller{Principal: st.c.owner}, caps: st.c.capabilities()}
			x.notify = func(msg []byte) error {
				select {
				case <-st.over:
					return errors.New("its stream has ended")
				default:
				}
				if !st.enqueue("", bytes.Clone(msg)) {
					return errors.New("its stream is full")
				}
				return nil
			}
			return &standing{x, st}
		}
	}
	return nil
}

// Ask implements [relay.Peer]; the question ends with the stream.
func (p *standing) Ask(ctx context.Context, method string, params []byte) (relay.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, maxParked)
	defer cancel()
	done := make(chan struct{})
	var watch sync.WaitGroup
	defer watch.Wait()
	defer close(done)
	watch.Go(func() {
		select {
		case <-p.st.over:
			cancel()
		case <-done:
		}
	})
	return p.c.ask(ctx, p.notify, method, params)
}

// maxParked is how long a question waits for its answer.
const maxParked = 5 * time.Minute

// requestMeta is the _meta of a modern request.
type requestMeta struct {
	version      string
	clientInfo   []byte // raw, nil when absent
	capabilities []byte // raw, nil when absent
	level        string
}

func openMeta(params jsonrpc.Object) requestMeta {
	raw := params.Get("_meta")
	if raw == nil || raw[0] != '{' {
		return requestMeta{}
	}
	obj, err := jsonrpc.ParseObject(raw)
	if err != nil {
		return requestMeta{}
	}
	version, _ := obj.String(mcp.MetaKeyProtocolVersion)
	level, _ := obj.String(mcp.MetaKeyLogLevel)
	return requestMeta{version, obj.Get(mcp.MetaKeyClientInfo), obj.Get(mcp.MetaKeyClientCapabilities), level}
}

// open returns the capabilities as an object; zero if there are none.
func (m requestMeta) open() jsonrpc.Object {
	if len(m.capabilities) <= len("{}") {
		return jsonrpc.Object{}
	}
	obj, err := jsonrpc.ParseObject(m.capabilities)
	if err != nil {
		return jsonrpc.Object{}
	}
	return obj
}
