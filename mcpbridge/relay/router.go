package relay

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Kind is a list that servers keep.
type Kind struct {
	Method string // method that lists it
	Member string // member of the result with the entries
	Key    string // member of an entry with its name
	Note   string // notification of its changes
	Needs  string // capability that a server declares
}

// The lists except that of tools, which the registry keeps.
var (
	Prompts   = Kind{"prompts/list", "prompts", "name", "notifications/prompts/list_changed", "prompts"}
	Resources = Kind{"resources/list", "resources", "uri", "notifications/resources/list_changed", "resources"}
	Templates = Kind{"resources/templates/list", "resourceTemplates", "uriTemplate", "notifications/resources/list_changed", "resources"}
)

// Server is a connected server.
type Server interface {
	ServerInfo
	// List returns the entries of a list, complete and in the server's order.
	List(ctx context.Context, k Kind) ([]jsonrpc.Object, error)
	// Relay sends a client's request with edits to its params.
	Relay(ctx context.Context, peer Peer, method string, params jsonrpc.Object, edits ...jsonrpc.Edit) (Reply, error)
	// Notify forwards a client's notification if the client has its own session with the
	// server. It does not block, and reports false if it dropped the notification because too
	// many wait.
	Notify(client, method string, params []byte) bool
	// Subscribe and Unsubscribe start and end the updates of one resource.
	Subscribe(ctx context.Context, uri string) error
	Unsubscribe(ctx context.Context, uri string) error
}

// ServerInfo says what a server is and can do.
type ServerInfo interface {
	Name() string
	// Prefix is the prefix of its prompts' names; bare says that they have none.
	Prefix() (prefix string, bare bool)
	// Has reports whether the server has declared a capability, or a part of one as in
	// "resources.subscribe". A disconnected server has none.
	Has(capability string) bool
	// Capabilities is the server's declared capabilities; zero while it is disconnected.
	Capabilities() jsonrpc.Object
	// Instructions is the server's approved instructions for its clients' models; "" if there
	// are none. A disconnected server may still have instructions.
	Instructions() string
}

// Listener receives notifications that concern no request. Its methods must not block.
type Listener interface {
	// Changed is called when a list of a server has changed.
	Changed(server string, k Kind)
	// Message receives a server's notification for one client; for all of a principal's clients
	// if client is ""; for all clients that see the server if principal is "", too.
	Message(server, principal, client, method string, params []byte)
}

// Subscriber receives updates of its subscribed resources, under the URIs that it knows. It
// must not block.
type Subscriber interface {
	Updated(server, uri string, params []byte)
}

// Toolbox is a [Server] that knows its tools.
type Toolbox interface {
	// HasTool reports whether the server lists a tool under that original name, whether or not
	// // anybody may call it.
	HasTool(name string) bool
}

// Own is a [Server] of yaya's own: only URIs that name it reach it.
type Own interface{ Own() }

// Router merges the servers. Its methods are safe for concurrent use.
type Router struct {
	// Servers returns the servers by name.
	Servers func() []Server

	mu        sync.Mutex
	listeners map[Listener]struct{}
	subs      map[resource]map[Subscriber]string // → the subscriber's name for it
}

type resource struct{ server, uri string }

// Entry is an entry of a list, under its name for clients.
type Entry struct {
	Server Server
	Own    string // its name at the server
	Name   string
	Raw    jsonrpc.Object
}

const (
	qualified = "yaya://"
	artifacts = "yaya:artifacts/"
)

// ArtifactURI returns the URI of an artifact of the client's own session.
func ArtifactURI(id string) string { return artifacts + id }

// Artifact parses the URI of an artifact.
func Artifact(uri string) (id string, ok bool) { return strings.CutPrefix(uri, artifacts) }

// Qualify returns the URI that always reads a resource of a server.
func Qualify(server, uri string) string {
	return qualified + url.PathEscape(server) + "/" + url.PathEscape(uri)
}

// Qualified parses a qualified URI.
func Qualified(uri string) (server, own string, ok bool) {
	rest, ok := strings.CutPrefix(uri, qualified)
	if !ok {
		return "", "", false
	}
	s, u, ok := strings.Cut(rest, "/")
	if !ok {
		return "", "", false
	}
	server, err1 := url.PathUnescape(s)
	own, err2 := url.PathUnescape(u)
	return server, own, err1 == nil && err2 == nil && server != ""
}

// List returns the entries of all servers, in the order of the servers' names. It omits a
// server that fails to list.
func (r *Router) List(ctx context.Context, k Kind) []Entry {
	all := r.with(k.Needs)
	lists := make([][]jsonrpc.Object, len(all))
	var wg sync.WaitGroup
	for i, s := range all {
		wg.Go(func() {
			if list, err := s.List(ctx, k); err == nil {
				lists[i] = list
			}
		})
	}
	wg.Wait()
	var out []Entry
	taken := map[string]bool{}
	for i, s := range all {
		for _, raw := range lists[i] {
			own, ok := raw.String(k.Key)
			if !ok || own == "" {
				continue
			}
			name := own
			if k.Key == "name" {
				if prefix, bare := s.Prefix(); !bare {
					name = feature.QualifiedName(prefix, own)
				}
				if taken[name] {
					name = feature.QualifiedName(s.Name(), own)
				}
			} else if taken[name] {
				name = Qualify(s.Name(), own)
			}
			if taken[name] {
				continue // the same server lists it twice
			}
			taken[name] = true
			out = append(out, Entry{s, own, name, raw})
		}
	}
	return out
}

func (r *Router) with(capability string) []Server {
	return slices.DeleteFunc(r.Servers(), func(s Server) bool { return !s.Has(capability) })
}

// ErrUnknown says that no server has the requested item.
var ErrUnknown = errors.New("no server has it")

// Find returns the entry of a list by its name for clients.
func (r *Router) Find(ctx context.Context, k Kind, name string) (Entry, error) {
	for _, e := range r.List(ctx, k) {
		if e.Name == name {
			return e, nil
		}
	}
	return Entry{}, ErrUnknown
}

// Resource finds the server of a URI: the server that the URI names, that lists it, or that has
// a matching template; otherwise, the only server with resources.
func (r *Router) Resource(ctx context.Context, uri string) (Server, string, error) {
	all := r.with("resources")
	if name, own, ok := Qualified(uri); ok {
		for _, s := range all {
			if s.Name() == name {
				return s, own, nil
			}
		}
		return nil, "", ErrUnknown
	}
	all = slices.DeleteFunc(all, func(s Server) bool { _, own := s.(Own); return own })
	if len(all) == 1 {
		return all[0], uri, nil
	}
	if e, err := r.Find(ctx, Resources, uri); err == nil {
		return e.Server, e.Own, nil
	}
	for _, e := range r.List(ctx, Templates) {
		if Matches(e.Own, uri) {
			return e.Server, uri, nil
		}
	}
	return nil, "", ErrUnknown
}

// Matches reports whether a URI can come from a template of RFC 6570: whether it contains the
// template's literal parts in their order. Its cost is linear in both.
func Matches(template, uri string) bool {
	first := true
	for {
		literal, rest, more := strings.Cut(template, "{")
		switch {
		case first && !strings.HasPrefix(uri, literal):
			return false
		case first:
			uri = uri[len(literal):]
		case !more:
			return strings.HasSuffix(uri, literal)
		default:
			i := strings.Index(uri, literal)
			if i < 0 {
				return false
			}
			uri = uri[i+len(literal):]
		}
		if !more {
			return uri == ""
		}
		first = false
		_, template, _ = strings.Cut(rest, "}")
	}
}

// Listen registers a listener; the returned function removes it.
func (r *Router) Listen(l Listener) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listeners == nil {
		r.listeners = map[Listener]struct{}{}
	}
	r.listeners[l] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.listeners, l)
	}
}

func (r *Router) each(f func(Listener)) {
	r.mu.Lock()
	all := make([]Listener, 0, len(r.listeners))
	for l := range r.listeners {
		all = append(all, l)
	}
	r.mu.Unlock()
	for _, l := range all {
		f(l)
	}
}

// Changed tells the listeners that a list of a server has changed.
func (r *Router) Changed(server string, k Kind) {
	r.each(func(l Listener) { l.Changed(server, k) })
}

// Message forwards a server's notification to the listeners.
func (r *Router) Message(server, principal, client, method string, params []byte) {
	r.each(func(l Listener) { l.Message(server, principal, client, method, params) })
}

// Updated forwards an update of a resource to its subscribers.
func (r *Router) Updated(server, uri string, params []byte) {
	r.mu.Lock()
	type target struct {
		s    Subscriber
		name string
	}
	var to []target
	for s, name := range r.subs[resource{server, uri}] {
		to = append(to, target{s, name})
	}
	r.mu.Unlock()
	for _, t := range to {
		t.s.Updated(server, t.name, params)
	}
}

// Subscribe subscribes to updates of a resource. If the subscriber may not see the server, the
// resource is unknown. Only the first subscriber's request reaches the server.
func (r *Router) Subscribe(ctx context.Context, sub Subscriber, uri string, sees func(server string) bool) error {
	s, own, err := r.Resource(ctx, uri)
	if err == nil && !sees(s.Name()) {
		err = ErrUnknown
	}
	if err != nil {
		return err
	}
	key := resource{s.Name(), own}
	r.mu.Lock()
	if r.subs == nil {
		r.subs = map[resource]map[Subscriber]string{}
	}
	first := len(r.subs[key]) == 0
	if first {
		r.subs[key] = map[Subscriber]string{}
	}
	r.subs[key][sub] = uri
	r.mu.Unlock()
	if !first {
		return nil
	}
	if err := s.Subscribe(ctx, own); err != nil {
		r.drop(key, sub)
		return err
	}
	return nil
}

// drop removes a subscription and reports whether it existed and was the last one.
func (r *Router) drop(key resource, sub Subscriber) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.subs[key][sub]; !ok {
		return false
	}
	delete(r.subs[key], sub)
	if len(r.subs[key]) > 0 {
		return false
	}
	delete(r.subs, key)
	return true
}

// Unsubscribe ends one subscription, or all of the subscriber's if uri is "". Ending a
// subscription that does not exist is not an error.
func (r *Router) Unsubscribe(ctx context.Context, sub Subscriber, uri string) error {
	var keys []resource
	r.mu.Lock()
	for key, subs := range r.subs {
		if name, ok := subs[sub]; ok && (uri == "" || name == uri) {
			keys = append(keys, key)
		}
	}
	r.mu.Unlock()
	var errs []error
	for _, key := range keys {
		if !r.drop(key, sub) {
			continue
		}
		for _, s := range r.Servers() {
			if s.Name() == key.server {
				errs = append(errs, s.Unsubscribe(ctx, key.uri))
			}
		}
	}
	return errors.Join(errs...)
}
