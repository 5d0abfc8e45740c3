package gateway

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
)

// peer is the other end of a connection.
type peer struct {
	unix   bool
	scheme string   // by which clients reach us: http or https
	hosts  []string // names by which our end of the connection may be addressed
	guest  *guest   // nil over the socket
	// proxy says that the peer passes on what others ask.
	proxy bool
	// stranger is a peer that may not talk to us without TLS.
	stranger bool
	// sameUser is asked once per connection.
	sameUser func() bool
	// tool is asked once per connection, and says that its other end is a process
	// that a tool or a server of ours has started.
	tool func() bool
}

func (p *peer) owner() bool { return p != nil && (p.unix || p.sameUser()) }

type peerKey struct{}

func (s *Server) withPeer(ctx context.Context, c net.Conn) context.Context {
	p := &peer{sameUser: func() bool { return false }, tool: func() bool { return false }, scheme: "http", guest: guestOf(c)}
	switch local := c.LocalAddr().(type) {
	case *net.UnixAddr:
		p.unix = true // the file's mode lets nobody else in
		if s.cfg.Tool != nil {
			p.tool = sync.OnceValue(func() bool { return s.cfg.Tool(peerPID(c), 0) })
		}
	case *net.TCPAddr:
		if s.cfg.TLS != nil || s.cfg.Proxies != nil {
			p.scheme = "https"
		}
		_, port, _ := net.SplitHostPort(local.String())
		p.hosts = hosts(local, port, s.cfg.Hosts)
		remote, ok := c.RemoteAddr().(*net.TCPAddr)
		switch {
		case !ok:
			p.stranger = true
		case s.cfg.Proxies != nil:
			// Behind a proxy, whoever comes from this machine may be anybody.
			addr := remote.AddrPort().Addr().Unmap()
			p.proxy = slices.ContainsFunc(s.cfg.Proxies, func(n netip.Prefix) bool { return n.Contains(addr) })
			p.stranger = !p.proxy
		default:
			owner := sync.OnceValues(func() (uint32, bool) {
				if !remote.IP.IsLoopback() {
					return 0, false
				}
				return ownsSocket(remote, local)
			})
			p.sameUser = func() bool { _, ok := owner(); return ok }
			if s.cfg.Tool != nil {
				p.tool = sync.OnceValue(func() bool { inode, ok := owner(); return ok && s.cfg.Tool(0, inode) })
			}
		}
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// Address is where a request comes from. What a request says about that counts
// only if a proxy has said it (R6, AU-44): the last of X-Forwarded-For.
func Address(r *http.Request) netip.Addr {
	if p := peerOf(r.Context()); p != nil && p.proxy {
		all := r.Header["X-Forwarded-For"]
		if len(all) == 0 {
			return netip.Addr{}
		}
		last := all[len(all)-1]
		if addr, err := netip.ParseAddr(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])); err == nil {
			return addr
		}
		return netip.Addr{}
	}
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil { // the Unix socket
		return netip.Addr{}
	}
	return ap.Addr()
}

// Audience is the URL that the client of a request has dialled, with the scheme of
// a WebSocket: what a challenge is for.
func Audience(r *http.Request) string {
	scheme := "ws"
	if p := peerOf(r.Context()); p != nil && p.scheme == "https" {
		scheme = "wss"
	}
	return scheme + "://" + r.Host + r.URL.Path
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
		if p != nil && p.stranger {
			deny(w, r, http.StatusForbidden, "this listener is for its proxy")
			return
		}
		if p == nil || (!p.unix && !slices.Contains(p.hosts, r.Host)) {
			deny(w, r, http.StatusForbidden, "unknown Host")
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && !p.sameOrigin(origin) {
			deny(w, r, http.StatusForbidden, "foreign Origin")
			return
		}
		if err := cross.Check(r); err != nil {
			deny(w, r, http.StatusForbidden, "cross-origin request")
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (p *peer) sameOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == p.scheme && !p.unix && slices.Contains(p.hosts, u.Host)
}

// hosts are the names by which the listener may be addressed: those of this
// machine, the address that was dialled, which no name can be rebound to, and
// those that were configured.
func hosts(at *net.TCPAddr, port string, configured []string) []string {
	out := []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}
	if !at.IP.IsLoopback() {
		out = append(out, at.String())
	}
	for _, h := range configured {
		out = append(out, h, h+":"+port)
	}
	return out
}
