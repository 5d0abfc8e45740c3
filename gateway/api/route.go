package api

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/auth"
)

// Where says where the user that runs yaya needs no token.
type Where int

// Places, each with those before it.
const (
	Nowhere Where = iota
	Socket        // over the Unix socket
	Local         // from this machine
)

// Access says who may use a route. It denies everybody whom it does not name, and a route
// with the zero value is not accepted: see [NewTable].
type Access struct {
	Public   bool       // whoever reaches the listener
	Owner    Where      // the user that runs yaya
	Device   auth.Scope // devices and lasting tokens with that scope; "" lets none in
	External bool       // who has a token of the configured issuer
	Vital    bool       // is served even when there is no memory for anything else
}

// For is for the user that runs yaya, from this machine, and devices with a scope.
func For(scope auth.Scope) Access { return Access{Owner: Local, Device: scope} }

// OverSocket is for the user that runs yaya, over the Unix socket, and nobody else.
func OverSocket() Access { return Access{Owner: Socket} }

// Public is for whoever reaches the listener.
func Public() Access { return Access{Public: true} }

func (a Access) set() bool {
	return a.Public || a.Owner != Nowhere || a.Device != "" || a.External
}

// Route is one route, and who may use it.
type Route struct {
	Pattern   string // as [http.ServeMux] takes it
	Access    Access
	Operation string // its id in the OpenAPI document; "" if it is not there
	Note      string // further conditions, for people
	Style     Style  // of what is refused
	// Handler serves it. A route without one answers the requests below its pattern that
	// no other route takes: 404, or 405 with the methods that the resource knows.
	Handler http.Handler
	// around wraps all routes of the API; nil for none.
	around func(http.Handler) http.Handler
}

// Table serves routes. It is safe for concurrent use.
type Table struct {
	mux    *http.ServeMux
	routes map[string]Route
}

// NewTable returns a table of routes, with the handler that wrap makes of each. It panics,
// as [http.ServeMux] does, if a route has no access policy or two have one pattern:
// nothing is served by accident. A route that is not public refuses a request that wrap
// has not established to be somebody's.
func NewTable(routes []Route, wrap func(Route) http.Handler) *Table {
	t := &Table{http.NewServeMux(), make(map[string]Route, len(routes))}
	for _, r := range slices.Concat(routes, above(routes)) {
		if !r.Access.set() || r.Style == nil {
			panic(fmt.Sprintf("the route %q has no access policy, or no style", r.Pattern))
		}
		t.routes[r.Pattern] = r
		if r.Handler == nil {
			r.Handler = t.nothing(r.Style)
		}
		if !r.Access.Public {
			r.Handler = somebodys(r.Style, r.Handler)
		}
		if r.around != nil {
			r.Handler = r.around(r.Handler)
		}
		t.mux.Handle(r.Pattern, wrap(r))
	}
	return t
}

// above returns routes for what stands right above the patterns that have whatever is below
// them, such as /api of /api/: nothing is there. Without them the mux would redirect there,
// in its own words.
func above(routes []Route) (out []Route) {
	for _, r := range routes {
		base, all := strings.CutSuffix(r.Pattern, "/")
		if at := strings.LastIndex(r.Pattern, "/{"); strings.HasSuffix(r.Pattern, "...}") {
			base, all = r.Pattern[:at], true
		}
		if all && base != "" && !slices.ContainsFunc(routes, func(o Route) bool { return o.Pattern == base }) {
			out = append(out, Route{Pattern: base, Access: r.Access, Style: r.Style, around: r.around})
		}
	}
	return out
}

// ServeHTTP implements [http.Handler]. It answers what the mux would answer in its own
// words: a path that is not canonical, and a request that names no path.
func (t *Table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch p := r.URL.Path; {
	case r.Method == http.MethodConnect || !strings.HasPrefix(p, "/"): // OPTIONS *, for one
		Refuse(w, r, Detail, Fail(http.StatusBadRequest, "the request names no resource: yaya is not a proxy, and knows no request about all of it"))
	case strings.Contains(p, "//") || strings.Contains(p, "/."):
		t.moved(w, r)
	default:
		t.mux.ServeHTTP(w, r)
	}
}

// moved serves a request whose path may not be canonical: it redirects to the resource, if
// there is one.
func (t *Table) moved(w http.ResponseWriter, r *http.Request) {
	raw := r.URL.EscapedPath()
	at := path.Clean(raw)
	if strings.HasSuffix(raw, "/") && at != "/" {
		at += "/"
	}
	if at == raw {
		t.mux.ServeHTTP(w, r)
		return
	}
	there := &http.Request{Method: r.Method, Host: r.Host, URL: &url.URL{RawPath: at, RawQuery: r.URL.RawQuery}}
	var err error
	if there.URL.Path, err = url.PathUnescape(at); err != nil { // cannot be: it is a part of one that was read
		Refuse(w, r, Detail, Fail(http.StatusBadRequest, "the path cannot be read"))
		return
	}
	if route := t.route(there); route.Handler != nil {
		w.Header().Set("Location", there.URL.RequestURI())
		Refuse(w, r, route.Style, Fail(http.StatusTemporaryRedirect, "this resource is at %s", at))
		return
	}
	t.nothing(t.Style(there)).ServeHTTP(w, there.WithContext(r.Context()))
}

// route returns the route that a request is for, the zero one for none.
func (t *Table) route(r *http.Request) Route {
	pattern := r.Pattern
	if pattern == "" {
		_, pattern = t.mux.Handler(r)
	}
	return t.routes[pattern]
}

// Public reports whether the route that a request is for is for whoever reaches the
// listener.
func (t *Table) Public(r *http.Request) bool { return t.route(r).Access.Public }

// Style returns the style of the route that a request is for.
func (t *Table) Style(r *http.Request) Style {
	if style := t.route(r).Style; style != nil {
		return style
	}
	return Detail
}

// nothing answers what no route does: in the style of the resource, where there is one
// with other methods.
func (t *Table) nothing(style Style) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if allowed, style := t.methods(r); allowed != "" {
			w.Header().Set("Allow", allowed)
			Refuse(w, r, style, Fail(http.StatusMethodNotAllowed, "this resource knows %s", allowed))
			return
		}
		Refuse(w, r, style, Fail(http.StatusNotFound, "resource not found"))
	})
}

// methods returns the methods by which the resource of a request can be used, "" for none,
// and its style.
func (t *Table) methods(r *http.Request) (allowed string, style Style) {
	var out []string
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if route := t.route(&http.Request{Method: m, URL: r.URL, Host: r.Host}); route.Handler != nil {
			out, style = append(out, m), route.Style
		}
	}
	return strings.Join(out, ", "), style
}

// somebodys refuses requests that are nobody's.
func somebodys(style Style, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := auth.Established(r.Context()); err != nil {
			Refuse(w, r, style, Fail(http.StatusForbidden, "%v", err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// identify gives a request an id, which its answer has, too.
func identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := Identified(w, r)
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, id)))
	})
}

// Identified returns the id of a request, which it gets if it has none; the answer has it,
// too, as X-Request-Id.
func Identified(w http.ResponseWriter, r *http.Request) string {
	id := RequestID(r.Context())
	if id == "" {
		id = w.Header().Get(RequestIDHeader)
	}
	if id == "" {
		id = "req_" + rand.Text()
	}
	w.Header().Set(RequestIDHeader, id)
	return id
}
