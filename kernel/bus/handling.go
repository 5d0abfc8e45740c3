package bus

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
)

// handling is one call of a handler, and its context. Most handlers never ask their
// context anything: the standard context, with its timer, is made for those that do.
type handling struct {
	bus      *Bus
	ev       *event.Event
	deadline time.Time
	told     atomic.Bool // the outcome was reported

	prev, next *handling // in the list of its subscription

	mu       sync.Mutex
	std      context.Context
	cancel   context.CancelFunc
	returned bool
}

// Deadline implements [context.Context].
func (h *handling) Deadline() (time.Time, bool) { return h.deadline, true }

// Done implements [context.Context].
func (h *handling) Done() <-chan struct{} { return h.standard().Done() }

// Err implements [context.Context].
func (h *handling) Err() error { return h.standard().Err() }

// Value implements [context.Context]. It knows the standard context under the key by
// which package context looks for one: contexts below it need no goroutine, and
// [context.Cause] works.
func (h *handling) Value(key any) any { return h.standard().Value(key) }

func (h *handling) standard() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.std == nil {
		h.std, h.cancel = context.WithDeadlineCause(h.bus.life, h.deadline, ErrHandlerTimeout)
		if h.returned {
			h.cancel()
		}
	}
	return h.std
}

// end cancels the context, once the handler has returned.
func (h *handling) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.returned = true
	if h.cancel != nil {
		h.cancel()
	}
}

// overdue reports the handlers of a subscription that pass their deadline. All have the
// same time, so that the first in the list is due first, and one timer is enough. The
// subscription's mutex guards it.
type overdue struct {
	first, last *handling
	timer       *time.Timer
	set         bool
}

func (o *overdue) add(h *handling, s *Subscription) {
	if h.prev = o.last; o.last != nil {
		o.last.next = h
	} else {
		o.first = h
	}
	o.last = h
	if o.set {
		return
	}
	o.set = true
	if o.timer == nil {
		o.timer = time.AfterFunc(s.opts.Timeout, s.expire)
	} else {
		o.timer.Reset(s.opts.Timeout)
	}
}

// remove does nothing for a handling that has been removed.
func (o *overdue) remove(h *handling) {
	switch {
	case h.prev != nil:
		h.prev.next = h.next
	case o.first == h:
		o.first = h.next
	default:
		return
	}
	if h.next != nil {
		h.next.prev = h.prev
	} else {
		o.last = h.prev
	}
	h.prev, h.next = nil, nil
}

// stop ends the timer, when nothing will be added again.
func (o *overdue) stop() {
	if o.timer != nil {
		o.timer.Stop()
	}
}

// expire reports the handlers that are overdue, and waits for the next one.
func (s *Subscription) expire() {
	var late []*handling
	s.mu.Lock()
	o := &s.overdue
	now := time.Now()
	for o.first != nil && !o.first.deadline.After(now) {
		late = append(late, o.first)
		o.remove(o.first)
	}
	if o.set = o.first != nil; o.set {
		o.timer.Reset(o.first.deadline.Sub(now))
	}
	s.mu.Unlock()
	for _, h := range late {
		s.report(h, fmt.Errorf("%s on %s: %w after %v", s.opts.Name, h.ev.Kind, ErrHandlerTimeout, s.opts.Timeout))
	}
}

// report tells the outcome of a handling, once.
func (s *Subscription) report(h *handling, err error) {
	if h.told.CompareAndSwap(false, true) && s.opts.OnOutcome != nil {
		s.opts.OnOutcome(Outcome{Subscriber: s.opts.Name, Event: *h.ev, Err: err})
	}
}
