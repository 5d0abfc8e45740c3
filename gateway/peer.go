package gateway

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
)

// peer is the other end of a connection.
type peer struct {
	unix  bool
	hosts []string // names by which our end of the connection may be addressed
	// sameUser is asked once per connection.
	sameUser func() bool
}

func (p *peer) owner() bool { return p != nil && (p.unix || p.sameUser()) }

type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn) context.Context {
	p := &peer{sameUser: func() bool { return false }}
	switch local := c.LocalAddr().(type) {
	case *net.UnixAddr:
		p.unix = true // the file's mode lets nobody else in
	case *net.TCPAddr:
		_, port, _ := net.SplitHostPort(local.String())
		p.hosts = hosts(port)
		remote, ok := c.RemoteAddr().(*net.TCPAddr)
		p.sameUser = sync.OnceValue(func() bool { return ok && remote.IP.IsLoopback() && ownsSocket(remote, local) })
	}
	return context.WithValue(ctx, peerKey{}, p)
}

func peerOf(ctx context.Context) *peer {
	p, _ := ctx.Value(peerKey{}).(*peer)
	return p
}

// sameSite refuses what a foreign web page could send: an unknown Host (DNS
// rebinding) and a foreign Origin, on every method (R16, DN-01).
func (s *Server) sameSite(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := peerOf(r.Context())
		if p == nil || (!p.unix && !slices.Contains(p.hosts, r.Host)) {
			http.Error(w, "unknown Host", http.StatusForbidden)
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !p.sameOrigin(origin) {
			http.Error(w, "foreign Origin", http.StatusForbidden)
			return
		}
		if err := cross.Check(r); err != nil {
			http.Error(w, "cross-origin request", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (p *peer) sameOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && !p.unix && slices.Contains(p.hosts, u.Host)
}

// hosts are the names by which the listener may be addressed.
func hosts(port string) []string {
	return []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}
}
