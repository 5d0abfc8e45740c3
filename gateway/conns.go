package gateway

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/fair"
)

// conns are the open TCP connections. Half of the places are for strangers: those on
// which nobody has shown a right yet. There a newcomer always gets in, if need be
// for the oldest connection of the network that has most, so a flood displaces
// itself. The other half is for the known, which are never displaced: connections on
// which a device or the local owner has made a request. A quarter of these only the
// owner can have. Connections of the Unix socket are its owner's, and not counted.
type conns struct {
	max int // of each half
	log zerolog.Logger
	// passing is on while connections are handed to a successor.
	passing passing

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
	c     *conns
	owned func() bool // the local owner is at the other end
	peer  *peer       // nil before it is served; one after the other sets it, see withPeer
	known atomic.Bool
	// passing takes the connection when a successor goes on, if it is passable. One with TLS
	// is not: its keys stay here, and the successor must not serve it without.
	passing  *passing
	passable bool
	progress progress
	state    atomic.Int32 // an [http.ConnState]: what is done on it
	closed   bool         // c.mu guards it, and what follows
	place    *fair.Place[netip.Prefix, *guest]
	who      *string // whose place among the known it has; nil for none
}

// Close implements [net.Conn].
func (g *guest) Close() error {
	g.progress.look.Lock() // a successor that is about to get it has it first
	defer g.progress.look.Unlock()
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

// take gives a connection a place among the strangers. owned is called when it is about
// to lose that place, and says that the local owner is at the other end. passable says that a
// successor may go on with the connection.
func (c *conns) take(tcp *net.TCPConn, passable bool, owned func() bool) *guest {
	g := &guest{TCPConn: tcp, c: c, owned: owned, passing: &c.passing, passable: passable}
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
	s      *Server
	secure bool // its connections have TLS
}

// Accept implements [net.Listener].
func (l *places) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	tcp, ok := nc.(*net.TCPConn)
	if err != nil || !ok {
		return nc, err
	}
	accepted := bootTicks()
	return l.s.conns.take(tcp, !l.secure, func() bool {
		remote, ok := tcp.RemoteAddr().(*net.TCPAddr)
		if l.s.cfg.Proxies != nil || !ok || !remote.IP.IsLoopback() {
			return false
		}
		id := l.s.whoIs(tcp, accepted)
		return id.refused == "" && !id.tool
	}), nil
}
