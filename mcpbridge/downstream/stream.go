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

const maxQueued = 256 // notifications that a stream's reader has not taken

// stream is an open way to a client for what concerns no request. Notifications
// that say the same are held once. A reader that falls behind loses its stream.
type stream struct {
	s       *Server
	c       *client         // legacy: whose stream it is; nil for a subscription
	who     tool.Caller     // who has opened it
	profile *profile        // that it was opened with
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
	key string // what says the same has the same key; "" is unlike all others
	msg []byte
}

func (s *Server) newStream(c *client, who tool.Caller, p *profile) *stream {
	return &stream{s: s, c: c, who: who, profile: p, wake: make(chan struct{}, 1), over: make(chan struct{})}
}

// seen is what a stream's reader is shown by what is configured.
type seen struct {
	known   map[string]Profile // the very map: another one is another configuration
	profile *profile           // nil if the stream's is no longer its own
}

// sees reports whether the stream's reader is shown a server. That may change while the
// stream is open, with the profile; it is found out once for each configuration. mu of
// the server is not held.
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
	return now.profile != nil && now.profile.server(server)
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

// enqueue queues a message; it reports false when the stream is full.
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

// poke has deliver look at the queue.
func (st *stream) poke() {
	select {
	case st.wake <- struct{}{}:
	default:
	}
}

// begun reports whether the stream's reader takes messages: a subscription's does.
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

// take returns what is queued.
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

// deliver writes what is pushed until the stream or one of its contexts ends, or
// writing fails.
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

// attach registers a stream for changes; it reports false when there are too
// many.
func (s *Server) attach(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.shares.streams.Take(st.who.Principal, st.who.Principal == tool.Owner) {
		return false
	}
	s.streams[st] = struct{}{}
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

// tellChange wakes every stream that wants to know of a change at some servers. It runs
// on the goroutine of whoever made the change.
func (s *Server) tellChange(note string, servers ...string) {
	for _, st := range s.listening() {
		if (st.wants == nil || st.wants[note]) && slices.ContainsFunc(servers, st.sees) {
			st.push(note, note, nil)
		}
	}
}

// listening returns the streams that there are.
func (s *Server) listening() []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.streams))
}

// Message implements [relay.Listener]. Clients of the modern era get messages on
// the streams of their requests only. Who is not shown a server does not hear it, nor
// who has not finished its handshake: lists it reads then, these would only pile up.
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

// subscription is what subscriptions/listen asks for, and what of it is granted.
type subscription struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

// subscribe subscribes to a resource of a server that the client is shown.
func (s *Server) subscribe(ctx context.Context, x *exchange, sub relay.Subscriber, uri string) error {
	err := s.cfg.Router.Subscribe(ctx, sub, uri, x.profile.server)
	if errors.Is(err, relay.ErrUnknown) && ctx.Err() == nil {
		s.cfg.Boundary(ctx) // its server may be in its first start
		err = s.cfg.Router.Subscribe(ctx, sub, uri, x.profile.server)
	}
	return err
}

const maxSubscribed = 256 // resources of one subscription

// listen serves subscriptions/listen: it acknowledges what is granted and
// delivers until the client or the server ends it.
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
			s.cfg.Log.Debug().Err(err).Msg("a subscription could not be ended")
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
	if err := x.notify(jsonrpc.AppendRequest(nil, nil, "notifications/subscriptions/acknowledged", ack)); err != nil {
		return nil, errNoAnswer
	}
	if granted.Tools || granted.Prompts || granted.Resources || len(granted.URIs) > 0 {
		if err := st.deliver(ctx, s.life, x.notify); err != nil {
			return nil, errors.Join(errNoAnswer, err)
		}
	}
	return append(append([]byte(`{"resultType":"complete","_meta":`), st.meta...), '}'), nil
}
