package downstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

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
)

const maxQueued = 256 // notifications that a stream's reader has not taken

// stream is an open way to a client for what concerns no request. Notifications
// that say the same are held once. A reader that falls behind loses its stream.
type stream struct {
	c     *client         // legacy: whose stream it is; nil for a subscription
	owner string          // the principal that it is counted for
	wants map[string]bool // list changes, by notification; nil means all
	meta  []byte          // _meta of every notification, nil for none

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

func newStream(c *client) *stream {
	st := &stream{c: c, wake: make(chan struct{}, 1), over: make(chan struct{})}
	if c != nil {
		st.owner = c.owner
	}
	return st
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
	select {
	case st.wake <- struct{}{}:
	default:
	}
	return true
}

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
func (st *stream) Updated(uri string, params []byte) {
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
func (c *client) Updated(uri string, params []byte) {
	c.mu.Lock()
	st := c.get
	c.mu.Unlock()
	if st != nil {
		st.Updated(uri, params)
	}
}

// attach registers a stream for changes; it reports false when there are too
// many.
func (s *Server) attach(st *stream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.shares.streams.Take(st.owner, st.owner == tool.Owner) {
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
		s.shares.streams.Give(st.owner)
	}
}

func (s *Server) toolsChanged() { s.tellChange(noteToolsChanged) }

// Changed implements [relay.Listener].
func (s *Server) Changed(k relay.Kind) { s.tellChange(k.Note) }

// tellChange wakes every stream that wants to know. It runs on the goroutine of
// whoever made the change.
func (s *Server) tellChange(note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		if st.wants == nil || st.wants[note] {
			st.push(note, note, nil)
		}
	}
}

// Message implements [relay.Listener]. Clients of the modern era get messages on
// the streams of their requests only. Who is not shown a server does not hear it.
func (s *Server) Message(server, principal, client, method string, params []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for st := range s.streams {
		if st.c == nil || !st.c.profile.server(server) || (principal != "" && st.c.owner != principal) || (client != "" && st.c.session != client) || (method == noteMessage && !st.c.wantsLog(params)) {
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
	st := newStream(nil)
	st.owner = x.c.owner
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
		server, _, err := s.cfg.Router.Resource(ctx, uri)
		if err == nil && !x.profile.server(server.Name()) {
			continue
		}
		if err := s.cfg.Router.Subscribe(ctx, st, uri); err == nil {
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
