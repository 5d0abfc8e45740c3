package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

const (
	decideTimeout = 30 * time.Second
	memoryTimeout = 5 * time.Second
	// settleTime is how long a cancelled turn waits for the calls that it has
	// cancelled, so that their results come before its end.
	settleTime = 2 * time.Second
)

// turn is one run of the sequence.
type turn struct {
	l       *Loop
	th      *thread
	id      string
	ctx     context.Context
	stop    context.CancelCauseFunc // without telling the bus
	tools   *tool.Snapshot
	session *session.Session // nil without a store
	started event.Event      // the message; without id for a retry
	limit   int
	done    chan struct{}

	mu     sync.Mutex
	asked  string             // the id of the model request in flight
	heard  chan struct{}      // closed when the relay has seen its end
	counts map[[32]byte]int   // how often each call was made, see guard
	steers int                // messages that have joined the turn
	ending bool               // no message can join any more
	own    session.Projection // the history without a store

	// The turn's goroutine's own.
	out      Outcome
	recalled bool
	answered bool // the model has answered without calling tools …
	seen     int  // … and had seen so many of the steers
	checks   int  // how often the strategy has made calls of its own
	memories []event.MemoryEntry
	pending  []event.ToolCall
}

type startWith struct {
	event    event.Event
	id       string // "" makes one up
	maxSteps int
}

// start begins a turn; the thread's admit lock is held and nothing runs.
func (l *Loop) start(th *thread, w startWith) (*turn, error) {
	t := &turn{l: l, th: th, id: cmp.Or(w.id, newTurnID()), started: w.event, limit: l.cfg.MaxIterations(), done: make(chan struct{}), counts: map[[32]byte]int{}}
	if w.maxSteps > 0 {
		t.limit = min(t.limit, w.maxSteps)
	}
	t.ctx, t.stop = context.WithCancelCause(context.Background())
	t.out.TurnID = t.id
	release := func() {}
	if l.cfg.Sessions != nil {
		s, err := l.cfg.Sessions.Open(th.id, "")
		if err != nil {
			t.stop(nil)
			return nil, err
		}
		t.session = s
		release = s.Pin()
	} else {
		t.observe(w.event)
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		release()
		t.stop(nil)
		return nil, ErrShutdown
	}
	th.current = t
	l.work.Add(1)
	l.mu.Unlock()
	go func() {
		defer l.work.Done()
		defer release()
		t.run()
	}()
	return t, nil
}

// cancel ends the turn and tells everybody who works for it, unless it is about to
// end: then an interrupt would meet whatever comes after it. It writes to the
// tape, so no lock but the turn's is held.
func (t *turn) cancel(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending || t.ctx.Err() != nil {
		return
	}
	t.stop(why)
	_, err := bus.Publish(t.l.kernel, event.UserInterrupt, t.th.id, event.Empty{})
	t.l.report(err)
}

// run drives the turn and publishes its one end.
func (t *turn) run() {
	l := t.l
	kind, err := t.guarded()
	t.mu.Lock()
	t.ending = true
	t.mu.Unlock()
	if cause := context.Cause(t.ctx); err != nil && cause != nil {
		_, perr := bus.Publish(l.kernel, event.TurnWasCancelled, t.th.id, event.TurnCancelled{TurnID: t.id, Reason: cause.Error()})
		l.report(perr)
		t.out.Err, t.out.Kind = cause, "cancelled"
	} else if err != nil {
		_, perr := bus.Publish(l.kernel, event.TurnHasFailed, t.th.id, event.TurnFailed{TurnID: t.id, Error: err.Error(), Kind: kind})
		l.report(perr)
		t.out.Err, t.out.Kind = err, kind
	} else {
		_, perr := bus.Publish(l.kernel, event.TurnWasCompleted, t.th.id, event.TurnCompleted{TurnID: t.id, Usage: t.out.Usage, Steps: t.out.Steps})
		l.report(perr)
	}
	t.stop(nil)
	l.mu.Lock()
	t.th.current = nil
	l.mu.Unlock()
	close(t.done)
	if t.session != nil {
		l.next(t.th, t.session)
	}
}

// next starts the first of the queued prompts.
func (l *Loop) next(th *thread, s *session.Session) {
	th.admit.Lock()
	defer th.admit.Unlock()
	for {
		l.mu.Lock()
		idle := th.current == nil && th.newest == nil && !l.closed
		l.mu.Unlock()
		sn, err := s.Snapshot()
		if !idle || err != nil || len(sn.Queue) == 0 {
			return
		}
		p := sn.Queue[0]
		// A crash between the message and the shorter queue leaves both.
		was, _, err := s.Admitted(p.ID)
		var ev event.Event
		turn := newTurnID()
		if err == nil && was.Entry == 0 {
			ev, err = l.say(context.Background(), s, Prompt{SessionID: th.id, ID: p.ID, Text: p.Text, Attachments: p.Attachments}, turn)
		}
		if err == nil {
			_, err = s.SetQueue(sn.Queue[1:])
		}
		if err != nil {
			l.cfg.Log.Error().Err(err).Str("session", th.id).Msg("a queued prompt could not be started")
			return
		}
		if was.Entry > 0 {
			continue
		}
		if _, err := l.start(th, startWith{event: ev, id: turn}); err != nil {
			l.report(err)
			return
		}
	}
}

// guarded runs the sequence and turns a panic into a failure.
func (t *turn) guarded() (kind string, err error) {
	defer func() {
		if v := recover(); v != nil {
			t.l.cfg.Log.Error().Interface("panic", v).Bytes("stack", debug.Stack()).Str("session", t.th.id).Msg("a turn panicked")
			kind, err = "internal", fmt.Errorf("the turn panicked: %v", v)
		}
	}()
	t.l.cfg.Boundary(t.ctx)
	snap, release := t.l.cfg.Tools.Pin(t.th.id)
	defer release()
	t.tools = snap
	_, model, err := t.l.cfg.Provider()
	if err != nil {
		model = "" // the strategy may know better
	}
	if _, err := bus.Publish(t.l.kernel.ForTurn(t.id), event.TurnWasStarted, t.th.id, event.TurnStarted{TurnID: t.id, Model: model, ToolGeneration: snap.Generation()}); err != nil {
		return "storage", err
	}
	t.compact()
	return t.sequence()
}

// stepError is a failure with its kind.
type stepError struct {
	kind string
	err  error
}

func (e *stepError) Error() string { return e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }

func failed(kind, format string, args ...any) error {
	return &stepError{kind, fmt.Errorf(format, args...)}
}

// sequence asks the strategy what comes next until it is done.
func (t *turn) sequence() (kind string, err error) {
	for {
		if err := context.Cause(t.ctx); err != nil {
			return "cancelled", err
		}
		d, err := t.decide()
		if err == nil {
			switch d.Next {
			case event.NextMemory:
				err = t.recall(d)
			case event.NextLLM:
				err = t.model(d)
			case event.NextTool:
				if err = t.volunteer(d.ToolCalls); err == nil {
					err = t.callTools()
				}
			case event.NextDone:
				var over bool
				if over, err = t.finish(d); over && err == nil {
					return "", nil
				}
			default:
				err = failed("strategy", "the strategy %s decided %q, which is no step", t.l.StrategyOf(t.th.id), d.Next)
			}
		}
		if err != nil {
			if s, ok := errors.AsType[*stepError](err); ok {
				return s.kind, err
			}
			return "internal", err
		}
	}
}

// history returns what the model is shown of the conversation.
func (t *turn) history() ([]event.Message, error) {
	if t.session == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.own.Messages(), nil
	}
	msgs, err := t.session.Messages()
	if err != nil {
		return nil, &stepError{"storage", err}
	}
	return msgs, nil
}

// observe keeps the history when there is no tape to do it.
func (t *turn) observe(ev event.Event) {
	if t.l.cfg.Sessions != nil {
		return
	}
	if e, ok := session.EntryOf(ev); ok {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.own.Apply(e)
	}
}

// join publishes a message into the turn, unless it is about to end. The model
// sees it at its next call.
func (t *turn) join(publish func() (event.Event, error)) (ev event.Event, joined bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending {
		return event.Event{}, false, nil
	}
	if ev, err = publish(); err != nil {
		return event.Event{}, false, err
	}
	t.steers++
	if t.session == nil {
		if e, ok := session.EntryOf(ev); ok {
			t.own.Apply(e)
		}
	}
	return ev, true, nil
}

// said reports whether the model has answered everything that was said.
func (t *turn) said() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.answered && t.seen == t.steers
}

func (t *turn) decide() (event.DecideResponse, error) {
	strategy := t.l.StrategyOf(t.th.id)
	if err := t.l.cfg.Ready(strategy); err != nil {
		return event.DecideResponse{}, &stepError{"strategy", err}
	}
	msgs, err := t.history()
	if err != nil {
		return event.DecideResponse{}, err
	}
	names := make([]string, 0, t.tools.Len())
	for e := range t.tools.All() {
		names = append(names, e.Def.Name)
	}
	ctx, cancel := context.WithTimeout(t.ctx, decideTimeout)
	defer cancel()
	ev, err := bus.Request(ctx, t.l.kernel.Unrecorded(), event.StrategyDecideRequest, t.th.id, event.DecideRequest{State: event.LoopState{
		TurnID: t.id, Step: t.out.Steps, Messages: msgs, ToolNames: names, Pending: t.pending, Recalled: t.recalled,
		Answered: t.said(), Answer: t.out.Text,
	}}, event.StrategyDecideResponse.Kind())
	if err != nil {
		return event.DecideResponse{}, &stepError{"strategy", err}
	}
	d, ok := ev.Payload.(event.DecideResponse)
	if !ok {
		return event.DecideResponse{}, failed("strategy", "the strategy answered with a %T", ev.Payload)
	}
	return d, nil
}

// recall asks memory, which comes before the model and once.
func (t *turn) recall(d event.DecideResponse) error {
	if t.recalled || t.out.Steps > 0 {
		return failed("strategy", "the strategy asked memory out of order")
	}
	t.recalled = true
	if !t.l.cfg.HasMemory() {
		return nil
	}
	ctx, cancel := context.WithTimeout(t.ctx, memoryTimeout)
	defer cancel()
	ev, err := bus.Request(ctx, t.l.kernel, event.MemoryQueried, t.th.id, event.MemoryQuery{Query: d.Query, K: max(d.K, 1)}, event.MemoryAnswered.Kind())
	if err != nil {
		// A turn without its memories is worth more than none.
		t.l.cfg.Log.Warn().Err(err).Str("session", t.th.id).Msg("memory did not answer")
		return nil
	}
	if r, ok := ev.Payload.(event.MemoryResult); ok {
		t.memories = r.Hits
	}
	return nil
}

// remembered is what memory had, as the model reads it: data, not orders.
func (t *turn) remembered() string {
	if len(t.memories) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("Notes from earlier conversations, which may or may not matter here:")
	for _, m := range t.memories {
		b.WriteString("\n- ")
		b.WriteString(strings.Join(strings.Fields(m.Text), " "))
	}
	return b.String()
}

// volunteer makes calls that the strategy itself wants open ones, once the model has
// answered: to check its work, say. They go through the same door as the model's, and
// the history has them as the assistant's.
func (t *turn) volunteer(calls []event.ToolCall) error {
	if len(calls) == 0 {
		return nil
	}
	if len(t.pending) > 0 || !t.answered {
		return failed("strategy", "the strategy wants calls of its own while the model's are open")
	}
	if t.checks++; t.checks > t.limit {
		return failed("max_iterations", "the strategy has made its own calls %d times", t.limit)
	}
	// As if the model had said so, but in answer to no request.
	ev, err := bus.Publish(t.l.kernel, event.LLMCallResponse, t.th.id, event.LLMResponse{Text: t.out.Text, ToolCalls: calls})
	if err != nil {
		return &stepError{"storage", err}
	}
	t.observe(ev)
	t.pending = calls
	return nil
}

// callTools runs the calls that the model asked for, all at once, and waits for
// the end of each.
func (t *turn) callTools() error {
	calls := t.pending
	if len(calls) == 0 {
		return failed("strategy", "the strategy wants tools to run and the model asked for none")
	}
	t.pending = nil
	var waits []*bus.Pending
	var err error
	for _, c := range calls {
		var p *bus.Pending
		p, err = bus.Ask(t.l.kernel.ForTurn(t.id), event.ToolCallRequest, t.th.id, event.ToolRequest{ID: c.ID, Name: c.Name, Args: c.Args, SchemaVersion: event.SchemaV1},
			event.ToolCallResult.Kind(), event.ToolCallError.Kind())
		if err != nil {
			err = &stepError{"storage", err}
			break
		}
		waits = append(waits, p)
		t.out.Calls = append(t.out.Calls, c)
	}
	ctx, settled := t.grace()
	defer settled()
	for _, p := range waits {
		ev, werr := p.Wait(ctx)
		if werr != nil {
			err = errors.Join(err, werr)
			continue
		}
		t.observe(ev)
	}
	return err
}

// grace returns a context that ends a moment after the turn was cancelled.
func (t *turn) grace() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.ctx))
	stop := context.AfterFunc(t.ctx, func() {
		select {
		case <-time.After(settleTime):
			cancel(context.Cause(t.ctx))
		case <-ctx.Done(): // everything has settled
		}
	})
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// finish says what the assistant has to say, and remembers what it should. over
// is false when something was said in the meantime: then the turn goes on.
func (t *turn) finish(d event.DecideResponse) (over bool, err error) {
	if len(t.pending) > 0 || !t.answered {
		return false, failed("strategy", "the strategy is done before the model is")
	}
	t.mu.Lock()
	t.ending = t.seen == t.steers
	over = t.ending
	t.mu.Unlock()
	if !over {
		return false, nil
	}
	if _, err := bus.Publish(t.l.kernel, event.AssistantMessageDone, t.th.id, event.AssistantMessage{Content: t.out.Text, ToolCalls: []event.ToolCall{}}); err != nil {
		return false, &stepError{"storage", err}
	}
	if d.Remember != "" && t.l.cfg.HasMemory() {
		_, err := bus.Publish(t.l.kernel, event.MemoryWritten, t.th.id, event.MemoryWrite{Entry: event.MemoryEntry{Text: d.Remember, Meta: map[string]string{"session_id": t.th.id}}})
		t.l.report(err)
	}
	return true, nil
}

// marshalParams keeps params an object.
func marshalParams(p json.RawMessage) json.RawMessage {
	if len(p) == 0 {
		return json.RawMessage("{}")
	}
	return p
}
