package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/worded"
)

// maxWaiting bounds the calls that wait for a slot, per session with a server.
const maxWaiting = 256

// A principal gets another slot only while it holds fewer than principalRatio times the free ones, so it
// has at most seven eighths of all. A client gets another one only while it holds fewer than clientRatio
// times what its principal may still get, so it has at most three quarters of that. A newcomer finds a
// free slot however long the calls of others take.
const (
	clientRatio    = 3
	principalRatio = 7
)

// busyError says that yaya refused a call: it was neither sent nor queued.
type busyError struct{ busy, waiting, own int }

func (e *busyError) Error() string {
	return fmt.Sprintf("yaya did not send the call: %s in flight to this server and %d wait, %d of them from this client; wait for some of them to end",
		worded.Count(e.busy, "call is", "calls are"), e.waiting, e.own)
}

// A refusal takes busyPause, and refusalGap for each other one that is being held back, but no more than
// maxBusyPause. A client that makes its calls again without a pause would otherwise use the processor
// that the calls of others need; so it gets 200 refusals a second, however many calls it has in flight.
const (
	busyPause    = 500 * time.Millisecond
	refusalGap   = 5 * time.Millisecond
	maxBusyPause = 10 * time.Second
)

// holdBack waits before a call is refused for want of a place.
func (g *gate) holdBack(ctx context.Context, err error) {
	if _, busy := errors.AsType[*busyError](err); !busy {
		return
	}
	g.mu.Lock()
	pause := min(busyPause+time.Duration(g.refusing)*refusalGap, maxBusyPause)
	g.refusing++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.refusing--
	}()
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// waitedError says that a call was given up before it was sent, because no slot became free.
type waitedError struct {
	busy  int
	after time.Duration
	cause error
}

func (e *waitedError) Error() string {
	return fmt.Sprintf("yaya did not send the call: it waited %v for a place, and %s in flight to this server",
		e.after.Round(time.Millisecond), worded.Count(e.busy, "call is", "calls are"))
}

func (e *waitedError) Unwrap() []error { return []error{feature.ErrNotSent, e.cause} }

// gate limits the calls in flight. Free slots go to the waiting principals in turns, to the clients of a
// principal in turns, and to the sessions of a client in turns, so that one client's flood delays others
// by one call each, even from many sessions. When too many calls wait, the newest one of the
// party that has the most waiting is refused.
type gate struct {
	limit int
	alone bool // one client has the session to itself

	mu       sync.Mutex
	all      queue
	refusing int      // refusals that are held back
	spare    []*queue // calls reuse these: most parties come with one call at a time
}

// party is who a call counts for: a session of a client of a principal. Clients of one principal are told
// apart by the name that they announce.
type party struct{ principal, name, session string }

// partyOf returns the party of a request. One whose client has no name is told apart by its session.
func partyOf(o outgoing, session string) party {
	name := ""
	if o.peer != nil {
		name = o.peer.Name()
	}
	return party{o.by, cmp.Or(name, session), session}
}

// queue is the state of a party at a gate: all of them, a principal, a client, or a session.
type queue struct {
	above         *queue // nil for that of all
	key           string
	busy, waiting int
	below         map[string]*queue
	turns         []*queue  // of those below the ones that wait, next first
	waiters       []*waiter // of a session
}

// waiter is a call that waits. ready is closed when it got a slot, or was refused with err.
type waiter struct {
	ready chan struct{}
	err   error
}

func newGate(limit int, alone bool) *gate { return &gate{limit: limit, alone: alone} }

// enter takes a slot, and waits for one if necessary. [gate.leave] returns it.
func (g *gate) enter(ctx context.Context, who party) (*queue, error) {
	g.mu.Lock()
	q := g.of(who)
	if len(q.waiters) == 0 && g.may(q) {
		g.seat(q)
		g.mu.Unlock()
		return q, nil
	}
	if g.all.waiting >= maxWaiting && !g.displace(q) {
		err := &busyError{g.all.busy, g.all.waiting, q.above.waiting}
		g.tidy(q)
		g.mu.Unlock()
		return nil, err
	}
	w := g.wait(q)
	g.mu.Unlock()
	begun := time.Now()
	select {
	case <-w.ready:
		return q, w.err
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.ready:
		if w.err == nil { // the slot came at the same moment and is not needed
			g.free(q)
		}
	default:
		g.forget(q, w)
	}
	return nil, &waitedError{g.all.busy, time.Since(begun), context.Cause(ctx)}
}

// leave returns a slot.
func (g *gate) leave(q *queue) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.free(q)
}

// The methods below are called with mu held.

// of returns what a session has.
func (g *gate) of(who party) *queue {
	q := &g.all
	for _, key := range [...]string{who.principal, who.name, who.session} {
		next := q.below[key]
		if next == nil {
			if n := len(g.spare); n > 0 {
				next, g.spare = g.spare[n-1], g.spare[:n-1]
			} else {
				next = new(queue)
			}
			next.above, next.key = q, key
			if q.below == nil {
				q.below = map[string]*queue{}
			}
			q.below[key] = next
		}
		q = next
	}
	return q
}

// tidy forgets a session that has nothing, and its client and principal if they have nothing.
func (g *gate) tidy(q *queue) {
	for ; q.above != nil && q.busy == 0 && q.waiting == 0; q = q.above {
		delete(q.above.below, q.key)
		g.spare = append(g.spare, q)
	}
}

// may reports whether a session may have one more slot.
func (g *gate) may(q *queue) bool {
	room := g.limit - g.all.busy
	if g.alone {
		return room > 0
	}
	client := q.above
	principal := client.above
	// With n more for the principal, n fewer are free; left is the largest n that keeps the ratio.
	left := (principalRatio*room - principal.busy + principalRatio) / (principalRatio + 1)
	return left > 0 && client.busy < clientRatio*left
}

// seat gives a session a slot.
func (g *gate) seat(q *queue) {
	for ; q != nil; q = q.above {
		q.busy++
	}
}

// free returns a slot, and hands out what has become free.
func (g *gate) free(q *queue) {
	for n := q; n != nil; n = n.above {
		n.busy--
	}
	g.tidy(q)
	for g.next() {
	}
}

// next gives a slot to the next call in turn whose session may have one. It reports false if there is
// none.
func (g *gate) next() bool {
	q := g.turn(&g.all)
	if q == nil {
		return false
	}
	w := q.waiters[0]
	g.seat(q)
	g.forget(q, w)
	for ; q.above != nil; q = q.above {
		q.above.turns = last(q.above.turns, q)
	}
	close(w.ready)
	return true
}

// turn returns the next session in turn that may have a slot, nil if there is none.
func (g *gate) turn(q *queue) *queue {
	for _, next := range q.turns {
		if len(next.waiters) == 0 {
			next = g.turn(next)
		} else if !g.may(next) {
			next = nil
		}
		if next != nil {
			return next
		}
	}
	return nil
}

// last moves x to the end of the turns, if it is among them.
func last[E comparable](turns []E, x E) []E {
	if i := slices.Index(turns, x); i >= 0 {
		return append(slices.Delete(turns, i, i+1), x)
	}
	return turns
}

// wait adds a waiting call.
func (g *gate) wait(q *queue) *waiter {
	w := &waiter{ready: make(chan struct{})}
	q.waiters = append(q.waiters, w)
	for ; q != nil; q = q.above {
		if q.waiting++; q.waiting == 1 && q.above != nil {
			q.above.turns = append(q.above.turns, q)
		}
	}
	return w
}

// forget removes a call that no longer waits.
func (g *gate) forget(q *queue, w *waiter) {
	q.waiters = without(q.waiters, w)
	for n := q; n != nil; n = n.above {
		if n.waiting--; n.waiting == 0 && n.above != nil {
			n.above.turns = without(n.above.turns, n)
		}
	}
	g.tidy(q)
}

func without[E comparable](from []E, x E) []E {
	return slices.DeleteFunc(from, func(o E) bool { return o == x })
}

// displace refuses the newest waiting call of the party that has the most, for a newcomer: of the
// principal, of its client, and of its session. It reports false if that is the newcomer.
func (g *gate) displace(newcomer *queue) bool {
	own := [...]*queue{newcomer.above.above, newcomer.above, newcomer}
	most := &g.all
	for _, mine := range own {
		var next *queue
		if mine.above == most {
			next = mine
		}
		for _, q := range most.turns {
			if next == nil || q.waiting > next.waiting {
				next = q
			}
		}
		most = next
	}
	if most == newcomer {
		return false
	}
	w := most.waiters[len(most.waiters)-1]
	w.err = &busyError{g.all.busy, g.all.waiting, most.above.waiting}
	g.forget(most, w)
	close(w.ready)
	return true
}
