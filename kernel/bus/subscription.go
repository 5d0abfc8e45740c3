package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
)

// DefaultLimit is the number of undelivered events that a subscription holds.
const DefaultLimit = 1024

// ErrHandlerTimeout is the failure of a handler that passed its deadline.
var ErrHandlerTimeout = errors.New("handler passed its deadline")

// Handler handles one event. Its context ends at the handler deadline and when
// the bus gives up waiting on close.
type Handler func(ctx context.Context, ev event.Event) error

// SubscribeOptions names and sizes a subscription.
type SubscribeOptions struct {
	Name  string // who subscribes; appears in outcomes
	Limit int    // undelivered events held; default DefaultLimit
	// Timeout bounds one handler call; default the bus's HandlerTimeout.
	Timeout time.Duration
	// Filter drops events before they are queued. It runs on the publisher's
	// goroutine and must be quick.
	Filter func(ev event.Event) bool
	// OnOutcome replaces the bus's own for this subscription.
	OnOutcome func(Outcome)
	// OnEnd is called with the reason when the subscription ends. It may run on a
	// publisher's goroutine and must neither block nor publish.
	OnEnd func(err error)
}

// Subscription is one subscriber's registration for a set of kinds.
type Subscription struct {
	bus   *Bus
	opts  SubscribeOptions
	kinds []string
	h     Handler

	mu       sync.Mutex
	lanes    map[string]*lane // by session, present from its first event until all are handled
	spare    *lane            // lanes out of use
	spares   int
	queued   int
	overdue  overdue
	ended    error
	draining bool

	lost    atomic.Uint64
	drained chan struct{} // closed when a draining subscription has become idle
	done    chan struct{}
	once    sync.Once
}

// Subscribe registers h for kinds. Events accepted from now on are delivered.
func (b *Bus) Subscribe(opts SubscribeOptions, kinds []string, h Handler) (*Subscription, error) {
	for _, k := range kinds {
		if _, ok := event.Lookup(k); !ok {
			return nil, fmt.Errorf("subscribe %s: unknown event kind %q", opts.Name, k)
		}
	}
	opts.Limit = cmp.Or(opts.Limit, DefaultLimit)
	opts.Timeout = cmp.Or(opts.Timeout, b.cfg.HandlerTimeout)
	if opts.OnOutcome == nil {
		opts.OnOutcome = b.cfg.OnOutcome
	}
	s := &Subscription{bus: b, opts: opts, kinds: slices.Clone(kinds), h: h, lanes: map[string]*lane{}, drained: make(chan struct{}), done: make(chan struct{})}
	b.subsMu.Lock()
	defer b.subsMu.Unlock()
	next := maps.Clone(*b.subs.Load())
	for _, k := range kinds {
		next[k] = append(slices.Clone(next[k]), s)
	}
	b.subs.Store(&next)
	return s, nil
}

// On registers a typed handler for one topic.
func On[P any](b *Bus, opts SubscribeOptions, t event.Topic[P], h func(ctx context.Context, ev event.Event, p P) error) (*Subscription, error) {
	return b.Subscribe(opts, []string{t.Name()}, func(ctx context.Context, ev event.Event) error {
		p, ok := ev.Payload.(P)
		if !ok {
			return fmt.Errorf("%s carries a %T", ev.Kind, ev.Payload)
		}
		return h(ctx, ev, p)
	})
}

// Close ends the subscription. Undelivered events are dropped; running handlers
// continue, and Done is closed when the last has returned.
func (s *Subscription) Close() { s.end(ErrClosed) }

// Drain accepts no new events, waits until the queued ones have been handled, and
// ends the subscription; when ctx ends first, the rest is dropped.
func (s *Subscription) Drain(ctx context.Context) {
	s.Detach()
	s.mu.Lock()
	s.draining = true
	idle := len(s.lanes) == 0
	s.mu.Unlock()
	if !idle {
		select {
		case <-s.drained:
		case <-ctx.Done():
		}
	}
	s.end(ErrClosed)
}

// Done is closed when the subscription has ended and its handlers returned.
func (s *Subscription) Done() <-chan struct{} { return s.done }

// Err returns why the subscription ended: [ErrLagging], [ErrClosed], or nil while
// it is active.
func (s *Subscription) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// Lost returns how many lossy events were dropped.
func (s *Subscription) Lost() uint64 { return s.lost.Load() }

func (s *Subscription) end(why error) {
	s.mu.Lock()
	first := s.ended == nil
	if first {
		s.ended = why
	}
	for _, l := range s.lanes {
		s.queued -= l.drop()
	}
	idle := len(s.lanes) == 0
	if idle {
		s.overdue.stop()
	}
	s.mu.Unlock()

	s.Detach()
	if first && s.opts.OnEnd != nil {
		s.opts.OnEnd(why)
	}
	if idle {
		s.once.Do(func() { close(s.done) })
	}
}

// Detach accepts no new events. Those that are queued are handled until Close, or Drain.
func (s *Subscription) Detach() {
	b := s.bus
	b.subsMu.Lock()
	defer b.subsMu.Unlock()
	next := maps.Clone(*b.subs.Load())
	for _, k := range s.kinds {
		next[k] = slices.DeleteFunc(slices.Clone(next[k]), func(x *Subscription) bool { return x == s })
	}
	b.subs.Store(&next)
}

// enqueue is called in acceptance order for any one session. It returns the lane that
// the event is the first of, and that somebody must run.
func (s *Subscription) enqueue(ev *event.Event, class event.Class) *lane {
	if s.opts.Filter != nil && !s.opts.Filter(*ev) {
		return nil
	}
	s.mu.Lock()
	if s.ended != nil {
		s.mu.Unlock()
		return nil
	}
	if class == event.Lossy && s.queued >= s.opts.Limit/2 {
		s.mu.Unlock()
		s.lost.Add(1)
		return nil
	}
	if s.queued >= s.opts.Limit {
		s.mu.Unlock()
		s.end(ErrLagging)
		return nil
	}
	defer s.mu.Unlock()
	s.queued++
	if l, running := s.lanes[ev.SessionID]; running {
		l.push(ev)
		return nil
	}
	l := s.spare
	if l != nil {
		s.spare, l.next = l.next, nil
		s.spares--
	} else {
		l = &lane{sub: s}
	}
	l.session = ev.SessionID
	l.push(ev)
	s.lanes[l.session] = l
	return l
}

// drain delivers the events of one session until there are none.
func (s *Subscription) drain(l *lane) {
	var h *handling
	for {
		s.mu.Lock()
		if h != nil {
			s.overdue.remove(h)
			if s.ended == nil {
				s.queued--
			}
		}
		ev := l.pop()
		if ev == nil {
			s.leave(l)
			return
		}
		h = &handling{bus: s.bus, ev: ev, deadline: time.Now().Add(s.opts.Timeout)}
		s.overdue.add(h, s)
		s.mu.Unlock()
		s.report(h, s.call(h))
		h.end()
	}
}

// leave takes out of use a lane whose events are handled. It releases the mutex.
func (s *Subscription) leave(l *lane) {
	delete(s.lanes, l.session)
	if s.spares < maxSpare && cap(l.events) <= spareEvents {
		l.session, l.next, s.spare = "", s.spare, l
		s.spares++
	}
	idle := len(s.lanes) == 0
	finished := s.ended != nil && idle
	if finished {
		s.overdue.stop()
	}
	if s.draining && idle {
		s.draining = false
		close(s.drained)
	}
	s.mu.Unlock()
	if finished {
		s.once.Do(func() { close(s.done) })
	}
}

func (s *Subscription) call(h *handling) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s on %s: panic: %v\n%s", s.opts.Name, h.ev.Kind, r, debug.Stack())
		}
	}()
	return s.h(h, *h.ev)
}
