package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

const (
	noteToolsChanged = "notifications/tools/list_changed"
	noteUpdated      = "notifications/resources/updated"
	noteMessage      = "notifications/message"
	noteProgress     = "notifications/progress"
	noteCancelled    = "notifications/cancelled"
	noteRootsChanged = "notifications/roots/list_changed"
	noteInitialized  = "notifications/initialized"
)

const maxQueued = 256 // unread notifications of a stream

// stream carries notifications that concern no request to a client. Equal notifications are
// queued once. A reader that falls behind loses its stream.
type stream struct {
	s       *Server
	c       *client         // legacy: the client of the stream; nil for a subscription
	who     tool.Caller     // the principal that opened it
	profile *profile        // the profile that it was opened with
	wants   map[string]bool // list changes, by notification; nil means all
	meta    []byte          // _meta of every notification, nil for none
	now     atomic.Pointer[seen]

	mu    sync.Mutex
	queue []queued
	wake  chan struct{}
	over  chan struct{}
	once  sync.Once
}

type queued struct {
	key string // equal messages have the same key; "" equals no other
	msg []byte
}

func (s *Server) newStream(c *client, who tool.Caller, p *profile) *stream {
	return &stream{s: s, c: c, who: who, profile: p, wake: make(chan struct{}, 1), over: make(chan struct{})}
}

// seen is the set of servers that a stream's reader sees under the current configuration.
type seen struct {
	known   map[string]Profile // identity of the map: a new configuration has a new map
	profile *profile           // nil if the reader may no longer use the profile
}

// sees reports whether the stream's reader sees a server. This can change with the profile
// while the stream is open; sees computes it once for each configuration. The caller must not
// hold the server's mu.
func (st *stream) sees(server string) bool {
	var known map[string]Profile
	if st.s.cfg.Profiles != nil {
		var err error
		if known, err = st.s.cfg.Profiles(); err != nil {
			return false
		}
	}
	now := st.now.Load()
	if now == nil || reflect.ValueOf(now.known).UnsafePointer() != reflect.ValueOf(known).UnsafePointer() {
		now = &seen{known: known}
		if p, err := st.s.profile(st.profile.path, st.who); err == nil && p.name == st.profile.name {
			now.profile = p
		}
		st.now.Store(now)
	}
	return now.profile != nil && now.profile.server(server) && st.s.may(st.who, server)
}

func (st *stream) end() { st.once.Do(func() { close(st.over) }) }

// push queues a notification; it does not block.
func (st *stream) push(key, method string, params []byte) {
	if st.meta != nil {
		if params == nil {
			params = []byte("{}")
		}
		obj, err := jsonrpc.ParseObject(params)
		if err != nil {
			return
		}
		meta := st.meta
		if have := obj.Get("_meta"); have != nil {
			meta = mergeMeta(have, st.meta)
		}
		params = obj.Append(nil, jsonrpc.Edit{Name: "_meta", Value: meta})
	}
	if !st.enqueue(key, jsonrpc.AppendRequest(nil, nil, method, params)) {
		st.end()
	}
}

// enqueue queues a message; it reports false if the stream is full.
func (st *stream) enqueue(key string, msg []byte) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if key != "" && slices.ContainsFunc(st.queue, func(q queued) bool { return q.key == key }) {
		return true
	}
	if len(st.queue) == maxQueued {
		return false
	}
	st.queue = append(st.queue, queued{key, msg})
	st.poke()
	return true
}

// poke makes deliver check the queue.
func (st *stream) poke() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// begun reports whether the stream's reader accepts messages; a subscription's always does.
func (st *stream) begun() bool { return st.c == nil || st.c.settled.Load() }

// mergeMeta adds the members of more to those of meta.
func mergeMeta(meta, more []byte) []byte {
	a, err1 := jsonrpc.ParseObject(meta)
	b, err2 := jsonrpc.ParseObject(more)
	if err1 != nil || err2 != nil {
		return more
	}
	edits := make([]jsonrpc.Edit, 0, b.Len())
	for i := range b.Len() {
		name, value := b.At(i)
		edits = append(edits, jsonrpc.Edit{Name: name, Value: value})
	}
	return a.Append(nil, edits...)
}

// take returns the queued messages.
func (st *stream) take() [][]byte {
	st.mu.Lock()
	defer st.mu.Unlock()
	out := make([][]byte, len(st.queue))
	for i, q := range st.queue {
		out[i] = q.msg
	}
	st.queue = st.queue[:0]
	return out
}

// deliver writes the pushed messages until the stream or one of its contexts ends, or a write
// fails.
func (st *stream) deliver(ctx, life context.Context, write func(msg []byte) error) error {
	for {
		select {
		case <-st.wake:
			if !st.begun() {
				continue // the client's settle wakes it again
			}
			for _, msg := range st.take() {
				if err := write(msg); err != nil {
					return err
				}
			}
		case <-st.over:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-life.Done():
			return nil
		}
	}
}

// Updated implements [relay.Subscriber].
func (st *stream) Updated(server, uri string, params []byte) {
	if !st.sees(server) {
		return
	}
	if p, err := withURI(params, uri); err == nil {
		st.push("uri "+uri, noteUpdated, p)
	}
}

func withURI(params []byte, uri string) ([]byte, error) {
	obj, err := jsonrpc.ParseObject(params)
	if err != nil {
		return nil, err
	}
	return obj.Append(nil, jsonrpc.Edit{Name: "uri", Value: jsonrpc.AppendString(nil, uri)}), nil
}

// Updated implements [relay.Subscriber].
func (c *client) Updated(server, uri string, params []byte) {
	c.mu.Lock()
	st := c.get
	c.mu.Unlock()
	if st != nil {
		st.Updated(server, uri, params)
	}
}

// attach registers a stream for changes; it reports false if there are too many.
func (s *Server) attach(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.shares.streams.Take(st.who.Principal, st.who.Principal == tool.Owner) {
		return false
	}
	s.streams[st] = struct{}{}
	if s.leaving {
		st.end()
	}
	return true
}

func (s *Server) detach(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.streams[st]; ok {
		delete(s.streams, st)
		s.shares.streams.Give(st.who.Principal)
	}
}

func (s *Server) toolsChanged(providers []string) { s.tellChange(noteToolsChanged, providers...) }

// Changed implements [relay.Listener].
func (s *Server) Changed(server string, k relay.Kind) { s.tellChange(k.Note, server) }

// tellChange wakes every stream that subscribes to changes of some servers. It runs on the
// goroutine that made the change.
func (s *Server) tellChange(note string, servers ...string) {
	for _, st := range s.listening() {
		if (st.wants == nil || st.wants[note]) && slices.ContainsFunc(servers, st.sees) {
			st.push(note, note, nil)
		}
	}
}

// Listening reports whether a client has a stream for notifications of changes.
func (s *Server) Listening() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.streams) > 0
}

// listening returns the open streams.
func (s *Server) listening() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.streams))
}

// Message implements [relay.Listener]. Clients of the modern era get messages only on the
// streams of their requests. A client does not get messages of servers that it does not see, or
// before its handshake is complete, when they would only pile up.
func (s *Server) Message(server, principal, client, method string, params []byte) {
	for _, st := range s.listening() {
		if st.c == nil || !st.begun() || (principal != "" && st.c.owner != principal) || (client != "" && st.c.session != client) || (method == noteMessage && !st.c.wantsLog(params)) || !st.sees(server) {
			continue
		}
		st.push("", method, params)
	}
}

func (c *client) wantsLog(params []byte) bool {
	var m struct {
		Level string `json:"level"`
	}
	return json.Unmarshal(params, &m) == nil && relay.Severity(m.Level) >= relay.Severity(c.logLevel())
}

// subscription is a request of subscriptions/listen, and its granted part.
type subscription struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

// subscribe subscribes to a resource of a server that the client sees.
func (s *Server) subscribe(ctx context.Context, x *exchange, sub relay.Subscriber, uri string) error {
	err := s.cfg.Router.Subscribe(ctx, sub, uri, func(server string) bool { return s.shows(x, server) })
	if errors.Is(err, relay.ErrUnknown) && ctx.Err() == nil {
		s.cfg.Boundary(ctx) // its server may be in its first start
		err = s.cfg.Router.Subscribe(ctx, sub, uri, func(server string) bool { return s.shows(x, server) })
	}
	return err
}

const maxSubscribed = 256 // resources of one subscription

// listen serves subscriptions/listen: it acknowledges the granted part and delivers
// notifications until the client or the server ends it.
func (s *Server) listen(ctx context.Context, x *exchange) ([]byte, error) {
	if !x.modern {
		return nil, fail(jsonrpc.CodeMethodNotFound, "unknown method %q", x.msg.Method)
	}
	raw := x.msg.Params.Get("notifications")
	var want subscription
	if raw == nil || raw[0] != '{' {
		return nil, fail(jsonrpc.CodeInvalidParams, "subscriptions/listen needs notifications")
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		return nil, fail(jsonrpc.CodeInvalidParams, "notifications: %v", err)
	}
	if len(want.URIs) > maxSubscribed {
		return nil, fail(jsonrpc.CodeInvalidParams, "resourceSubscriptions: at most %d", maxSubscribed)
	}
	st := s.newStream(nil, x.caller, x.profile)
	st.wants = map[string]bool{noteToolsChanged: want.Tools, relay.Prompts.Note: want.Prompts, relay.Resources.Note: want.Resources}
	st.meta = append([]byte(`{"`+mcp.MetaKeySubscriptionID+`":`), x.msg.ID...)
	st.meta = append(st.meta, '}')
	if !s.attach(st) {
		return nil, fail(jsonrpc.CodeInternal, "too many subscriptions")
	}
	defer s.detach(st)
	defer func() {
		if err := s.cfg.Router.Unsubscribe(context.WithoutCancel(ctx), st, ""); err != nil {
			s.cfg.Log.Debug().Err(err).Msg("cannot end a subscription")
		}
	}()
	granted := want
	granted.URIs = nil
	for _, uri := range want.URIs {
		if uri == "" || len(uri) > maxURI {
			continue
		}
		if err := s.subscribe(ctx, x, st, uri); err == nil {
			granted.URIs = append(granted.URIs, uri)
		} else if ctx.Err() != nil {
			return nil, errNoAnswer
		}
	}
	ack, err := json.Marshal(struct {
		Notifications subscription    `json:"notifications"`
		Meta          json.RawMessage `json:"_meta"`
	}{granted, st.meta})
	if err != nil {
		return nil, err
	}
	if err := x.tell(jsonrpc.AppendRequest(nil, nil, "notifications/subscriptions/acknowledged", ack)); err != nil {
		return nil, errNoAnswer
	}
	if granted.Tools || granted.Prompts || granted.Resources || len(granted.URIs) > 0 {
		if err := st.deliver(ctx, s.life, x.tell); err != nil {
			return nil, errors.Join(errNoAnswer, err)
		}
	}
	return append(append([]byte(`{"resultType":"complete","_meta":`), st.meta...), '}'), nil
}
