package downstream

import (
	"crypto/rand"
	"errors"
	"time"

	"github.com/yaya-ai/yaya/internal/fair"
	"github.com/yaya-ai/yaya/kernel/tool"
)

const sessionIdle = 30 * time.Minute

// bounds are how much of everything there may be for all principals together, and
// shares how it is divided: nobody gets so much that others get nothing.
type bounds struct {
	sessions int // legacy sessions
	streams  int // GET streams and subscriptions together
	flights  int // calls that are parked
	tasks    int
}

var maxima = bounds{sessions: 4096, streams: 1024, flights: 256, tasks: 256}

type shares struct {
	sessions                int
	streams, flights, tasks *fair.Shares[string] // by principal
}

func newShares(b bounds) shares {
	return shares{b.sessions, fair.NewShares[string](b.streams), fair.NewShares[string](b.flights), fair.NewShares[string](b.tasks)}
}

var (
	errTooMany         = errors.New("too many requests wait for their client")
	errTooManySessions = errors.New("too many sessions, and all of them are in use: end some, or come back later")
)

// open makes a legacy session. Clients that are gone often leave theirs, so the
// session that nobody has used for longest makes room for a new one: of the principal
// itself when it has its share (a quarter; the owner, all of them), else of the one
// that has most. Its client, if there still is one, is told 404 and begins again.
func (s *Server) open(owner string, p *profile) (*client, error) {
	c := newClient(owner, "mcp_"+rand.Text(), p)
	c.token = rand.Text() + rand.Text()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errSessionEnded
	}
	full := len(s.sessions) >= s.shares.sessions
	share := owner != tool.Owner && s.owned[owner] >= s.shares.sessions/4
	var gone *client
	if full || share {
		if gone = s.idlest(owner, share); gone == nil {
			s.mu.Unlock()
			return nil, errTooManySessions
		}
		s.remove(gone)
	}
	s.sessions[c.token] = c
	s.owned[owner]++
	s.mu.Unlock()
	if gone != nil {
		s.cfg.Log.Debug().Str("session", gone.session).Msg("too many MCP sessions: one that was not in use made room")
		s.ended(gone)
	}
	return c, nil
}

// idlest returns the session that has been without request and stream for longest, of
// the owner if only that one's are to be looked at, else of the principal that has
// most and has one; nil when all are in use. mu is held.
func (s *Server) idlest(owner string, only bool) *client {
	var found *client
	var since time.Time
	for _, c := range s.sessions {
		if only && c.owner != owner || found != nil && s.owned[c.owner] < s.owned[found.owner] {
			continue
		}
		last, ok := c.idle()
		if ok && (found == nil || s.owned[c.owner] > s.owned[found.owner] || last.Before(since)) {
			found, since = c, last
		}
	}
	return found
}

// idle returns since when nobody has used a session; false while somebody does.
func (c *client) idle() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, c.busy == 0
}

// remove takes a session out of the server's; mu is held.
func (s *Server) remove(c *client) {
	delete(s.sessions, c.token)
	if s.owned[c.owner]--; s.owned[c.owner] == 0 {
		delete(s.owned, c.owner)
	}
}

// find returns the session of a token, if it is this principal's (DN-02).
func (s *Server) find(owner, token string) *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.sessions[token]
	if c == nil || c.owner != owner {
		return nil
	}
	return c
}

// drop ends a session. It reports whether there was one.
func (s *Server) drop(token string) bool {
	s.mu.Lock()
	c := s.sessions[token]
	if c != nil {
		s.remove(c)
	}
	s.mu.Unlock()
	if c == nil {
		return false
	}
	s.ended(c)
	return true
}

// expire ends sessions that nobody uses.
func (s *Server) expire() {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-tick.C:
		}
		var idle []string
		s.mu.Lock()
		for token, c := range s.sessions {
			if since, ok := c.idle(); ok && time.Since(since) >= sessionIdle {
				idle = append(idle, token)
			}
		}
		s.mu.Unlock()
		for _, token := range idle {
			s.drop(token)
		}
	}
}

// Sessions returns the number of legacy sessions.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}
