package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/netaddr"
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
	// local is a peer on this machine that may be the owner.
	local bool
	// who is the process at the other end. It is established once, when it is first
	// asked for: whoIs says why that is enough. Only an unknown one is looked for again.
	who func() identity
}

// identity describes the process at the other end of a connection, as far as it is known.
type identity struct {
	refused string // why it is not the owner; "" if it is
	// unknown says that there was no descriptor left to find out with.
	unknown bool
	// tool says that it is the owner's, but was started by a tool or a server of
	// yaya: it does not speak for its user.
	tool bool
}

// refusal says why a request without a token is not its owner's, "" if it is, and
// elsewhere if nobody there is.
func (p *peer) refusal(r *http.Request) string {
	switch {
	case p == nil || !p.local:
		return elsewhere
	case netaddr.Forwarded(r.Header):
		return "the request came through a proxy: start yaya with --behind-proxy if that is meant, and send a token"
	}
	return p.who().refused
}

const elsewhere = "no"

// noDescriptors is the reason why a peer is unknown when descriptors have run out.
const noDescriptors = "yaya has no file descriptors left to find out who is at the other end of this connection"

// unknown reports whether it cannot be found out at present who sends a request without a token.
func (p *peer) unknown(r *http.Request) bool {
	return p != nil && p.local && !netaddr.Forwarded(r.Header) && p.who().unknown
}

// lasting keeps the first verdict that look returns.
func lasting(look func() identity) func() identity {
	var mu sync.Mutex
	var verdict *identity
	return func() identity {
		mu.Lock()
		defer mu.Unlock()
		if verdict != nil {
			return *verdict
		}
		id := look()
		if !id.unknown {
			verdict = &id
		}
		return id
	}
}

// strangers tells the log of local connections that are not the owner's: once a
// second for a reason, with how many there were.
type strangers struct {
	mu   sync.Mutex
	told map[string]time.Time // there are few reasons
	more map[string]int
}

func (s *strangers) tell(log zerolog.Logger, from net.Addr, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil {
		s.told, s.more = map[string]time.Time{}, map[string]int{}
	}
	if time.Since(s.told[reason]) < time.Second {
		s.more[reason]++
		return
	}
	log.Warn().Stringer("remote", from).Str("reason", reason).Int("more_before", s.more[reason]).Msg("a connection from this machine is not taken for the owner's")
	s.told[reason], s.more[reason] = time.Now(), 0
}

type peerKey struct{}

func (s *Server) withPeer(ctx context.Context, c net.Conn) context.Context {
	g := guestOf(c)
	if g != nil && g.peer != nil { // the fast path has handed the connection on
		return context.WithValue(ctx, peerKey{}, g.peer)
	}
	p := &peer{scheme: "http", guest: g}
	if g != nil {
		g.peer = p
	}
	switch local := c.LocalAddr().(type) {
	case *net.UnixAddr:
		p.unix, p.local = true, true
	case *net.TCPAddr:
		_, secure := c.(encrypted)
		if secure || s.cfg.Proxies != nil {
			p.scheme = "https"
		}
		configured := s.cfg.Hosts
		if s.cfg.TLS != nil && !secure {
			// The listener for this machine alone has no certificate that would prove a
			// name: whoever answers for one in the DNS could make it lead here.
			configured = nil
		}
		_, port, _ := net.SplitHostPort(local.String())
		p.hosts = hosts(local, port, configured)
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
			p.local = remote.IP.IsLoopback()
		}
	}
	if p.local {
		accepted := bootTicks()
		p.who = lasting(func() identity {
			id := s.whoIs(c, accepted)
			if id.refused != "" {
				s.strangers.tell(s.cfg.Log, c.RemoteAddr(), id.refused)
			}
			return id
		})
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// Address returns the address that a request comes from. A header counts only if a proxy has sent it:
// the last address of X-Forwarded-For.
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

// Audience returns the URL that the client of a request dialed, with the scheme of a
// WebSocket. A challenge is bound to it.
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

// sameSite refuses what a foreign web page could send: an unknown Host (DNS rebinding), a
// foreign Origin, and, for routes that are not public, whatever a browser says comes from
// another site or another port, on every method: the page could not read the answer to a
// GET, but the call would have been made, and by the owner. The page itself is public, so
// links to it work.
func (s *Server) sameSite(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := peerOf(r.Context())
		if p != nil && p.stranger {
			s.deny(w, r, http.StatusForbidden, "this listener is for its proxy")
			return
		}
		if p == nil || (!p.unix && !slices.ContainsFunc(p.hosts, func(h string) bool { return strings.EqualFold(h, r.Host) })) {
			s.deny(w, r, http.StatusForbidden, "unknown Host")
			return
		}
		// A browser sends one of each. Of two, another reader may believe the other.
		for _, name := range []string{"Origin", "Sec-Fetch-Site"} {
			if len(r.Header[name]) > 1 {
				s.deny(w, r, http.StatusForbidden, "more than one %s", name)
				return
			}
		}
		if origin := r.Header.Get("Origin"); origin != "" && !p.sameOrigin(origin) {
			s.deny(w, r, http.StatusForbidden, "foreign Origin")
			return
		}
		err := cross.Check(r)
		switch r.Header.Get("Sec-Fetch-Site") {
		case "", "same-origin", "none": // none is an address that a person has typed, or a bookmark
		default:
			if !s.routed.Public(r) {
				err = errCrossOrigin
			}
		}
		if err != nil {
			s.deny(w, r, http.StatusForbidden, "cross-origin request: only pages of this yaya may send it; to open it by hand, type its address")
			return
		}
		next.ServeHTTP(w, r)
	})
}

var errCrossOrigin = errors.New("cross-origin request")

// sameOrigin compares an origin as it is serialised (RFC 6454 section 6.2): scheme
// and host, and nothing that a parser could read in two ways.
func (p *peer) sameOrigin(origin string) bool {
	host, ok := strings.CutPrefix(origin, p.scheme+"://")
	return ok && !p.unix && slices.Contains(p.hosts, host)
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
