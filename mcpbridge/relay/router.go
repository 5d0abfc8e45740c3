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
	Method string // that asks for it
	Member string // of the result that holds the entries
	Key    string // member of an entry that names it
	Note   string // that says it has changed
	Needs  string // capability of a server that has it
}

// The lists besides that of tools, which are the registry's.
var (
	Prompts   = Kind{"prompts/list", "prompts", "name", "notifications/prompts/list_changed", "prompts"}
	Resources = Kind{"resources/list", "resources", "uri", "notifications/resources/list_changed", "resources"}
	Templates = Kind{"resources/templates/list", "resourceTemplates", "uriTemplate", "notifications/resources/list_changed", "resources"}
)

// Server is a connected server.
type Server interface {
	Name() string
	// Prefix starts the names of its prompts; bare says that they have none.
	Prefix() (prefix string, bare bool)
	// Has reports whether the server has declared a capability, or a part of one
	// as in "resources.subscribe". A server that is away has none.
	Has(capability string) bool
	// Capabilities is what the server has declared; zero while it is away.
	Capabilities() jsonrpc.Object
	// Instructions is what the server tells the models of its clients, as far as that
	// is approved; "" when it says nothing. One that is away may be spoken for.
	Instructions() string
	// List returns the entries of a list, complete and in the server's order.
	List(ctx context.Context, k Kind) ([]jsonrpc.Object, error)
	// Relay sends a client's request with edits to its params.
	Relay(ctx context.Context, peer Peer, method string, params jsonrpc.Object, edits ...jsonrpc.Edit) (Reply, error)
	// Notify passes a notification of a client on, if the server has a session
	// that is its own. It does not block, and reports false when it has dropped the
	// notification because too many wait.
	Notify(client, method string, params []byte) bool
	// Subscribe and Unsubscribe concern updates of one resource.
	Subscribe(ctx context.Context, uri string) error
	Unsubscribe(ctx context.Context, uri string) error
}

// Listener is told what concerns no request. Its methods must not block.
type Listener interface {
	// Changed says that a list of a server has changed.
	Changed(server string, k Kind)
	// Message is a notification of a server for one client, for all of a principal's
	// when client is "", or for all who see the server when principal is "" too.
	Message(server, principal, client, method string, params []byte)
}

// Subscriber gets the updates of the resources that it has subscribed to, with
// the URI that it knows them by. It must not block.
type Subscriber interface {
	Updated(server, uri string, params []byte)
}

// Toolbox is a [Server] that knows its tools.
type Toolbox interface {
	// HasTool reports whether the server lists a tool of that name, its own one, whether
	// or not anybody may call it.
	HasTool(name string) bool
}

// Router joins the servers. Its methods are safe for concurrent use.
type Router struct {
	// Servers returns the servers by name.
	Servers func() []Server

	mu        sync.Mutex
	listeners map[Listener]struct{}
	subs      map[resource]map[Subscriber]string // → the subscriber's name for it
}

type resource struct{ server, uri string }

// Entry is an entry of a list under the name that clients know it by.
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

// ArtifactURI is the resource that an artifact of the client's own session is.
func ArtifactURI(id string) string { return artifacts + id }

// Artifact takes the URI of an artifact apart.
func Artifact(uri string) (id string, ok bool) { return strings.CutPrefix(uri, artifacts) }

// Qualify returns the URI by which a resource can always be read.
func Qualify(server, uri string) string {
	return qualified + url.PathEscape(server) + "/" + url.PathEscape(uri)
}

// Qualified takes a qualified URI apart.
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

// List returns the entries of all servers, in the order of the servers' names. A
// server that cannot list is left out.
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

// ErrUnknown says that no server has what is asked for.
var ErrUnknown = errors.New("no server has it")

// Find returns the entry of a list by the name that clients know.
func (r *Router) Find(ctx context.Context, k Kind, name string) (Entry, error) {
	for _, e := range r.List(ctx, k) {
		if e.Name == name {
			return e, nil
		}
	}
	return Entry{}, ErrUnknown
}

// Resource finds the server of a URI: the one that is named by it, lists it, or
// has a template for it; else the only one that has resources at all.
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

// Matches reports whether a URI can come from a template of RFC 6570: whether it
// has the template's literal parts in their order. Its cost is linear in both.
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

// Listen registers a listener; the returned function ends it.
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

// Message passes a server's notification on to the listeners.
func (r *Router) Message(server, principal, client, method string, params []byte) {
	r.each(func(l Listener) { l.Message(server, principal, client, method, params) })
}

// Updated passes an update of a resource on to its subscribers.
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

// Subscribe subscribes to updates of a resource, unless the subscriber may not see the
// server that has it: then nobody has it. Only the first subscriber's request reaches the
// server.
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

// drop removes a subscription and reports whether it was there and the last one.
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

// Unsubscribe ends one subscription, or all of the subscriber's when uri is "".
// It is no error to end what does not exist.
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
