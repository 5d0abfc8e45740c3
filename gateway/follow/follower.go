package follow

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/kernel/session"
)

// Follower follows one session for all who hold it. Its lock guards the projection.
type Follower struct {
	sync.Mutex
	ID string // of the session

	set   *common
	p     Projection
	busy  atomic.Bool
	begun sync.Once
	ready chan struct{} // closed when the follower has caught up, or cannot
	err   error         // why it cannot; read after ready
	gone  chan struct{} // closed when the follower has ended and is forgotten

	// Guarded by the set's mutex.
	holds    int
	left     time.Time   // when it was wanted last
	rest     *time.Timer // runs while nobody holds it
	ending   bool        // nobody can join it
	stop     chan struct{}
	conn     *session.Connection
	watchers map[*func() bool]struct{}

	// Guarded by the follower's own.
	later    *time.Timer
	deferred bool  // later runs
	failed   error // of the projection
	ended    bool
}

// newFollower returns a follower that has yet to run; the set's mutex is held.
func newFollower(set *common, id string) *Follower {
	f := &Follower{
		ID: id, set: set, watchers: map[*func() bool]struct{}{},
		ready: make(chan struct{}), gone: make(chan struct{}), stop: make(chan struct{}), rest: time.NewTimer(set.linger),
	}
	f.rest.Stop()
	return f
}

// run is a follower's life. A caller that joins while it ends gets the next follower, so
// the set forgets this one only when its projection is closed.
func (f *Follower) run() {
	options, err := f.p.Open()
	if err == nil {
		var lost bool
		lost, err = f.read(options)
		f.settle()
		f.p.Close(lost)
	}
	f.set.mu.Lock()
	f.end()
	delete(f.set.byID, f.ID)
	f.set.mu.Unlock()
	f.begin(err)
	close(f.gone)
}

// read reads the session until it lets go, and reports whether that was its own wish.
func (f *Follower) read(o session.AttachOptions) (lost bool, err error) {
	others := o.Answers
	o.Answers = func() bool { return (others != nil && others()) || f.answerable() }
	o.Send = f.take
	conn, err := f.set.sessions.Attach(f.ID, o)
	if err != nil {
		return false, err
	}
	f.set.mu.Lock()
	f.conn = conn
	f.set.mu.Unlock()
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	for stop := f.stop; ; {
		select {
		case <-stop:
			stop = nil
			_ = f.set.sessions.Drop(f.ID, conn.ID()) // or the session has let go
		case <-beat.C:
			_ = f.set.sessions.Heartbeat(f.ID, conn.ID()) // or the session has let go
		case <-f.rest.C:
			f.retire()
		case <-conn.Done():
			f.set.mu.Lock()
			lost, err = !f.ending, ErrEnded // to those who still wait
			if f.set.closed {
				err = ErrClosed
			}
			f.end()
			f.set.mu.Unlock()
			f.Lock()
			defer f.Unlock()
			if f.failed != nil {
				err = fmt.Errorf("%w: %w", err, f.failed)
			}
			return lost, err
		}
	}
}

func (f *Follower) take(_ context.Context, it session.Item) error {
	f.Lock()
	defer f.Unlock()
	f.failed = f.p.Take(it)
	return f.failed
}

// retire ends a follower that has rested for long enough.
func (f *Follower) retire() {
	f.set.mu.Lock()
	defer f.set.mu.Unlock()
	switch {
	case f.holds > 0 || time.Since(f.left) < f.set.linger: // somebody came just now
	case f.busy.Load():
		f.linger()
	default:
		f.end()
	}
}

// settle lets nothing more be flushed.
func (f *Follower) settle() {
	f.Lock()
	defer f.Unlock()
	f.ended = true
	if f.deferred && f.later.Stop() {
		f.deferred = false
		f.set.work.Done()
	}
}

// begin lets those go on who wait for the follower to catch up; the first call decides.
func (f *Follower) begin(err error) {
	f.begun.Do(func() {
		f.err = err
		close(f.ready)
	})
}

// caughtUp waits until begin was called, and reports false if ctx ended before.
func (f *Follower) caughtUp(ctx context.Context) bool {
	select {
	case <-f.ready: // whatever has become of ctx
		return true
	default:
	}
	select {
	case <-f.ready:
		return true
	case <-ctx.Done():
		return false
	}
}

// over reports whether the follower is about to end; the set's mutex is held, as it is
// for end and linger.
func (f *Follower) over() bool {
	if f.ending || f.conn == nil {
		return f.ending
	}
	select {
	case <-f.conn.Done():
		return true
	default:
		return false
	}
}

// end has the follower end, once.
func (f *Follower) end() {
	if f.ending {
		return
	}
	f.ending = true
	f.rest.Stop()
	close(f.stop)
}

// linger restarts the time after which a follower ends that nobody holds.
func (f *Follower) linger() {
	f.left = time.Now()
	if f.holds == 0 && !f.ending {
		f.rest.Reset(f.set.linger)
	}
}

// Leave lets go of the follower. It ends some time after the last client has left.
func (f *Follower) Leave() {
	f.set.mu.Lock()
	defer f.set.mu.Unlock()
	f.holds--
	f.linger()
}

// Finish is Leave for who needed the follower only to catch up: if nobody else holds it
// and it is not busy, it ends now, and Finish waits until it has.
func (f *Follower) Finish() {
	f.set.mu.Lock()
	f.holds--
	last := f.holds == 0 && !f.busy.Load()
	if last {
		f.end()
	} else {
		f.linger()
	}
	f.set.mu.Unlock()
	if last {
		<-f.gone
	}
}

// Watch notes that a client is there, until leave is called. The session asks mayAnswer
// whether the client may answer asks at that time; it must not block.
func (f *Follower) Watch(mayAnswer func() bool) (leave func()) {
	f.set.mu.Lock()
	defer f.set.mu.Unlock()
	f.watchers[&mayAnswer] = struct{}{}
	return func() {
		f.set.mu.Lock()
		defer f.set.mu.Unlock()
		delete(f.watchers, &mayAnswer)
	}
}

// answerable reports whether a client is there that may answer asks.
func (f *Follower) answerable() bool {
	f.set.mu.Lock()
	watchers := slices.Collect(maps.Keys(f.watchers))
	f.set.mu.Unlock()
	return slices.ContainsFunc(watchers, func(mayAnswer *func() bool) bool { return (*mayAnswer)() })
}

// Ready says that the projection has caught up: those who join can go on.
func (f *Follower) Ready() { f.begin(nil) }

// Busy says whether something is under way that the projection has to see the end of,
// whether or not somebody holds the follower.
func (f *Follower) Busy(busy bool) { f.busy.Store(busy) }

// Later has the projection flushed after d, unless that is due already. The lock is held.
func (f *Follower) Later(d time.Duration) {
	if f.deferred || f.ended {
		return
	}
	f.deferred = true
	f.set.work.Add(1)
	if f.later == nil {
		f.later = time.AfterFunc(d, f.flush)
		return
	}
	f.later.Reset(d)
}

func (f *Follower) flush() {
	defer f.set.work.Done()
	f.Lock()
	defer f.Unlock()
	f.deferred = false
	if !f.ended {
		f.p.Flush()
	}
}

// Ended reports whether nothing will be taken. The lock is held.
func (f *Follower) Ended() bool { return f.ended }
