package bus

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/kernel/event"
)

// MaxPayload bounds a raw payload, in bytes.
const MaxPayload = 4 << 20

var (
	// ErrClosed is returned once the bus no longer accepts events.
	ErrClosed = errors.New("bus: closed")
	// ErrLagging ends a subscription that fell too far behind.
	ErrLagging = errors.New("bus: subscription fell behind and was ended; subscribe again and resync")
	// ErrRefused is wrapped when an emitter may not publish what it tried to.
	ErrRefused = errors.New("bus: refused")
)

// Outcome reports how one handler call ended. Err is nil on success.
type Outcome struct {
	Subscriber string
	Event      event.Event
	Err        error
}

// Config adjusts a bus; its zero value works.
type Config struct {
	// HandlerTimeout bounds one handler call. Default 30 s (Y-166).
	HandlerTimeout time.Duration
	// OnOutcome is called after every handler call, and at the deadline of one
	// that has not returned by then. It runs on the delivering goroutine and
	// must not block.
	OnOutcome func(Outcome)
}

// Bus is an event bus. Its methods are safe for concurrent use.
type Bus struct {
	cfg  Config
	seed maphash.Seed

	// order serialises the acceptance of events of one session; a stripe serves
	// many sessions and is held only while events are queued.
	order [64]sync.Mutex

	subsMu sync.Mutex // guards writes of subs
	subs   atomic.Pointer[map[string][]*Subscription]

	waitMu  sync.Mutex
	waiters map[string]waiter

	life   context.Context // ends when Close loses patience
	cancel context.CancelFunc
	closed atomic.Bool
	work   sync.WaitGroup
}

type waiter struct {
	kinds []string
	reply chan event.Event
}

// New returns a running bus.
func New(cfg Config) *Bus {
	cfg.HandlerTimeout = cmp.Or(cfg.HandlerTimeout, 30*time.Second)
	b := &Bus{cfg: cfg, seed: maphash.MakeSeed(), waiters: map[string]waiter{}}
	b.life, b.cancel = context.WithCancel(context.Background())
	b.subs.Store(&map[string][]*Subscription{})
	return b
}

// Close refuses new events, waits until what was accepted has been handled, and
// cancels the handlers when ctx ends first. It returns nil when no goroutine of
// the bus is left.
func (b *Bus) Close(ctx context.Context) error {
	for i := range b.order {
		b.order[i].Lock()
	}
	b.closed.Store(true)
	for i := range b.order {
		b.order[i].Unlock()
	}
	done := make(chan struct{})
	go func() {
		b.work.Wait()
		close(done)
	}()
	defer b.cancel()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	b.cancel()
	select {
	case <-done:
		return nil
	case <-time.After(time.Second):
		return fmt.Errorf("bus: handlers still running after close: %w", ctx.Err())
	}
}

// Emitter publishes under one source, which its holder cannot change (Y-19).
type Emitter struct {
	bus    *Bus
	source string
	kernel bool
}

// Kernel returns the kernel's own emitter. Hand it to kernel code only: it may
// emit every kind. A part of the kernel that has a name of its own in the
// contract gets it from [Emitter.Named].
func (b *Bus) Kernel() *Emitter { return &Emitter{b, event.KernelSource, true} }

// Named returns an emitter with the same rights under another source.
func (e *Emitter) Named(source string) *Emitter { return &Emitter{e.bus, source, e.kernel} }

// Plugin returns the emitter of a plugin. It stamps the plugin's name as source
// and refuses the kinds that are the kernel's.
func (b *Bus) Plugin(name string) (*Emitter, error) {
	if name == "" || name == event.KernelSource {
		return nil, fmt.Errorf("%w: %q cannot be a plugin's name", ErrRefused, name)
	}
	return &Emitter{b, name, false}, nil
}

// Source returns the name that is stamped on what this emitter publishes.
func (e *Emitter) Source() string { return e.source }

// Publish publishes a payload under its topic and returns the stamped event.
func Publish[P any](e *Emitter, t event.Topic[P], session string, payload P) (event.Event, error) {
	return e.publish(t.Kind(), session, payload, nil)
}

// Emit publishes a raw payload under a kind known only at run time. The payload
// is decoded into the kind's type, so that subscribers see one shape whoever
// emitted it.
func (e *Emitter) Emit(kind, session string, payload json.RawMessage) (event.Event, error) {
	if len(payload) > MaxPayload {
		return event.Event{}, fmt.Errorf("%w: payload of %d bytes exceeds %d", ErrRefused, len(payload), MaxPayload)
	}
	k, ok := event.Lookup(kind)
	if !ok {
		return event.Event{}, fmt.Errorf("%w: %q is neither a public kind nor in the x. namespace", ErrRefused, kind)
	}
	p, err := event.DecodePayload(kind, payload)
	if err != nil {
		return event.Event{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return e.publish(k, session, p, nil)
}

// publish accepts one event. When prepare is set it gets the event's id before
// anybody can see the event.
func (e *Emitter) publish(k *event.Kind, session string, payload any, prepare func(id string)) (event.Event, error) {
	b := e.bus
	if k.Emitter == event.KernelOnly && !e.kernel {
		return event.Event{}, fmt.Errorf("%w: only the kernel emits %s, and %q is not the kernel", ErrRefused, k.Name, e.source)
	}
	if k.OnKernel && session != event.KernelSession {
		return event.Event{}, fmt.Errorf("%w: %s travels on session %q, not on %q", ErrRefused, k.Name, event.KernelSession, session)
	}
	if err := event.CheckSession(session); err != nil {
		return event.Event{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return event.Event{}, fmt.Errorf("bus: event id: %w", err)
	}
	ev := event.Event{ID: id.String(), Kind: k.Name, SessionID: session, Time: time.Now(), Source: e.source, Payload: payload}
	if prepare != nil {
		prepare(ev.ID)
	}

	stripe := &b.order[maphash.String(b.seed, session)%uint64(len(b.order))]
	stripe.Lock()
	if b.closed.Load() {
		stripe.Unlock()
		return event.Event{}, ErrClosed
	}
	for _, s := range (*b.subs.Load())[k.Name] {
		s.enqueue(ev, k.Class)
	}
	stripe.Unlock()

	if r, ok := payload.(event.Responder); ok && r.RequestRef() != "" {
		b.answer(r.RequestRef(), ev)
	}
	return ev, nil
}

// Wanted reports whether a kind has a subscriber now; publishers of costly
// payloads may ask first.
func (b *Bus) Wanted(kind string) bool { return len((*b.subs.Load())[kind]) > 0 }

// Request publishes a payload and waits for the first event among the reply
// kinds whose payload carries the request's event id (Y-162). The caller's
// context bounds the wait; a later answer to the same request is not delivered
// to anyone as a reply.
func Request[P any](ctx context.Context, e *Emitter, t event.Topic[P], session string, payload P, replies ...*event.Kind) (event.Event, error) {
	b := e.bus
	w := waiter{reply: make(chan event.Event, 1)}
	for _, k := range replies {
		w.kinds = append(w.kinds, k.Name)
	}
	var id string
	defer func() {
		b.waitMu.Lock()
		delete(b.waiters, id)
		b.waitMu.Unlock()
	}()
	_, err := e.publish(t.Kind(), session, payload, func(assigned string) {
		id = assigned
		b.waitMu.Lock()
		b.waiters[id] = w
		b.waitMu.Unlock()
	})
	if err != nil {
		return event.Event{}, err
	}
	select {
	case ev := <-w.reply:
		return ev, nil
	case <-ctx.Done():
		return event.Event{}, fmt.Errorf("no answer to %s: %w", t.Name(), ctx.Err())
	case <-b.life.Done():
		return event.Event{}, ErrClosed
	}
}

func (b *Bus) answer(ref string, ev event.Event) {
	b.waitMu.Lock()
	defer b.waitMu.Unlock()
	if w, ok := b.waiters[ref]; ok && slices.Contains(w.kinds, ev.Kind) {
		delete(b.waiters, ref)
		w.reply <- ev
	}
}
