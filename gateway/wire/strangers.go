package wire

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/wire/codec"
	"github.com/yaya-ai/yaya/internal/fair"
)

// Places of connections that have not authenticated.
const (
	maxUnknown     = 256
	maxUnknownPeer = 16 // of one network

	fullLogged = 10 * time.Second // between two lines that say so
)

// stranger is a connection that has not authenticated. It holds one of few places
// until it has, and the places are shared fairly between networks: when they are
// taken, a newcomer gets the oldest one of the network that holds most. Refusing the
// newcomer instead would let those who came first and say nothing shut out every
// device. The local owner needs no place: it is known before it is upgraded.
type stranger struct {
	place  *fair.Place[netip.Prefix, *stranger]
	conn   *conn // nil until it is upgraded
	leaves bool  // it lost its place to another
}

// enter gives a connection that has not authenticated a place, if need be another's.
// It returns nil when the server is closed.
func (s *Server) enter(addr netip.Addr) *stranger {
	if !s.all.Begin() {
		return nil
	}
	guest := new(stranger)
	s.mu.Lock()
	place, out := s.unknown.Take(auth.Network(addr), guest)
	guest.place = place
	var loser *conn
	if out != nil {
		loser = out.Value.conn
		out.Value.leaves = true
	}
	s.mu.Unlock()
	if out != nil {
		s.full.Warn().Str("network", out.Party().String()).Str("newcomer", addr.String()).
			Msg("too many WebSockets have not authenticated: one gave way to a newcomer")
	}
	if loser != nil {
		loser.evict()
	}
	return guest
}

func (s *Server) leave(guest *stranger) {
	if guest == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unknown.Leave(guest.place)
}

// evicted is in no encoding: theirs is not known yet.
var evicted = codec.CloseFrame(CloseTooMany, "too many connections have not authenticated")

// evict ends a connection that has not authenticated and lost its place to another.
func (c *conn) evict() { c.q.finish(evicted, endGrace) }

// strangers returns the connections that have not authenticated.
func (s *Server) strangers() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.fresh))
}
