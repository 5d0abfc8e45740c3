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

// Delivery decides about a prompt that arrives while a turn runs.
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
	// ErrBusy is returned when a turn runs and the prompt is neither to wait nor to steer it.
	ErrBusy = session.ErrBusy
	// ErrConflict is returned by [Loop.Submit] for a prompt with the id of another.
	ErrConflict = errors.New("another prompt already has this id")
	// ErrTurn is returned by [Loop.Submit] when another turn runs than [Prompt.ExpectedTurn].
	ErrTurn = errors.New("another turn is running than the one expected")
	// ErrQueueFull is returned by [Loop.Submit] when too many prompts wait.
	ErrQueueFull = fmt.Errorf("%d prompts are waiting already", maxQueue)
	// ErrNothing is returned by [Loop.Retry] when no prompt is unanswered.
	ErrNothing = errors.New("there is nothing to retry")
)

// Prompt is a user's message.
type Prompt struct {
	SessionID string
	Workspace string // of a new session; "" for the default
	// ID is the client's; the same id with the same content is the same prompt, and is
	// accepted once. With "" the loop generates one.
	ID          string
	Text        string
	Attachments []event.Attachment
	Delivery    Delivery
	// ExpectedTurn guards steering; "" does not.
	ExpectedTurn string
	// Hold only records the prompt; its turn starts with [Loop.Retry], or another
	// prompt. While a turn runs it is refused.
	Hold bool
	// MaxSteps bounds the model calls of its turn below the configured bound.
	MaxSteps int
	// May is called once nothing else is done to the session, before the prompt is taken in, and
	// refuses it with an error: after an archive or a close that came first, say. It must not call
	// the loop. nil lets every prompt through.
	May func() error
}

// Admission is the result of a submitted prompt.
type Admission struct {
	ID        string `json:"id"`
	TurnID    string `json:"turn_id,omitempty"` // the turn that takes it; none yet for what is queued
	Entry     int64  `json:"entry,omitempty"`   // of its message on the tape
	Queued    bool   `json:"queued,omitempty"`
	Duplicate bool   `json:"duplicate,omitempty"` // it was admitted before

	turn *turn
}

// Submit accepts a prompt. When it returns without error, the prompt is on the
// disk; its results arrive as events.
func (l *Loop) Submit(ctx context.Context, p Prompt) (Admission, error) {
	p.ID = cmp.Or(p.ID, "msg_"+rand.Text())
	p.Text = l.cfg.Secrets.ConcealString(p.Text) // as it will be on the tape
	// A client that goes away does not leave half of an admission behind.
	ctx = context.WithoutCancel(ctx)
	thread := l.thread(p.SessionID)
	thread.admit.Lock()
	defer thread.admit.Unlock()
	if p.May != nil {
		if err := p.May(); err != nil {
			return Admission{}, err
		}
	}
	var s *session.Session
	if l.cfg.Sessions != nil {
		var err error
		if s, err = l.cfg.Sessions.Open(p.SessionID, p.Workspace); err != nil {
			return Admission{}, err
		}
		a, known, err := l.known(ctx, s, p)
		if known || err != nil {
			return a, err
		}
	}
	for {
		running, err := l.settle(thread, s)
		if err != nil {
			return Admission{}, err
		}
		if running == nil {
			break
		}
		a, over, err := l.whileBusy(ctx, thread, s, running, p)
		if over || err != nil {
			return a, err
		}
		if p.Delivery == DeliverInterrupt {
			break // it comes before what is queued
		}
	}
	return l.admit(ctx, thread, s, p)
}

func (p Prompt) stored() session.Prompt {
	return session.Prompt{ID: p.ID, Text: p.Text, Attachments: p.Attachments, MaxSteps: p.MaxSteps}
}

// known returns the admission of a prompt that has been admitted before; the thread's
// admit lock is held.
func (l *Loop) known(ctx context.Context, s *session.Session, p Prompt) (Admission, bool, error) {
	was, known, err := s.Admitted(p.ID)
	if err != nil || !known {
		return Admission{}, false, err
	}
	if was.Hash != p.stored().Hash() {
		return Admission{}, false, fmt.Errorf("prompt %s: %w", p.ID, ErrConflict)
	}
	// The client may have given up before the disk had it.
	sn, err := s.Snapshot()
	if err == nil {
		err = s.Sync(ctx, sn.AsOfSeq)
	}
	if err != nil {
		return Admission{}, false, err
	}
	if _, err := l.settle(l.thread(p.SessionID), s); err != nil {
		return Admission{}, false, err
	}
	return Admission{ID: p.ID, TurnID: was.Turn, Entry: was.Entry, Queued: was.Entry == 0, Duplicate: true}, true, nil
}

// whileBusy delivers a prompt while a turn runs; over is false if it has to wait for a
// turn of its own, and the running turn has ended.
func (l *Loop) whileBusy(ctx context.Context, thread *thread, s *session.Session, running *turn, p Prompt) (a Admission, over bool, err error) {
	switch {
	case p.Hold:
		p.Delivery = DeliverReject
	case running.compacting && p.Delivery == DeliverSteer && p.ExpectedTurn != "":
		return Admission{}, false, ErrTurn
	case running.compacting && p.Delivery == DeliverSteer: // nothing to steer
		p.Delivery = DeliverQueue
	}
	switch p.Delivery {
	case DeliverQueue:
		a, err = l.enqueue(ctx, s, p.stored())
		return a, true, err
	case DeliverSteer:
		a, joined, err := l.steer(ctx, s, running, p)
		if !joined && err == nil {
			<-running.done // it was about to end: the prompt steers the next one, or gets its own
		}
		return a, joined, err
	case DeliverInterrupt:
		l.end(thread, ErrInterrupted)
		return Admission{}, false, nil
	case DeliverReject, "":
		if running.closing() {
			return Admission{}, false, nil
		}
		return Admission{}, false, running.busy()
	}
	return Admission{}, false, fmt.Errorf("unknown delivery %q", p.Delivery)
}

// admit writes a prompt down and starts its turn, unless it is to be held; the thread's
// admit lock is held, and nothing runs.
func (l *Loop) admit(ctx context.Context, thread *thread, s *session.Session, p Prompt) (Admission, error) {
	l.mu.Lock()
	closed := l.closed
	l.mu.Unlock()
	if closed {
		return Admission{}, ErrShutdown
	}
	if s != nil {
		sn, err := l.closeAll(thread, s)
		if err != nil {
			return Admission{}, err
		}
		if p.Delivery == DeliverQueue && len(sn.Queue) > 0 { // an adapter's message comes first
			return l.enqueue(ctx, s, p.stored())
		}
	}
	turn := newTurnID()
	if !p.Hold {
		defer l.starting(thread, turn)()
	}
	ev, err := l.say(ctx, s, p, turn)
	if err != nil {
		return Admission{}, err
	}
	if p.Hold {
		return Admission{ID: p.ID, TurnID: turn, Entry: ev.Entry}, nil
	}
	t, err := l.start(thread, startWith{event: ev, id: turn, maxSteps: p.MaxSteps})
	if err != nil {
		return Admission{}, err
	}
	return Admission{ID: p.ID, TurnID: t.id, Entry: ev.Entry, turn: t}, nil
}

func newTurnID() string { return "turn_" + rand.Text() }

// publish publishes a prompt as a message that belongs to a turn.
func (l *Loop) publish(p Prompt, turn string, starts bool) (event.Event, error) {
	as := l.kernel.Named(promptSource).ForClient(p.ID).ForTurn(turn)
	if starts {
		as = as.Starting()
	}
	return bus.Publish(as, event.UserMessageReceived, p.SessionID, event.UserMessage{Text: p.Text, Attachments: p.Attachments})
}

// say publishes a prompt that starts a turn, or is held, and waits for the disk; nothing runs.
func (l *Loop) say(ctx context.Context, s *session.Session, p Prompt, turn string) (event.Event, error) {
	ev, err := l.publish(p, turn, !p.Hold)
	if err != nil || s == nil {
		return ev, err
	}
	if err := l.landed(ctx, s, p.ID, ev.Entry); err != nil {
		return ev, err
	}
	// The disk may have failed at the end of the turn before, which is known only now.
	sn, err := s.Snapshot()
	if err == nil {
		err = l.closeLost(p.SessionID, sn)
	}
	return ev, err
}

// landed returns once a prompt has reached the disk: in an entry, or in the queue. After a
// failure of the disk the entry may be another's.
func (l *Loop) landed(ctx context.Context, s *session.Session, id string, entry int64) error {
	if err := s.Sync(ctx, entry); err != nil {
		return err
	}
	_, known, err := s.Admitted(id)
	if err == nil && !known {
		err = fmt.Errorf("prompt %s: %w", id, session.ErrRecovered)
	}
	return err
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
	entry, err := s.SetQueue(append(sn.Queue, p), sn.Epoch)
	if err == nil {
		err = l.landed(ctx, s, p.ID, entry)
	}
	return Admission{ID: p.ID, Queued: true}, err
}

// steer lets a prompt join a running turn; joined is false when that is about to
// end.
func (l *Loop) steer(ctx context.Context, s *session.Session, t *turn, p Prompt) (a Admission, joined bool, err error) {
	if p.ExpectedTurn != "" && p.ExpectedTurn != t.id {
		return Admission{}, false, ErrTurn
	}
	ev, joined, err := t.join(func() (event.Event, error) { return l.publish(p, t.id, false) })
	if err != nil || !joined {
		return Admission{}, false, err
	}
	if s != nil {
		err = l.landed(ctx, s, p.ID, ev.Entry)
	}
	return Admission{ID: p.ID, TurnID: t.id, Entry: ev.Entry, turn: t}, true, err
}

// Queue replaces the queued prompts of a session by a subset of them, in any order,
// to move or withdraw prompts.
func (l *Loop) Queue(ctx context.Context, id string, prompts []string) ([]session.Prompt, error) {
	if l.cfg.Sessions == nil {
		return nil, session.ErrNotFound
	}
	s, err := l.cfg.Sessions.Find(id, "")
	if err != nil {
		return nil, err
	}
	thread := l.thread(id)
	thread.admit.Lock()
	defer thread.admit.Unlock()
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
	entry, err := s.SetQueue(next, sn.Epoch)
	if err == nil {
		err = s.Sync(ctx, entry)
	}
	return next, cmp.Or(err, s.Emptied(ctx))
}

// Cancel ends the running turn of a session now: its calls, its asks and its
// model call; or a summary that [Loop.Compact] makes. A turn whose message is being written ends
// when it begins. It reports whether there was one.
func (l *Loop) Cancel(id string) bool {
	l.mu.Lock()
	var t *turn
	next := false
	if thread := l.threads[id]; thread != nil {
		t, next = thread.current, thread.next != ""
		thread.nextOver = thread.nextOver || t == nil && next
	}
	l.mu.Unlock()
	if t != nil {
		t.cancel(ErrInterrupted)
	}
	return t != nil || next
}

// ErrNotRetryable is returned by [Loop.Retry] for a turn that is completed or is not the
// session's last.
var ErrNotRetryable = errors.New("only the last turn can be run again, and only if it has failed, was cancelled or has not been started")

// Retry starts a turn for prompts that a failed or cancelled turn left unanswered,
// or that were held. turn names that turn; "" means any.
func (l *Loop) Retry(id, turn string) (Admission, error) {
	if l.cfg.Sessions == nil {
		return Admission{}, ErrNothing
	}
	s, err := l.cfg.Sessions.Find(id, "")
	if err != nil {
		return Admission{}, err
	}
	thread := l.thread(id)
	thread.admit.Lock()
	defer thread.admit.Unlock()
	if err := l.rest(thread, s); err != nil {
		return Admission{}, err
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
	t, err := l.start(thread, startWith{event: event.Event{SessionID: id}, id: sn.PendingTurn})
	if err != nil {
		return Admission{}, err
	}
	return Admission{TurnID: t.id, turn: t}, nil
}

// Outcome is how a turn ended.
type Outcome struct {
	TurnID string
	Text   string // the assistant's last message
	Steps  int
	Usage  event.Usage
	// CostUSD is its cost in US dollars, as far as prices are known.
	CostUSD float64
	Calls   []event.ToolCall // in the order in which they were asked for
	Err     error            // nil when it was completed
	Kind    string           // of the failure
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
