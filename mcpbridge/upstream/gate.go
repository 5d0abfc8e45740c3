package upstream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/feature"
)

// maxWaiting bounds the calls that wait for a place, per session with a server.
const maxWaiting = 256

// busyError says that a call was not even queued.
type busyError struct{ limit int }

func (e *busyError) Error() string {
	return fmt.Sprintf("%d calls are in flight and %d wait; try again later", e.limit, maxWaiting)
}

// gate lets so many calls through at a time. Those that wait get their places in
// turns, client by client, so that one client's flood delays the others by one
// call each.
type gate struct {
	limit int

	mu      sync.Mutex
	busy    int
	waiting int
	queues  map[string][]*waiter // by client
	turns   []string             // clients that wait, next first
}

type waiter struct{ ready chan struct{} }

func newGate(limit int) *gate { return &gate{limit: limit, queues: map[string][]*waiter{}} }

// enter takes a place, waiting for it if need be.
func (g *gate) enter(ctx context.Context, client string) error {
	g.mu.Lock()
	if g.busy < g.limit && g.waiting == 0 {
		g.busy++
		g.mu.Unlock()
		return nil
	}
	if g.waiting >= maxWaiting {
		g.mu.Unlock()
		return &busyError{g.limit}
	}
	w := &waiter{ready: make(chan struct{})}
	if len(g.queues[client]) == 0 {
		g.turns = append(g.turns, client)
	}
	g.queues[client] = append(g.queues[client], w)
	g.waiting++
	g.mu.Unlock()
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-w.ready: // the place came at the same moment, and is not needed
		g.next()
	default:
		g.forget(client, w)
	}
	return fmt.Errorf("%w: %d calls are in flight and the server is slow: %w", feature.ErrNotSent, g.limit, context.Cause(ctx))
}

// forget removes a waiter that waits no more; mu is held.
func (g *gate) forget(client string, w *waiter) {
	g.waiting--
	q := slices.DeleteFunc(g.queues[client], func(o *waiter) bool { return o == w })
	if len(q) > 0 {
		g.queues[client] = q
		return
	}
	delete(g.queues, client)
	g.turns = slices.DeleteFunc(g.turns, func(c string) bool { return c == client })
}

// leave gives a place back.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next()
}

// next hands the place on to whose turn it is, or frees it; mu is held.
func (g *gate) next() {
	if len(g.turns) == 0 {
		g.busy--
		return
	}
	client := g.turns[0]
	g.turns = g.turns[1:]
	q := g.queues[client]
	w := q[0]
	if q = q[1:]; len(q) > 0 {
		g.queues[client] = q
		g.turns = append(g.turns, client)
	} else {
		delete(g.queues, client)
	}
	g.waiting--
	close(w.ready)
}

// breaker keeps calls from a server that does not answer. After breakAfter
// failures in a row it is open for a while; then one call tries.
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time
	trying   bool
}

const (
	breakAfter = 5
	breakFirst = 5 * time.Second
	breakMax   = time.Minute
)

// openError says that a call was not made.
type openError struct {
	failures int
	wait     time.Duration
}

func (e *openError) Error() string {
	if e.failures == 0 {
		return fmt.Sprintf("the server wants to be left alone for another %v", e.wait.Round(time.Second))
	}
	return fmt.Sprintf("the server has not answered its last %d calls; it is tried again in %v", e.failures, e.wait.Round(100*time.Millisecond))
}

// allow reports why a call must not be made now.
func (b *breaker) allow() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.IsZero() {
		return nil
	}
	if wait := time.Until(b.until); wait > 0 || b.trying {
		return &openError{b.failures, max(wait, 0)}
	}
	b.trying = true
	return nil
}

// record takes the end of a call that was allowed: whether the server answered,
// and how long it wants to be left alone.
func (b *breaker) record(answered bool, after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	switch {
	case after > 0:
		b.until = time.Now().Add(after)
	case answered:
		b.failures, b.until = 0, time.Time{}
	default:
		if b.failures++; b.failures >= breakAfter {
			b.until = time.Now().Add(min(breakFirst<<min(b.failures-breakAfter, 8), breakMax))
		}
	}
}

// release ends a call that says nothing about the server: its caller has gone, or a
// limit of ours has refused it.
func (b *breaker) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
}

// settle tells the breaker how a call has ended.
func (b *breaker) settle(ctx context.Context, err error) {
	if err == nil {
		b.record(true, 0)
		return
	}
	refused, _ := errors.AsType[*statusError](err)
	_, login := errors.AsType[patient](err)
	_, busy := errors.AsType[*busyError](err)
	_, odd := errors.AsType[*oddError](err)
	switch {
	case refused != nil && refused.after > 0:
		b.record(false, refused.after)
	case refused != nil && refused.code/100 == 4: // an answer, if no good one
		b.record(true, 0)
	case login && refused == nil: // it waits for a person
		b.release()
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errCallTimeout):
		b.release()
	case errors.Is(err, feature.ErrNotSent): // the supervisor sees to that
		b.release()
	case busy, errors.Is(err, errNoRoom): // our own limits, which the server has no part in
		b.release()
	case odd, errors.Is(err, errTooLarge): // an answer, if no good one
		b.record(true, 0)
	default:
		b.record(false, 0)
	}
}
