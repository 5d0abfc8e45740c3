package downstream

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/internal/fair"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

const sessionIdle = 30 * time.Minute

// bounds limit each resource for all principals together, and shares divides it so that no
// principal can use up the share of the others.
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
	errTooManySessions = errors.New("too many sessions, and all of them are in use: end some, or retry later")
)

// kind tells the clients of one principal apart: by the name that they announce. It is all that is
// known of a client before it works.
type kind struct{ owner, name string }

// open creates a legacy session. Clients often leave without ending their session, so sessions
// that have been idle make room for a new one: those of the same principal if it has used up its
// share (a quarter; for the owner, all of them), otherwise those of the principal with the most
// sessions, and of its clients with the most. The client of a closed session, if it still exists,
// gets a 404 and initializes again.
func (s *Server) open(ctx context.Context, owner string, p *profile, init *jsonrpc.Message) (*client, error) {
	who := kind{owner, announced(init.Params.Get("clientInfo"))}
	if err := s.pace.wait(ctx, s.life, who); err != nil {
		return nil, err
	}
	c := newClient(owner, "mcp_"+rand.Text(), p)
	c.token = s.marked(rand.Text() + rand.Text())
	c.kind = who
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errSessionEnded
	}
	full := len(s.sessions) >= s.shares.sessions
	share := owner != tool.Owner && s.owned[owner] >= s.shares.sessions/4
	var gone []*client
	if full || share {
		if gone = s.idlest(owner, share); len(gone) == 0 {
			s.mu.Unlock()
			return nil, errTooManySessions
		}
		for _, c := range gone {
			s.remove(c)
		}
	}
	s.sessions[c.token] = c
	s.owned[owner]++
	s.kinds[c.kind]++
	s.mu.Unlock()
	if len(gone) > 0 {
		s.cfg.Log.Debug().Str("session", gone[0].session).Int("sessions", len(gone)).Msg("too many MCP sessions: closed idle ones")
	}
	for _, c := range gone {
		s.ended(c, errSessionEnded)
	}
	return c, nil
}

// announced returns the name that a client gives itself in its clientInfo.
func announced(clientInfo []byte) string {
	info, err := jsonrpc.ParseObject(clientInfo)
	if err != nil {
		return ""
	}
	name, _ := info.String("name")
	return clip(name)
}

// idlest returns sessions without request and stream: those that were idle for longest, of the
// clients with the most sessions that have an idle one, and of these first those that nobody has
// used since they were opened. It looks at the principal with the most sessions, or at the owner
// alone if only is set, and returns nil if all are in use. Looking costs as much as there are
// sessions, so of many it returns several. The caller holds mu.
func (s *Server) idlest(owner string, only bool) []*client {
	type candidate struct {
		c     *client
		since time.Time
	}
	var all []candidate
	var owned, alike int // sessions of the principals and of the clients that have the most
	for _, c := range s.sessions {
		more := cmp.Or(cmp.Compare(s.owned[c.owner], owned), cmp.Compare(s.kinds[c.kind], alike))
		if only && c.owner != owner || more < 0 {
			continue
		}
		since, ok := c.idle()
		if !ok {
			continue
		}
		if more > 0 {
			owned, alike, all = s.owned[c.owner], s.kinds[c.kind], all[:0]
		}
		all = append(all, candidate{c, since})
	}
	slices.SortFunc(all, func(a, b candidate) int {
		if used := a.c.settled.Load(); used != b.c.settled.Load() {
			if used {
				return 1
			}
			return -1
		}
		return a.since.Compare(b.since)
	})
	var out []*client
	for _, x := range all[:min(len(all), 1+len(all)/evictedPart)] {
		out = append(out, x.c)
	}
	return out
}

// evictedPart is the part of a client's idle sessions that make room at once.
const evictedPart = 256

// idle returns since when a session has been idle; false while it is in use.
func (c *client) idle() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last, c.busy == 0
}

// remove removes a session from the server; the caller holds mu.
func (s *Server) remove(c *client) {
	delete(s.sessions, c.token)
	if s.owned[c.owner]--; s.owned[c.owner] == 0 {
		delete(s.owned, c.owner)
	}
	if s.kinds[c.kind]--; s.kinds[c.kind] == 0 {
		delete(s.kinds, c.kind)
	}
}

// find returns the session of a token if it belongs to this principal.
func (s *Server) find(owner, token string) *client {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.sessions[token]
	if c == nil || c.owner != owner {
		return nil
	}
	return c
}

// noSession returns the refusal for a token without a session. While yaya stops it is another
// one, because a client must not take that for the end of its session.
func (s *Server) noSession() (status int, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return http.StatusServiceUnavailable, "yaya is shutting down"
	}
	return http.StatusNotFound, "unknown session"
}

// drop ends a session. It reports whether the session existed.
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
	s.ended(c, errSessionEnded)
	return true
}

// expire ends idle sessions.
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
