package gateway

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/fair"
)

// maxConns bounds the TCP connections, however many files may be open.
const maxConns = 32 << 10

// connsFor returns how many TCP connections there may be when a process may have so
// many files open: half of them. The rest is for servers, tapes, and the socket.
func connsFor(files uint64) int {
	return int(max(min(files/2, maxConns), 64)) //nolint:gosec // bounded
}

// openFiles returns how many files this process may have open.
func openFiles() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 1024 // the usual least
	}
	return uint64(l.Cur) //nolint:gosec,unconvert,nolintlint // signed on some systems, and not negative
}

// conns are the open TCP connections. Half of the places are for strangers: those on
// which nobody has shown a right yet. There a newcomer always gets in, if need be
// for the oldest connection of the network that has most, so a flood displaces
// itself. The other half is for the known, which are never displaced: connections on
// which a device or the local owner has made a request. A quarter of these only the
// owner can have. Connections of the Unix socket are its owner's, and not counted.
type conns struct {
	max int // of each half
	log zerolog.Logger

	mu        sync.Mutex
	strangers *fair.Places[netip.Prefix, *guest]
	known     *fair.Shares[string] // by principal
}

// newConns returns places for that many connections. Behind a proxy every connection
// has the proxy's address, so addresses do not tell parties apart.
func newConns(total int, proxied bool, log zerolog.Logger) *conns {
	half := total / 2
	each := half / 4
	if proxied {
		each = half
	}
	return &conns{
		max: half, strangers: fair.New[netip.Prefix, *guest](half, each), known: fair.NewShares[string](half),
		log: log.Sample(&zerolog.BurstSampler{Burst: 1, Period: fullLogged}),
	}
}

const fullLogged = 10 * time.Second // between two lines that say that places were taken

// guest is a TCP connection that holds one of the places.
type guest struct {
	*net.TCPConn
	c      *conns
	owned  func() bool // the local owner is at the other end
	known  atomic.Bool
	closed bool // c.mu guards it, and what follows
	place  *fair.Place[netip.Prefix, *guest]
	who    *string // whose place among the known it has; nil for none
}

// Close implements [net.Conn].
func (g *guest) Close() error {
	g.c.mu.Lock()
	if !g.closed {
		g.closed = true
		g.c.strangers.Leave(g.place)
		if g.who != nil {
			g.c.known.Give(*g.who)
		}
	}
	g.c.mu.Unlock()
	return g.TCPConn.Close()
}

// take gives a connection a place among the strangers. owned is asked when it is about
// to lose that place, and says that the local owner is at the other end.
func (c *conns) take(tcp *net.TCPConn, owned func() bool) *guest {
	g := &guest{TCPConn: tcp, c: c, owned: owned}
	var addr netip.Addr
	if a, ok := tcp.RemoteAddr().(*net.TCPAddr); ok {
		addr = a.AddrPort().Addr()
	}
	c.mu.Lock()
	place, evicted := c.strangers.Take(auth.Network(addr), g)
	g.place = place
	c.mu.Unlock()
	if evicted == nil {
		return g
	}
	loser := evicted.Value
	if loser.owned() {
		if c.know(loser, auth.LocalOwner); loser.known.Load() {
			return g
		}
	}
	c.log.Warn().Str("network", evicted.Party().String()).Str("newcomer", addr.String()).Int("connections", c.max).
		Msg("too many connections without a token: the oldest of the network that has most was closed for a newcomer")
	_ = loser.Close() // nobody waits for what it says
	return g
}

// know moves a connection to the known. When there is no place it stays where it is,
// is served all the same, and may be displaced.
func (c *conns) know(g *guest, p auth.Principal) {
	if p.Kind == auth.Anonymous || g.known.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	who := p.Actor()
	if g.closed || g.who != nil || !c.known.Take(who, p.Kind == auth.Owner) {
		return
	}
	c.strangers.Leave(g.place)
	g.who = &who
	g.known.Store(true)
}

// Known says who has authenticated on a connection that net/http no longer serves,
// such as a WebSocket.
func Known(nc net.Conn, p auth.Principal) {
	if g := guestOf(nc); g != nil {
		g.c.know(g, p)
	}
}

// guestOf returns the guest behind a connection, nil for one that holds no place.
func guestOf(nc net.Conn) *guest {
	if t, ok := nc.(interface{ NetConn() net.Conn }); ok { // TLS
		nc = t.NetConn()
	}
	g, _ := nc.(*guest)
	return g
}

// places is a listener whose connections hold places.
type places struct {
	net.Listener
	s *Server
}

// Accept implements [net.Listener].
func (l *places) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	tcp, ok := nc.(*net.TCPConn)
	if err != nil || !ok {
		return nc, err
	}
	accepted := bootTicks()
	return l.s.conns.take(tcp, func() bool {
		remote, ok := tcp.RemoteAddr().(*net.TCPAddr)
		if l.s.cfg.Proxies != nil || !ok || !remote.IP.IsLoopback() {
			return false
		}
		id := l.s.whoIs(tcp, accepted)
		return id.refused == "" && !id.tool
	}), nil
}
