package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// DefaultMaxIterations bounds the model calls of a turn.
const DefaultMaxIterations = 16

// promptSource is the source of the messages that [Loop.Submit] publishes, which
// start their turn by themselves.
const promptSource = "kernel-prompt"

// The reasons a turn is cancelled for.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrSuperseded  = errors.New("superseded by a newer message")
	ErrShutdown    = errors.New("shutdown")
)

// Config assembles a loop. Bus and Tools are required; what is not set has a
// default that works.
type Config struct {
	Bus      *bus.Bus
	Tools    *tool.Registry
	Sessions *session.Manager // nil: every turn starts from its one message (Y-161)
	Secrets  *masked.Secrets  // are in no prompt; optional
	// Boundary is called before each turn: what providers have changed becomes
	// visible now.
	Boundary func(ctx context.Context)
	// Strategy is the id of the strategy of sessions that have none of their own.
	// Default "react".
	Strategy func() string
	// Ready reports why the strategy of that id cannot be asked; nil means it can.
	Ready func(strategy string) error
	// HasMemory reports whether anybody answers memory.query.
	HasMemory func() bool
	// Provider is the active provider instance and its model, for summaries.
	Provider func() (id, model string, err error)

	MaxIterations func() int           // default [DefaultMaxIterations]
	LLMTimeout    func() time.Duration // default 10 min
	// Compaction says how to shorten histories; false switches it off.
	Compaction func() (session.CompactOptions, bool)
	// Attached returns a message with the content of its attachments. Default: names
	// them.
	Attached func(session string, m event.Message) event.Message
	Log      zerolog.Logger
}

func (c Config) withDefaults() Config {
	if c.Boundary == nil {
		c.Boundary = func(context.Context) {}
	}
	if c.Strategy == nil {
		c.Strategy = func() string { return "react" }
	}
	if c.Ready == nil {
		c.Ready = func(string) error { return nil }
	}
	if c.HasMemory == nil {
		c.HasMemory = func() bool { return false }
	}
	if c.Provider == nil {
		c.Provider = func() (string, string, error) { return "", "", errors.New("no provider is configured") }
	}
	if c.MaxIterations == nil {
		c.MaxIterations = func() int { return DefaultMaxIterations }
	}
	if c.LLMTimeout == nil {
		c.LLMTimeout = func() time.Duration { return 10 * time.Minute }
	}
	if c.Attached == nil {
		c.Attached = func(_ string, m event.Message) event.Message {
			for _, a := range m.Attachments {
				m.Content += "\n[attached: " + cmp.Or(a.Name, a.Ref) + ", " + a.MimeType + "]"
			}
			return m
		}
	}
	if c.Compaction == nil {
		c.Compaction = func() (session.CompactOptions, bool) { return session.CompactOptions{}, false }
	}
	return c
}

// Loop runs the turns of all sessions.
type Loop struct {
	cfg    Config
	kernel *bus.Emitter

	mu      sync.Mutex
	closed  bool
	threads map[string]*thread
	work    sync.WaitGroup
	subs    []*bus.Subscription
}

// thread is a session as the loop sees it.
type thread struct {
	id    string
	admit sync.Mutex // held while a prompt is taken in

	// Guarded by the loop's mutex.
	current  *turn
	newest   *event.Event // a message of an adapter that waits to supersede
	strategy string
	provider string
}

// New returns a loop that listens to adapters.
func New(cfg Config) (*Loop, error) {
	l := &Loop{cfg: cfg.withDefaults(), kernel: cfg.Bus.Kernel(), threads: map[string]*thread{}}
	from, err := cfg.Bus.Subscribe(bus.SubscribeOptions{Name: "loop", Limit: 8192, Filter: l.interrupted},
		[]string{event.UserMessageReceived.Name(), event.UserInterrupt.Name()}, l.fromAdapter)
	if err != nil {
		return nil, err
	}
	l.subs = append(l.subs, from)
	return l, l.relay()
}

// Close cancels every turn with reason shutdown and waits for them.
func (l *Loop) Close(ctx context.Context) error {
	l.mu.Lock()
	l.closed = true
	var running []*turn
	for _, th := range l.threads {
		if th.current != nil {
			running = append(running, th.current)
		}
	}
	l.mu.Unlock()
	for _, t := range running {
		t.cancel(ErrShutdown)
	}
	done := make(chan struct{})
	go func() {
		l.work.Wait()
		close(done)
	}()
	defer func() {
		for _, s := range l.subs {
			s.Close()
		}
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("turns are still running: %w", ctx.Err())
	}
}

func (l *Loop) thread(id string) *thread {
	l.mu.Lock()
	defer l.mu.Unlock()
	th := l.threads[id]
	if th == nil {
		th = &thread{id: id}
		l.threads[id] = th
	}
	return th
}

// StrategyOf returns the id of the strategy that a session uses (Y-156).
func (l *Loop) StrategyOf(id string) string {
	l.mu.Lock()
	th := l.threads[id]
	own := ""
	if th != nil {
		own = th.strategy
	}
	l.mu.Unlock()
	return cmp.Or(own, l.cfg.Strategy())
}

// SetStrategy gives a session a strategy of its own, until the loop ends.
func (l *Loop) SetStrategy(id, strategy string) {
	th := l.thread(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	th.strategy = strategy
}

// SetProvider gives a session and its sub-agents a provider of their own, until the loop
// ends; "" is the active one.
func (l *Loop) SetProvider(id, provider string) {
	th := l.thread(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	th.provider = provider
}

// providerOf returns the provider that was chosen for a session, "" for the active one.
func (l *Loop) providerOf(id string) string {
	root, _, _ := strings.Cut(id, "::agent::")
	l.mu.Lock()
	defer l.mu.Unlock()
	if th := l.threads[root]; th != nil {
		return th.provider
	}
	return ""
}

// Release forgets a session that is not used any more, its strategy and its provider.
func (l *Loop) Release(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	th := l.threads[id]
	if th == nil || th.current != nil || th.newest != nil || !th.admit.TryLock() {
		return
	}
	defer th.admit.Unlock()
	delete(l.threads, id)
}

// own reports whether the loop itself has published an event.
func own(ev event.Event) bool { return ev.Source == promptSource || ev.Source == event.KernelSource }

// interrupted stops a turn at the very moment in which the bus accepts the
// interrupt: what the interrupt ends elsewhere comes after it, and is not taken
// for a failure of the turn. The other events are for fromAdapter.
func (l *Loop) interrupted(ev event.Event) bool {
	if own(ev) {
		return false
	}
	if ev.Kind != event.UserInterrupt.Name() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if th := l.threads[ev.SessionID]; th != nil && th.current != nil {
		th.current.stop(ErrInterrupted) // the bus has it already
	}
	return false
}

// fromAdapter takes in the messages that adapters publish. It does not wait.
func (l *Loop) fromAdapter(_ context.Context, ev event.Event) error {
	th := l.thread(ev.SessionID)
	l.mu.Lock()
	waiting := th.newest != nil
	th.newest = &ev
	start := !waiting && !l.closed
	if start {
		l.work.Add(1)
	}
	l.mu.Unlock()
	if start {
		go func() {
			defer l.work.Done()
			l.supersede(th)
		}()
	}
	return nil
}

// supersede ends the running turn and starts one for the newest message. Those
// in between are on the tape, and the model sees them.
func (l *Loop) supersede(th *thread) {
	th.admit.Lock()
	defer th.admit.Unlock()
	l.end(th, ErrSuperseded)
	l.mu.Lock()
	ev := th.newest
	th.newest = nil
	l.mu.Unlock()
	if _, err := l.start(th, startWith{event: *ev}); err != nil && !errors.Is(err, ErrShutdown) {
		l.cfg.Log.Error().Err(err).Str("session", th.id).Msg("a turn could not be started")
	}
}

// end cancels the running turn, if there is one, and waits for it; the thread's
// admit lock is held.
func (l *Loop) end(th *thread, why error) {
	l.mu.Lock()
	t := th.current
	l.mu.Unlock()
	if t != nil {
		t.cancel(why)
		<-t.done
	}
}

// report logs what could not be published; a closed bus has no listeners.
func (l *Loop) report(err error) {
	if err != nil && !errors.Is(err, bus.ErrClosed) {
		l.cfg.Log.Error().Err(err).Msg("an event of a turn could not be published")
	}
}
