package gateway

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strings"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/fastpath"
)

// fastPath returns the listener that serves the simple requests of MCP clients, and leaves the other
// connections to net/http. Those of an adopted listener have been served before.
func (s *Server) fastPath(l net.Listener, secure, adopted bool) *fastpath.Listener {
	var with *tls.Config
	if secure {
		with = s.tls
	}
	return fastpath.Listen(l, fastpath.Config{
		TLS:         with,
		Handler:     s.http.Handler,
		Takes:       func(path string) bool { return path == "/mcp" || strings.HasPrefix(path, "/mcp/") },
		Admit:       s.admit,
		Context:     func(c net.Conn) context.Context { return s.withPeer(s.http.BaseContext(l), c) },
		State:       s.opened.track,
		Kept:        adopted,
		HeadTimeout: readHeaderTimeout, IdleTimeout: idleTimeout,
		ErrorLog: s.http.ErrorLog,
	})
}

// admit returns the handler of the requests with a head on a connection. Whether the local
// owner may make a request without a token depends on the connection and the head alone, so
// for that, and for nobody else, the answer lasts: the handler is that of MCP, and the request
// has its caller. All other requests pass all checks each time. Heads of strangers are not
// kept: they could fill the memory.
func (s *Server) admit(r *http.Request) (http.Handler, *http.Request, bool) {
	known := func() bool {
		g := peerOf(r.Context()).guest
		return g != nil && g.known.Load()
	}
	if len(r.Header["Authorization"]) > 0 {
		return s.http.Handler, r, known()
	}
	var t trial
	s.checked.ServeHTTP(&nobody{http.Header{}}, r.WithContext(context.WithValue(r.Context(), trialKey{}, &t)))
	if t.passed == nil || auth.FromContext(t.passed.Context()).Kind != auth.Owner {
		return s.http.Handler, r, known()
	}
	return s.admitted, t.passed, true
}

// trial is a request that passes the checks and is not served.
type trial struct{ passed *http.Request }

type trialKey struct{}

// tried serves requests, and notes those that are only tried.
func tried(next http.Handler) http.Handler {
	if next == nil {
		return nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if t, ok := r.Context().Value(trialKey{}).(*trial); ok && t.passed == nil {
			t.passed = r
			return
		}
		next.ServeHTTP(w, r)
	})
}

// nobody gets the refusal of a request that is only tried.
type nobody struct{ header http.Header }

// Header implements [http.ResponseWriter].
func (n *nobody) Header() http.Header { return n.header }

// WriteHeader implements [http.ResponseWriter].
func (n *nobody) WriteHeader(int) {}

// Write implements [http.ResponseWriter].
func (n *nobody) Write(b []byte) (int, error) { return len(b), nil }
