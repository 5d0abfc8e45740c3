package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
)

// sessionsServer is the name under which sessions are offered to MCP clients, as resources
// yaya://sessions/<id>; profiles select them as they select a server.
const sessionsServer = "sessions"

// Bounds of sessions as resources.
const (
	maxListedSessions   = 100
	maxSessionText      = 256 << 10 // bytes
	maxFollowedSessions = 1024
)

// sessionKinds are the events after which a session reads differently, and listKinds those after which
// the list of sessions is another one.
var (
	sessionKinds = []string{
		event.UserMessageReceived.Name(), event.AssistantMessageDone.Name(), event.ToolCallResult.Name(), event.ToolCallError.Name(),
		event.TurnWasCompleted.Name(), event.TurnHasFailed.Name(), event.TurnWasCancelled.Name(), event.SessionWasReset.Name(),
	}
	listKinds = []string{event.SessionWasStarted.Name(), event.SessionWasForked.Name(), event.SessionWasArchived.Name(), event.SessionWasDeleted.Name()}
)

// sessionResources offers the sessions of this node to MCP clients that may read sessions. To the
// router it is a server without anything else. It is safe for concurrent use.
type sessionResources struct {
	chats *sessions.Service

	mu       sync.Mutex
	followed map[string]bool // sessions that somebody subscribes to
}

// offerSessions offers sessions to MCP clients until end is called.
func offerSessions(b *bridge, chats *sessions.Service) (end func(), err error) {
	s, router := &sessionResources{chats: chats, followed: map[string]bool{}}, b.mcp.Router()
	stop, err := bus.Keep(b.core.kernel.Bus, bus.SubscribeOptions{Name: "mcp-sessions", Filter: func(ev event.Event) bool {
		return slices.Contains(listKinds, ev.Kind) || s.follows(ev.SessionID)
	}}, slices.Concat(sessionKinds, listKinds), func(_ context.Context, ev event.Event) error {
		if slices.Contains(listKinds, ev.Kind) {
			router.Changed(sessionsServer, relay.Resources)
		}
		if s.follows(ev.SessionID) {
			router.Updated(sessionsServer, ev.SessionID, []byte("{}"))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.core.resources.Store(s)
	return func() {
		b.core.resources.Store(nil)
		stop()
	}, nil
}

// scopeOf returns the scope that reading from a server of yaya's own needs.
func (c *core) scopeOf(router *relay.Router) func(server string) string {
	return func(name string) string {
		if name != sessionsServer || c.resources.Load() == nil {
			return ""
		}
		for _, s := range router.Servers() {
			if _, own := s.(*sessionResources); own {
				return string(auth.SessionsRead)
			}
		}
		return "" // a configured server has the name
	}
}

func (s *sessionResources) follows(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.followed[id]
}

// Own implements [relay.Own].
func (*sessionResources) Own() {}

// Name implements [relay.ServerInfo].
func (*sessionResources) Name() string { return sessionsServer }

// Prefix implements [relay.ServerInfo].
func (*sessionResources) Prefix() (string, bool) { return sessionsServer, false }

// Has implements [relay.ServerInfo].
func (*sessionResources) Has(capability string) bool {
	return capability == relay.Resources.Needs || capability == "resources.subscribe"
}

// Capabilities implements [relay.ServerInfo].
func (*sessionResources) Capabilities() jsonrpc.Object { return jsonrpc.Object{} }

// Instructions implements [relay.ServerInfo].
func (*sessionResources) Instructions() string { return "" }

// resourceEntry is a resource or a template in a list.
type resourceEntry struct {
	URI         string         `json:"uri,omitempty"`
	Template    string         `json:"uriTemplate,omitempty"`
	Name        string         `json:"name"`
	Title       string         `json:"title,omitempty"`
	Description string         `json:"description"`
	MimeType    string         `json:"mimeType"`
	Annotations map[string]any `json:"annotations,omitempty"`
}

// List implements [relay.Server].
func (s *sessionResources) List(_ context.Context, k relay.Kind) ([]jsonrpc.Object, error) {
	var list []resourceEntry
	switch k {
	case relay.Templates:
		list = []resourceEntry{{
			Template: relay.Qualify(sessionsServer, "") + "{id}", Name: "session", Title: "Session",
			Description: "A conversation with an agent of yaya: its last turns as text", MimeType: "text/plain",
		}}
	case relay.Resources:
		rows, err := s.chats.Recent(maxListedSessions)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			list = append(list, resourceEntry{
				URI: relay.Qualify(sessionsServer, r.ID), Name: r.ID, Title: feature.Prose(r.Title, 200), MimeType: "text/plain",
				Description: feature.Clean(fmt.Sprintf("%s, %s, in %s", r.Status, r.State, r.Workspace), 500),
				Annotations: map[string]any{"lastModified": r.UpdatedAt.Format(time.RFC3339)},
			})
		}
	}
	out := make([]jsonrpc.Object, 0, len(list))
	for _, e := range list {
		raw, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		o, err := jsonrpc.ParseObject(raw)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, nil
}

// Relay implements [relay.Server]: it serves resources/read.
func (s *sessionResources) Relay(_ context.Context, _ relay.Peer, method string, params jsonrpc.Object, edits ...jsonrpc.Edit) (relay.Reply, error) {
	id := ""
	for _, e := range edits {
		if e.Name == relay.Resources.Key {
			id, _ = jsonrpc.AsString(e.Value)
		}
	}
	if method != "resources/read" {
		return relay.Refusal(jsonrpc.CodeMethodNotFound, fmt.Sprintf("sessions have no %s", Printable(method, 100))), nil
	}
	text, err := s.chats.Text(id, maxSessionText)
	if f, is := errors.AsType[*api.Failure](err); is && f.Status == http.StatusNotFound {
		return relay.Refusal(jsonrpc.CodeInvalidParams, fmt.Sprintf("resource not found: there is no session %q", Printable(id, 100))), nil
	}
	if err != nil {
		return relay.Refusal(jsonrpc.CodeInternal, fmt.Sprintf("session %s: %v", Printable(id, 100), err)), nil
	}
	uri, _ := params.String(relay.Resources.Key)
	type content struct {
		URI      string `json:"uri"`
		MimeType string `json:"mimeType"`
		Text     string `json:"text"`
	}
	raw, err := json.Marshal(struct {
		Contents []content `json:"contents"`
	}{[]content{{uri, "text/plain", feature.Prose(text, 2*maxSessionText)}}})
	if err != nil {
		return relay.Reply{}, err
	}
	result, err := jsonrpc.ParseObject(raw)
	return relay.Reply{Result: result}, err
}

// Notify implements [relay.Server]: sessions take no notifications.
func (*sessionResources) Notify(string, string, []byte) bool { return true }

// Subscribe implements [relay.Server].
func (s *sessionResources) Subscribe(_ context.Context, id string) error {
	if _, err := s.chats.Text(id, 0); err != nil {
		return relay.ErrUnknown
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.followed) >= maxFollowedSessions {
		return &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: fmt.Sprintf("%d sessions are subscribed to already: end a subscription first", maxFollowedSessions)}
	}
	s.followed[id] = true
	return nil
}

// Unsubscribe implements [relay.Server].
func (s *sessionResources) Unsubscribe(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.followed, id)
	return nil
}
