package loop

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// Delivery says what happens to a prompt while a turn runs.
type Delivery string

// The deliveries.
const (
	DeliverReject    Delivery = "reject"    // refuse it with ErrBusy; the default
	DeliverQueue     Delivery = "queue"     // run it when the turn has ended
	DeliverSteer     Delivery = "steer"     // let the running turn see it
	DeliverInterrupt Delivery = "interrupt" // end the running turn first
)

// maxQueue bounds the queued prompts of a session.
const maxQueue = 32

var (
	// ErrBusy refuses a prompt while a turn runs.
	ErrBusy = session.ErrBusy
	// ErrConflict refuses a prompt with the id of another.
	ErrConflict = errors.New("a different prompt has this id")
	// ErrTurn refuses to steer a turn that is not the one expected.
	ErrTurn = errors.New("another turn is running than the one expected")
	// ErrQueueFull refuses a prompt when too many wait.
	ErrQueueFull = fmt.Errorf("%d prompts are waiting already", maxQueue)
	// ErrNothing refuses to retry when there is nothing left unanswered.
	ErrNothing = errors.New("there is nothing to retry")
)

// Prompt is something that a user says.
type Prompt struct {
	SessionID string
	Workspace string // of a new session; "" for the default
	// ID is the client's; the same id with the same content is the same prompt,
	// and is taken once. "" makes one up.
	ID          string
	Text        string
	Attachments []event.Attachment
	Delivery    Delivery
	// ExpectedTurn guards steering; "" does not.
	ExpectedTurn string
	// Hold only takes the prompt in; its turn starts with [Loop.Retry], or another
	// prompt. While a turn runs it is refused.
	Hold bool
	// MaxSteps bounds the model calls of its turn below the configured bound.
	MaxSteps int
}

// Admission says what became of a prompt.
type Admission struct {
	ID        string `json:"id"`
	TurnID    string `json:"turn_id,omitempty"` // the turn that takes it; none yet for what is queued
	Entry     int64  `json:"entry,omitempty"`   // of its message on the tape
	Queued    bool   `json:"queued,omitempty"`
	Duplicate bool   `json:"duplicate,omitempty"` // it was admitted before

	turn *turn
}

// Submit takes a prompt in. When it returns without error, the prompt is on the
// disk; what comes of it comes as events.
func (l *Loop) Submit(ctx context.Context, p Prompt) (Admission, error) {
	p.ID = cmp.Or(p.ID, "msg_"+rand.Text())
	p.Text = l.cfg.Secrets.ConcealString(p.Text) // as it will be on the tape
	th := l.thread(p.SessionID)
	th.admit.Lock()
	defer th.admit.Unlock()
	var s *session.Session
	stored := session.Prompt{ID: p.ID, Text: p.Text, Attachments: p.Attachments}
	if l.cfg.Sessions != nil {
		var err error
		if s, err = l.cfg.Sessions.Open(p.SessionID, p.Workspace); err != nil {
			return Admission{}, err
		}
		was, known, err := s.Admitted(p.ID)
		if err != nil {
			return Admission{}, err
		}
		if known && was.Hash != stored.Hash() {
			return Admission{}, fmt.Errorf("prompt %s: %w", p.ID, ErrConflict)
		}
		if known {
			return Admission{ID: p.ID, TurnID: was.Turn, Entry: was.Entry, Queued: was.Entry == 0, Duplicate: true}, nil
		}
	}
	l.mu.Lock()
	running := th.current
	l.mu.Unlock()
	if running != nil && p.Hold {
		return Admission{}, fmt.Errorf("session %s: %w", p.SessionID, ErrBusy)
	}
	if running != nil {
		switch p.Delivery {
		case DeliverQueue:
			return l.enqueue(ctx, s, stored)
		case DeliverSteer:
			if a, joined, err := l.steer(ctx, s, running, p); joined || err != nil {
				return a, err
			}
			<-running.done // it was about to end: the prompt gets a turn of its own
		case DeliverInterrupt:
			l.end(th, ErrInterrupted)
		case DeliverReject, "":
			return Admission{}, fmt.Errorf("session %s: %w", p.SessionID, ErrBusy)
		default:
			return Admission{}, fmt.Errorf("there is no delivery %q", p.Delivery)
		}
	}
	turn := newTurnID()
	ev, err := l.say(ctx, s, p, turn)
	if err != nil {
		return Admission{}, err
	}
	if p.Hold {
		return Admission{ID: p.ID, TurnID: turn, Entry: ev.Entry}, nil
	}
	t, err := l.start(th, startWith{event: ev, id: turn, maxSteps: p.MaxSteps})
	if err != nil {
		return Admission{}, err
	}
	return Admission{ID: p.ID, TurnID: t.id, Entry: ev.Entry, turn: t}, nil
}

func newTurnID() string { return "turn_" + rand.Text() }

// publish publishes a prompt as a message that belongs to a turn.
func (l *Loop) publish(p Prompt, turn string) (event.Event, error) {
	return bus.Publish(l.kernel.Named(promptSource).ForClient(p.ID).ForTurn(turn), event.UserMessageReceived, p.SessionID, event.UserMessage{Text: p.Text, Attachments: p.Attachments})
}

// say publishes a prompt and waits for the disk.
func (l *Loop) say(ctx context.Context, s *session.Session, p Prompt, turn string) (event.Event, error) {
	ev, err := l.publish(p, turn)
	if err != nil || s == nil {
		return ev, err
	}
	return ev, s.Sync(ctx, ev.Entry)
}

func (l *Loop) enqueue(ctx context.Context, s *session.Session, p session.Prompt) (Admission, error) {
	if s == nil {
		return Admission{}, fmt.Errorf("without a session store nothing can be queued: %w", ErrBusy)
	}
	sn, err := s.Snapshot()
	if err != nil {
		return Admission{}, err
	}
	if len(sn.Queue) >= maxQueue {
		return Admission{}, ErrQueueFull
	}
	entry, err := s.SetQueue(append(sn.Queue, p))
	if err == nil {
		err = s.Sync(ctx, entry)
	}
	return Admission{ID: p.ID, Queued: true}, err
}

// steer lets a prompt join a running turn; joined is false when that is about to
// end.
func (l *Loop) steer(ctx context.Context, s *session.Session, t *turn, p Prompt) (a Admission, joined bool, err error) {
	if p.ExpectedTurn != "" && p.ExpectedTurn != t.id {
		return Admission{}, false, ErrTurn
	}
	ev, joined, err := t.join(func() (event.Event, error) { return l.publish(p, t.id) })
	if err != nil || !joined {
		return Admission{}, false, err
	}
	if s != nil {
		err = s.Sync(ctx, ev.Entry)
	}
	return Admission{ID: p.ID, TurnID: t.id, Entry: ev.Entry, turn: t}, true, err
}

// Queue replaces the queued prompts of a session by a part of them, in any
// order: that is how one is moved or taken back.
func (l *Loop) Queue(ctx context.Context, id string, prompts []string) ([]session.Prompt, error) {
	if l.cfg.Sessions == nil {
		return nil, session.ErrNotFound
	}
	s, err := l.cfg.Sessions.Find(id, "")
	if err != nil {
		return nil, err
	}
	th := l.thread(id)
	th.admit.Lock()
	defer th.admit.Unlock()
	sn, err := s.Snapshot()
	if err != nil {
		return nil, err
	}
	var next []session.Prompt
	for _, want := range prompts {
		i := slices.IndexFunc(sn.Queue, func(p session.Prompt) bool { return p.ID == want })
		if i < 0 {
			return nil, fmt.Errorf("prompt %s is not in the queue", want)
		}
		next = append(next, sn.Queue[i])
		sn.Queue = slices.Delete(sn.Queue, i, i+1)
	}
	entry, err := s.SetQueue(next)
	if err == nil {
		err = s.Sync(ctx, entry)
	}
	return next, err
}

// Cancel ends the running turn of a session now: its calls, its asks and its
// model call. It reports whether there was one.
func (l *Loop) Cancel(id string) bool {
	l.mu.Lock()
	var t *turn
	if th := l.threads[id]; th != nil {
		t = th.current
	}
	l.mu.Unlock()
	if t == nil {
		return false
	}
	t.cancel(ErrInterrupted)
	return true
}

// ErrNotRetryable refuses to run a turn again that has been completed, or is not the
// session's last.
var ErrNotRetryable = errors.New("only the last turn can be run again, and only if it has failed, was cancelled or has not been started")

// Retry starts a turn for what a failed or cancelled one left unanswered, or what
// was said and held. turn names that turn, "" whichever it is.
func (l *Loop) Retry(id, turn string) (Admission, error) {
	if l.cfg.Sessions == nil {
		return Admission{}, ErrNothing
	}
	s, err := l.cfg.Sessions.Find(id, "")
	if err != nil {
		return Admission{}, err
	}
	th := l.thread(id)
	th.admit.Lock()
	defer th.admit.Unlock()
	l.mu.Lock()
	running := th.current
	l.mu.Unlock()
	if running != nil {
		return Admission{}, fmt.Errorf("session %s: %w", id, ErrBusy)
	}
	sn, err := s.Snapshot()
	if err != nil {
		return Admission{}, err
	}
	held := sn.PendingTurn != ""
	if turn != "" && turn != sn.PendingTurn && (held || turn != sn.LastTurn.ID || sn.LastTurn.Status == "completed") {
		return Admission{}, fmt.Errorf("turn %s: %w", turn, ErrNotRetryable)
	}
	msgs, err := s.Messages()
	if err != nil {
		return Admission{}, err
	}
	if n := len(msgs); n == 0 || (msgs[n-1].Role == "assistant" && len(msgs[n-1].ToolCalls) == 0) {
		return Admission{}, ErrNothing
	}
	t, err := l.start(th, startWith{event: event.Event{SessionID: id}, id: sn.PendingTurn})
	if err != nil {
		return Admission{}, err
	}
	return Admission{TurnID: t.id, turn: t}, nil
}

// State is what a session is doing.
type State string

// The states.
const (
	Idle           State = "idle"
	Running        State = "running"
	RequiresAction State = "requires_action" // an ask waits
)

// State returns what a session is doing, and in which turn.
func (l *Loop) State(id string) (State, string) {
	l.mu.Lock()
	var t *turn
	if th := l.threads[id]; th != nil {
		t = th.current
	}
	l.mu.Unlock()
	if t == nil {
		return Idle, ""
	}
	if l.cfg.Sessions != nil {
		if s, ok := l.cfg.Sessions.Get(id); ok {
			if sn, err := s.Snapshot(); err == nil && len(sn.Asks) > 0 {
				return RequiresAction, t.id
			}
		}
	}
	return Running, t.id
}

// Outcome is how a turn ended.
type Outcome struct {
	TurnID string
	Text   string // the assistant's last message
	Steps  int
	Usage  event.Usage
	Calls  []event.ToolCall // in the order in which they were asked for
	Err    error            // nil when it was completed
	Kind   string           // of the failure
}

// Run submits a prompt and waits for its turn. When ctx ends first, the turn is
// cancelled.
func (l *Loop) Run(ctx context.Context, p Prompt) (Outcome, error) {
	a, err := l.Submit(ctx, p)
	if err != nil {
		return Outcome{}, err
	}
	if a.turn == nil {
		return Outcome{}, fmt.Errorf("prompt %s was admitted before", a.ID)
	}
	select {
	case <-a.turn.done:
	case <-ctx.Done():
		a.turn.cancel(context.Cause(ctx))
		<-a.turn.done
	}
	return a.turn.out, nil
}
