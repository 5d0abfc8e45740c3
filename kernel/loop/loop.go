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

// DefaultMaxIterations bounds the model calls of a turn. It is a fuse: real tasks take
// hundreds of calls, and a turn that gets nowhere ends.
const DefaultMaxIterations = 500

// promptSource is the source of the messages that [Loop.Submit] publishes; it
// starts their turns itself.
const promptSource = "kernel-prompt"

// The reasons for cancelling a turn.
var (
	ErrInterrupted = errors.New("interrupted")
	ErrSuperseded  = errors.New("superseded by a newer message")
	ErrShutdown    = errors.New("shutdown")
)

// Config assembles a loop. Bus and Tools are required; unset fields have working
// defaults.
type Config struct {
	Bus      *bus.Bus
	Tools    *tool.Registry
	Sessions *session.Manager // nil: every turn starts from its one message
	Secrets  *masked.Secrets  // concealed in prompts; optional
	// Boundary is called before each turn: changes of providers become visible then.
	Boundary func(ctx context.Context)
	// Prepare is called before a turn of a session that has no strategy of its own: whoever
	// made the session may give it one.
	Prepare func(session string)
	// Strategy is the id of the strategy of sessions that have none of their own.
	// Default "react".
	Strategy func() string
	// Ready returns an error if the strategy with that id cannot be asked.
	Ready func(strategy string) error
	// HasMemory reports whether anybody answers memory.query.
	HasMemory func() bool
	// Provider is the active provider instance and its model.
	Provider func() (id, model string, err error)
	// Chosen returns the provider and the model that a session's own choice names, as ID or
	// ID/MODEL; the model is "" for the one that the provider has. Default: what the text says.
	Chosen func(choice string) (provider, model string, err error)

	// Budget limits what sessions cost. Default: nothing does.
	Budget Budget
	// Fallbacks are the models that are asked, one after the other, in the place of one that cannot
	// answer, as ID or ID/MODEL. Default: none.
	Fallbacks func() []string

	MaxIterations func() int           // default [DefaultMaxIterations]
	LLMTimeout    func() time.Duration // default 10 min
	// Model returns what is known of a model at a provider; "" is the model that the provider has.
	// Default: nothing, and it may take pictures.
	Model func(provider, model string) Model
	// Summary returns the provider and the model that sum histories up; "" is the turn's own.
	Summary func() (provider, model string)
	// Compaction says how to shorten histories that near the window; false switches it off. A
	// threshold counts in addition to 80 % of the window. Default: on, by the window.
	Compaction func() (session.CompactOptions, bool)
	// Admit is called before the model gets messages of the user: that with which a turn
	// begins, and those that join it. It returns what the model is told in addition, in a note
	// after them, and an error ends the turn. Default: everything is admitted.
	Admit func(ctx context.Context, session, prompt string) (notes string, err error)
	// Notes returns what a system prompt says beside the strategy's own: "" for nothing. It
	// must not take more than a small share of the window, in tokens. tools are those that
	// the model gets, none meaning all. Default: nothing.
	Notes func(session string, window int, tools []string) string
	// Standing returns notes about what lasts beyond a turn, such as commands in the background.
	// One without a text takes back what the history says under its name. Default: none.
	Standing func(session string) []event.TurnNote
	// Look is called before the strategy decides, for the first step of a turn before the message is
	// taken in, and done once it has, or once the request for the model is put together. Parts that
	// read the session's folder for that may share one opening of it meanwhile. Default: each opens it.
	Look func(session string) (done func())
	// Attached returns a message with the content of its attachments. Default: their
	// names.
	Attached func(session string, m event.Message) event.Message
	Log      zerolog.Logger
}

func (c Config) withDefaults() Config {
	if c.Boundary == nil {
		c.Boundary = func(context.Context) {}
	}
	if c.Prepare == nil {
		c.Prepare = func(string) {}
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
	if c.Chosen == nil {
		c.Chosen = func(choice string) (string, string, error) {
			provider, model, _ := strings.Cut(choice, "/")
			return provider, model, nil
		}
	}
	if c.Budget == nil {
		c.Budget = unlimited{}
	}
	if c.Fallbacks == nil {
		c.Fallbacks = func() []string { return nil }
	}
	if c.MaxIterations == nil {
		c.MaxIterations = func() int { return DefaultMaxIterations }
	}
	if c.LLMTimeout == nil {
		c.LLMTimeout = func() time.Duration { return 10 * time.Minute }
	}
	if c.Look == nil {
		c.Look = func(string) func() { return func() {} }
	}
	if c.Attached == nil {
		c.Attached = func(_ string, m event.Message) event.Message {
			if m.Role == "tool" { // its text names them
				return m
			}
			for _, a := range m.Attachments {
				m.Content += "\n[attached: " + cmp.Or(a.Name, a.Ref) + ", " + a.MimeType + "]"
			}
			return m
		}
	}
	if c.Compaction == nil {
		c.Compaction = func() (session.CompactOptions, bool) { return session.CompactOptions{}, true }
	}
	if c.Summary == nil {
		c.Summary = func() (string, string) { return "", "" }
	}
	if c.Admit == nil {
		c.Admit = func(context.Context, string, string) (string, error) { return "", nil }
	}
	if c.Notes == nil {
		c.Notes = func(string, int, []string) string { return "" }
	}
	if c.Standing == nil {
		c.Standing = func(string) []event.TurnNote { return nil }
	}
	if c.Model == nil {
		c.Model = func(_, model string) Model { return Model{ID: model} }
	}
	return c
}

// Model holds the facts about a model that turns depend on.
type Model struct {
	ID     string // "" if it is not known
	Window int    // in tokens, by the settings; 0 if they do not say
	Likely int    // its window if no error of the service has named another; 0: not known
	Answer int    // the output limit of its answers that is asked for, in tokens; 0: the service's
	Blind  bool   // it takes no pictures
	Priced bool   // its prices are known
	Free   bool   // nobody pays for its calls
	// Cost returns what the tokens of a call cost, in US dollars, as far as prices are known; nil: nothing.
	Cost   func(u event.Usage) float64
	Listed bool // it is at a service whose models the catalogue has
}

// Loop runs the turns of all sessions.
type Loop struct {
	cfg    Config
	kernel *bus.Emitter
	gauges gauges

	mu      sync.Mutex
	closed  bool
	threads map[string]*thread
	work    sync.WaitGroup
	subs    []*bus.Subscription
	// waiting are the sessions that go on when one of the resuming ones is done.
	waiting  []*session.Session
	resuming int
	ended    chan struct{} // closed when closed is set
}

// thread is a session as the loop sees it.
type thread struct {
	id    string
	admit sync.Mutex // held while a prompt is taken in

	// Guarded by the loop's mutex.
	current  *turn
	next     string        // id of the turn whose message is being taken in, "" if none
	nextOver bool          // that turn was cancelled
	looked   func()        // ends that turn's look at its folder, nil if there is none
	followed chan struct{} // of the turn that was started last, see turn.followed
	unbegun  int           // turns in a row that the disk did not let begin
	newest   *event.Event  // an adapter's message, which begins the next turn when this one ends
	strategy string
	provider string
	noted    string          // what note is of, see turn.notes
	note     string          // the skills that the system prompt lists
	agents   []string        // sub-agents of this session, whose threads go with it
	unpriced map[string]bool // models that were said to have no known prices
}

// New returns a loop that listens to adapters.
func New(cfg Config) (*Loop, error) {
	l := &Loop{cfg: cfg.withDefaults(), kernel: cfg.Bus.Kernel(), threads: map[string]*thread{}, ended: make(chan struct{})}
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
	if !l.closed {
		close(l.ended)
	}
	l.closed = true
	var running []*turn
	for _, thread := range l.threads {
		if thread.current != nil {
			running = append(running, thread.current)
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
	return l.threadLocked(id)
}

func (l *Loop) threadLocked(id string) *thread {
	known := l.threads[id]
	if known == nil {
		known = &thread{id: id}
		l.threads[id] = known
		if of := event.Root(id); of != id {
			owner := l.threadLocked(of)
			owner.agents = append(owner.agents, id)
		}
	}
	return known
}

// StrategyOf returns the id of the strategy that a session uses.
func (l *Loop) StrategyOf(id string) string {
	l.mu.Lock()
	thread := l.threads[id]
	own := ""
	if thread != nil {
		own = thread.strategy
	}
	l.mu.Unlock()
	return cmp.Or(own, l.cfg.Strategy())
}

// SetStrategy gives a session a strategy of its own, until the loop ends.
func (l *Loop) SetStrategy(id, strategy string) {
	thread := l.thread(id)
	l.mu.Lock()
	defer l.mu.Unlock()
	thread.strategy = strategy
}

// Release forgets a session that was deleted or archived, with its strategy, its provider and
// its sub-agents. Each has an entry in memory from its first message on.
func (l *Loop) Release(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	thread := l.threads[id]
	if thread == nil || thread.current != nil || thread.newest != nil || !thread.admit.TryLock() {
		return
	}
	defer thread.admit.Unlock()
	for _, agent := range thread.agents {
		delete(l.threads, agent)
	}
	delete(l.threads, id)
	l.cfg.Budget.Forget(id)
}

// own reports whether the loop itself has published an event.
func own(ev event.Event) bool { return ev.Source == promptSource || ev.Source == event.KernelSource }

// interrupted stops a turn at the moment in which the bus accepts the interrupt.
// Calls that the interrupt ends elsewhere end after that, and so do not count as a
// failure of the turn. fromAdapter handles the other events.
func (l *Loop) interrupted(ev event.Event) bool {
	if own(ev) {
		return false
	}
	if ev.Kind != event.UserInterrupt.Name() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch thread := l.threads[ev.SessionID]; {
	case thread == nil:
	case thread.current != nil:
		thread.current.stop(ErrInterrupted) // the bus has it already
	case thread.next != "":
		thread.nextOver = true
	}
	return false
}

// fromAdapter accepts the messages that adapters publish. It does not wait.
func (l *Loop) fromAdapter(_ context.Context, ev event.Event) error {
	thread := l.thread(ev.SessionID)
	l.mu.Lock()
	waiting := thread.newest != nil
	thread.newest = &ev
	start := !waiting && !l.closed
	if start {
		l.work.Add(1)
	}
	l.mu.Unlock()
	if start {
		go func() {
			defer l.work.Done()
			l.supersede(thread)
		}()
	}
	return nil
}

// supersede ends the running turn and starts one for the newest message. Those
// in between are on the tape, and the model sees them.
func (l *Loop) supersede(thread *thread) {
	thread.admit.Lock()
	defer thread.admit.Unlock()
	l.end(thread, ErrSuperseded)
	l.mu.Lock()
	ev := thread.newest
	thread.newest = nil
	l.mu.Unlock()
	if _, err := l.start(thread, startWith{event: *ev}); err != nil && !errors.Is(err, ErrShutdown) {
		l.cfg.Log.Error().Err(err).Str("session", thread.id).Msg("a turn could not be started")
	}
}

// end cancels the running turn, if there is one, and waits for it; the thread's
// admit lock is held.
func (l *Loop) end(thread *thread, why error) {
	l.mu.Lock()
	t := thread.current
	l.mu.Unlock()
	if t != nil {
		t.cancel(why)
		<-t.done
	}
}

// report logs errors of publishing; a closed bus has no listeners.
func (l *Loop) report(err error) {
	if err != nil && !errors.Is(err, bus.ErrClosed) {
		l.cfg.Log.Error().Err(err).Msg("an event of a turn could not be published")
	}
}
