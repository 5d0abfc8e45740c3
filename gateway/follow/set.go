package follow

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/kernel/session"
)

// beatEvery is the interval of a reader's heartbeats to its session. It has to be well
// below the time after which sessions take a silent reader for dead.
const beatEvery = 10 * time.Second

var (
	// ErrClosed is returned by [Set.Join] after [Set.Close].
	ErrClosed = errors.New("follow: the set is closed")
	// ErrEnded is returned by [Set.Join] when the follower ended before it had caught up.
	// The error also wraps that of [Projection.Take], if there was one.
	ErrEnded = errors.New("follow: the session has let go of its reader")
)

// Sessions holds the sessions that followers read; [session.Manager] implements it.
type Sessions interface {
	Attach(id string, o session.AttachOptions) (*session.Connection, error)
	Drop(id, connection string) error
	Heartbeat(id, connection string) error
}

// Projection is a surface's view of one session.
type Projection interface {
	// Open is called first. The session is read as the options say; Send is the
	// follower's, and Answers, if set, is called in addition to the follower's watchers.
	Open() (session.AttachOptions, error)
	// Take takes what the session sends, in order, with the follower's lock held. It calls
	// [Follower.Ready] when it has caught up. An error ends the follower.
	Take(it session.Item) error
	// Flush is called some time after [Follower.Later], with the follower's lock held.
	Flush()
	// Close is called once after an Open without error, when nothing will be taken or
	// flushed. Lost says that the session has let go, not the set.
	Close(lost bool)
}

// Config assembles a [Set]. All fields are required.
type Config[P Projection] struct {
	Sessions Sessions
	// Linger is how long a session is followed after its last client has left.
	Linger time.Duration
	// New makes the projection of a follower. It must not call the set.
	New func(f *Follower) P
}

// Set follows sessions, each for as long as somebody looks at it.
type Set[P Projection] struct {
	common
	create func(f *Follower) P
}

// common is the part of a set that its followers use.
type common struct {
	sessions Sessions
	linger   time.Duration
	work     sync.WaitGroup

	mu     sync.Mutex // may be taken with a follower's lock held, never the other way round
	closed bool
	byID   map[string]*Follower
}

// New returns a set that follows nothing yet. [Set.Close] ends what it starts.
func New[P Projection](cfg Config[P]) *Set[P] {
	return &Set[P]{common: common{sessions: cfg.Sessions, linger: cfg.Linger, byID: map[string]*Follower{}}, create: cfg.New}
}

// Join returns the projection of a session once it has caught up, following the session
// if nobody does. The caller holds it until it calls [Follower.Leave] or
// [Follower.Finish]. Join waits at most as long as ctx lasts.
func (s *Set[P]) Join(ctx context.Context, id string) (P, error) {
	var none P
	f, err := s.hold(ctx, id)
	if err != nil {
		return none, err
	}
	if !f.caughtUp(ctx) {
		f.Leave()
		return none, ctx.Err()
	}
	if f.err != nil {
		return none, f.err
	}
	p, _ := f.p.(P)
	return p, nil
}

// hold returns a follower that is not about to end, and counts its holder.
func (s *Set[P]) hold(ctx context.Context, id string) (*Follower, error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return nil, ErrClosed
		}
		f := s.byID[id]
		if f == nil {
			f = newFollower(&s.common, id)
			f.p = s.create(f)
			s.byID[id] = f
			s.work.Go(f.run)
		}
		if !f.over() {
			f.holds++
			f.rest.Stop()
			s.mu.Unlock()
			return f, nil
		}
		s.mu.Unlock()
		select {
		case <-f.gone:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Get returns the projection of a session that is followed, if it is, without holding it.
func (s *Set[P]) Get(id string) (p P, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.byID[id]
	if f == nil || f.over() {
		return p, false
	}
	p, ok = f.p.(P)
	return p, ok
}

// Keep reports whether a session is followed. If so, the time that it lingers starts
// again: what happens now is taken.
func (s *Set[P]) Keep(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.byID[id]
	if f == nil || f.over() {
		return false
	}
	f.linger()
	return true
}

// End ends the follower of a session, if there is one, whoever holds it. It does not wait.
func (s *Set[P]) End(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.byID[id]; f != nil {
		f.end()
	}
}

// Close ends all followers and waits for them. Nobody can join afterwards.
func (s *Set[P]) Close() {
	s.mu.Lock()
	s.closed = true
	for _, f := range s.byID {
		f.end()
	}
	s.mu.Unlock()
	s.work.Wait()
}
