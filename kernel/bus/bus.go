package bus

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/event"
)

// MaxPayload bounds a raw payload, in bytes.
const MaxPayload = 4 << 20

var (
	// ErrClosed is returned once the bus no longer accepts events.
	ErrClosed = errors.New("bus: closed")
	// ErrLagging is the reason why a subscription ended that fell too far behind.
	ErrLagging = errors.New("bus: subscription fell behind and was ended; subscribe again and resync")
	// ErrRefused is wrapped by the error for an event that its emitter may not
	// publish.
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
	// HandlerTimeout bounds one handler call. Default 30 s.
	HandlerTimeout time.Duration
	// OnOutcome is called after every handler call, and at the deadline of one
	// that has not returned by then. It runs on the delivering goroutine and
	// must not block.
	OnOutcome func(Outcome)
	// Recorder stores the events of sessions; nil stores none.
	Recorder Recorder
	// Secrets are concealed in events before anybody sees them. Optional.
	Secrets *masked.Secrets
}

// Recorder writes accepted events to their session's tape. It takes part in
// acceptance and is not a subscriber. So the order on the tape is the order that
// subscribers see, an event is on the tape before anybody acts on it, and an
// emitter that floods waits for its own writes.
type Recorder interface {
	// Prepare is called before an event of that kind is accepted, and may take long.
	// If it returns an error, the bus refuses the event.
	Prepare(kind, session string) error
	// Record is called in acceptance order, for one event of a session at a time.
	// It sets Entry. If refuse is true, the bus refuses the event with the error.
	Record(ev *event.Event) (refuse bool, err error)
	// Failed is called, outside every lock, with an event that was accepted but not
	// recorded.
	Failed(ev event.Event, err error)
}

// Bus is an event bus. Its methods are safe for concurrent use.
type Bus struct {
	cfg  Config
	seed maphash.Seed

	// order serialises the acceptance of the events of one session only: a slow disk
	// delays the session that writes, and no other.
	order [64]shard

	subsMu sync.Mutex // guards writes of subs
	subs   atomic.Pointer[map[string][]*Subscription]

	waitMu  sync.Mutex
	waiters map[string]waiter
	panels  map[string]Panel

	life   context.Context // a base context: of handlers; it ends when Close loses patience
	cancel context.CancelFunc
	gate   sync.RWMutex // held for reading while an event is accepted
	closed bool
	work   workers
}

type waiter struct {
	kinds   []string
	reply   chan answered
	sitting *sitting // nil if the first answer counts
}

type answered struct {
	ev  event.Event
	err error
}

// New returns a running bus; the caller closes it.
func New(cfg Config) *Bus {
	cfg.HandlerTimeout = cmp.Or(cfg.HandlerTimeout, 30*time.Second)
	b := &Bus{cfg: cfg, seed: maphash.MakeSeed(), waiters: map[string]waiter{}, work: workers{wake: make(chan struct{}, maxIdle)}}
	b.life, b.cancel = context.WithCancel(context.Background())
	b.subs.Store(&map[string][]*Subscription{})
	return b
}

// Close refuses new events, waits until accepted ones have been handled, and
// cancels the handlers when ctx ends first. It returns nil when no goroutine of the
// bus is left.
func (b *Bus) Close(ctx context.Context) error {
	b.gate.Lock()
	b.closed = true
	b.gate.Unlock()
	b.work.end()
	done := make(chan struct{})
	go func() {
		b.work.wait.Wait()
		close(done)
	}()
	defer b.cancel()
	defer b.stopTimers()
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

func (b *Bus) stopTimers() {
	for _, subs := range *b.subs.Load() {
		for _, s := range subs {
			s.mu.Lock()
			s.overdue.stop()
			s.mu.Unlock()
		}
	}
}

// Emitter publishes under one source, which its holder cannot change.
type Emitter struct {
	bus        *Bus
	source     string
	kernel     bool
	unrecorded bool
	clientID   string
	turn       string
	starts     bool
}

// Kernel returns the kernel's own emitter. Hand it to kernel code only: it may
// emit every kind. A part of the kernel that has a name of its own in the
// contract gets it from [Emitter.Named].
func (b *Bus) Kernel() *Emitter { return &Emitter{bus: b, source: event.KernelSource, kernel: true} }

// Named returns an emitter with the same rights under another source.
func (e *Emitter) Named(source string) *Emitter {
	next := *e
	next.source = source
	return &next
}

// Unrecorded returns an emitter whose events stay off the tape, for facts that can
// be derived from it. Messages, tool calls and their results are still recorded.
func (e *Emitter) Unrecorded() *Emitter {
	next := *e
	next.unrecorded = true
	return &next
}

// Plugin returns the emitter of a plugin. It stamps the plugin's name as source
// and refuses the kinds that are the kernel's.
func (b *Bus) Plugin(name string) (*Emitter, error) {
	if name == "" || name == event.KernelSource {
		return nil, fmt.Errorf("%w: %q cannot be a plugin's name", ErrRefused, name)
	}
	return &Emitter{bus: b, source: name}, nil
}

// ForClient returns an emitter whose events carry the id that a client gave to its
// submission.
func (e *Emitter) ForClient(id string) *Emitter {
	next := *e
	next.clientID = id
	return &next
}

// ForTurn returns an emitter whose events belong to a turn that does not run yet.
func (e *Emitter) ForTurn(id string) *Emitter {
	next := *e
	next.turn = id
	return &next
}

// Starting returns an emitter whose messages start the turn that they belong to; see
// [event.Event].
func (e *Emitter) Starting() *Emitter {
	next := *e
	next.starts = true
	return &next
}

// Source returns the source name of this emitter's events.
func (e *Emitter) Source() string { return e.source }

// Publish publishes a payload under its topic and returns the stamped event.
func Publish[P any](e *Emitter, t event.Topic[P], session string, payload P) (event.Event, error) {
	return e.publish(t.Kind(), session, payload, nil)
}

// Emit publishes a raw payload under a kind known only at run time. The payload
// is decoded into the kind's type, so that subscribers see one shape whoever
// emitted it.
func (e *Emitter) Emit(kind, session string, payload json.RawMessage) (event.Event, error) {
	return e.emit(kind, session, payload, nil)
}

func (e *Emitter) emit(kind, session string, payload json.RawMessage, prepare func(id string)) (event.Event, error) {
	if len(payload) > MaxPayload {
		return event.Event{}, fmt.Errorf("%w: payload of %d bytes exceeds %d", ErrRefused, len(payload), MaxPayload)
	}
	k, ok := event.Lookup(kind)
	if !ok {
		return event.Event{}, fmt.Errorf("%w: %q is neither a public kind nor in the x. namespace", ErrRefused, kind)
	}
	payload, off, err := takePersist(e.bus.cfg.Secrets.Concealed(payload, true))
	if err != nil {
		return event.Event{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	p, err := event.DecodePayload(kind, payload)
	if err != nil {
		return event.Event{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if off {
		e = e.Unrecorded()
	}
	return e.stamp(k, session, p, prepare)
}

// takePersist removes the members persist and __persist__ from a payload: they are
// directions to the bus, not content.
func takePersist(payload json.RawMessage) (rest json.RawMessage, off bool, err error) {
	if !bytes.Contains(payload, []byte(`persist`)) {
		return payload, false, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(payload, &members); err != nil {
		return nil, false, err
	}
	for _, name := range []string{"persist", "__persist__"} {
		if v, ok := members[name]; ok {
			delete(members, name)
			off = off || string(v) == "false"
		}
	}
	rest, err = json.Marshal(members)
	return rest, off, err
}

// publish accepts one event without the secrets in its payload. When prepare is set it
// gets the event's id before anybody can see the event.
func (e *Emitter) publish(k *event.Kind, session string, payload any, prepare func(id string)) (event.Event, error) {
	if s := e.bus.cfg.Secrets; s.Declared() {
		raw, err := json.Marshal(payload)
		if err != nil {
			return event.Event{}, fmt.Errorf("%w: %w", ErrRefused, err)
		}
		if clean := s.ConcealJSON(bytes.Clone(raw)); !bytes.Equal(clean, raw) {
			if payload, err = event.DecodePayload(k.Name, clean); err != nil {
				return event.Event{}, fmt.Errorf("%w: %w", ErrRefused, err)
			}
		}
	}
	return e.stamp(k, session, payload, prepare)
}

// stamp is publish for a payload without secrets.
func (e *Emitter) stamp(k *event.Kind, session string, payload any, prepare func(id string)) (event.Event, error) {
	b := e.bus
	if k.Emitter == event.KernelOnly && !e.kernel {
		return event.Event{}, fmt.Errorf("%w: only the kernel emits %s, and %q is not the kernel", ErrRefused, k.Name, e.source)
	}
	if k.OnKernel && session != event.KernelSession {
		return event.Event{}, fmt.Errorf("%w: %s travels on session %q, not on %q", ErrRefused, k.Name, event.KernelSession, session)
	}
	if k.InConversation && (session == event.KernelSession || strings.HasPrefix(session, event.BridgePrefix)) {
		return event.Event{}, fmt.Errorf("%w: %s belongs to a conversation, and session %q is not one", ErrRefused, k.Name, session)
	}
	if err := event.CheckSession(session); err != nil {
		return event.Event{}, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return event.Event{}, fmt.Errorf("bus: event id: %w", err)
	}
	ev := event.Event{ID: id.String(), Kind: k.Name, SessionID: session, Time: time.Now(), Source: e.source, Payload: payload, Unrecorded: e.unrecorded, ClientID: e.clientID, Turn: e.turn, Starts: e.starts}
	if prepare != nil {
		prepare(ev.ID)
	}
	rec := b.cfg.Recorder
	if session == event.KernelSession {
		rec = nil // the control plane has no tape
	}
	if rec != nil {
		if err := rec.Prepare(k.Name, session); err != nil {
			return event.Event{}, err
		}
	}
	lost, err := b.accept(&ev, k, rec)
	if err != nil {
		return event.Event{}, err
	}
	if lost != nil {
		rec.Failed(ev, lost)
	}
	if r, ok := payload.(event.Responder); ok && r.RequestRef() != "" {
		b.answer(r.RequestRef(), ev)
	}
	return ev, nil
}

// accept records an event and queues it for its subscribers, in the order of its
// session. It returns the error that kept an accepted event off the tape.
func (b *Bus) accept(ev *event.Event, k *event.Kind, rec Recorder) (lost, err error) {
	b.gate.RLock()
	defer b.gate.RUnlock()
	if b.closed {
		return nil, ErrClosed
	}
	order := &b.order[maphash.String(b.seed, ev.SessionID)%uint64(len(b.order))]
	turn := order.lock(ev.SessionID)
	defer order.unlock(ev.SessionID, turn)
	if rec != nil {
		refuse, err := rec.Record(ev)
		if refuse && err != nil {
			return nil, err
		}
		lost = err
	}
	var first, last *lane
	for _, s := range (*b.subs.Load())[k.Name] {
		switch l := s.enqueue(ev, k.Class); {
		case l == nil:
		case first == nil:
			first, last = l, l
		default:
			last.next, last = l, l
		}
	}
	if first != nil {
		b.work.run(first, last)
	}
	return lost, nil
}

// Wanted reports whether a kind has a subscriber now; publishers of costly
// payloads may ask first.
func (b *Bus) Wanted(kind string) bool { return len((*b.subs.Load())[kind]) > 0 }

// Pending is a request that waits for its answer.
type Pending struct {
	// Event is the published request.
	Event event.Event
	bus   *Bus
	kind  string
	reply chan answered

	panel   Panel
	sitting *sitting // nil if the first answer counts
	asked   time.Time
}

// Ask publishes a payload and registers for its answer: the first event of the
// reply kinds whose payload carries the request's event id, or those of a [Panel]. The caller
// ends it with Wait or Cancel.
func Ask[P any](e *Emitter, t event.Topic[P], session string, payload P, replies ...*event.Kind) (*Pending, error) {
	return e.ask(t.Name(), replies, func(prepare func(id string)) (event.Event, error) {
		return e.publish(t.Kind(), session, payload, prepare)
	})
}

// AskRaw is [Ask] for a raw payload under a kind known only at run time; see [Emitter.Emit].
func (e *Emitter) AskRaw(kind, session string, payload json.RawMessage, replies ...*event.Kind) (*Pending, error) {
	return e.ask(kind, replies, func(prepare func(id string)) (event.Event, error) {
		return e.emit(kind, session, payload, prepare)
	})
}

// ask registers for an answer to what publish publishes.
func (e *Emitter) ask(kind string, replies []*event.Kind, publish func(prepare func(id string)) (event.Event, error)) (*Pending, error) {
	b := e.bus
	p := &Pending{bus: b, kind: kind, reply: make(chan answered, 1)}
	w := waiter{reply: p.reply}
	for _, k := range replies {
		w.kinds = append(w.kinds, k.Name)
	}
	w.sitting = p.sit()
	var id string
	ev, err := publish(func(assigned string) {
		id = assigned
		b.waitMu.Lock()
		b.waiters[id] = w
		b.waitMu.Unlock()
	})
	if err != nil {
		b.forget(id)
		return nil, err
	}
	p.Event = ev
	return p, nil
}

// Wait returns the answer. ctx bounds the wait; a later answer is delivered to
// nobody as a reply.
func (p *Pending) Wait(ctx context.Context) (event.Event, error) {
	defer p.Cancel()
	if p.sitting != nil {
		return p.waitAll(ctx)
	}
	select {
	case a := <-p.reply:
		return a.ev, a.err
	case <-ctx.Done():
		return event.Event{}, fmt.Errorf("no answer to %s: %w", p.kind, context.Cause(ctx))
	case <-p.bus.life.Done():
		return event.Event{}, ErrClosed
	}
}

// Cancel gives up waiting.
func (p *Pending) Cancel() { p.bus.forget(p.Event.ID) }

func (b *Bus) forget(id string) {
	b.waitMu.Lock()
	defer b.waitMu.Unlock()
	delete(b.waiters, id)
}

// Request asks and waits.
func Request[P any](ctx context.Context, e *Emitter, t event.Topic[P], session string, payload P, replies ...*event.Kind) (event.Event, error) {
	p, err := Ask(e, t, session, payload, replies...)
	if err != nil {
		return event.Event{}, err
	}
	return p.Wait(ctx)
}

func (b *Bus) answer(ref string, ev event.Event) {
	b.waitMu.Lock()
	defer b.waitMu.Unlock()
	if w, ok := b.waiters[ref]; ok && slices.Contains(w.kinds, ev.Kind) && w.sitting.answered(ev) {
		delete(b.waiters, ref)
		w.reply <- answered{ev: ev}
	}
}

// Fail ends the wait for the answer of a source to a request with an error, because none can
// come. It does nothing when nobody waits for it.
func (b *Bus) Fail(request, source string, err error) {
	b.waitMu.Lock()
	defer b.waitMu.Unlock()
	if w, ok := b.waiters[request]; ok && w.sitting.failed(source, err) {
		delete(b.waiters, request)
		w.reply <- answered{err: err}
	}
}
