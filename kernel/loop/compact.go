package loop

import (
	"context"
	"errors"
	"fmt"

	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

var (
	// ErrCompacting is the [ErrBusy] of a session whose history is being summarized on demand.
	ErrCompacting = worded.Error(ErrBusy, "the history is being summarized: try again when that has ended, or cancel it")
	// ErrNothingToCompact is returned by [Loop.Compact] when a summary would not shorten the history.
	ErrNothingToCompact = errors.New("the history is too short to gain from a summary: continue the session")
	// ErrBudget is returned by [Loop.Compact] when the session may not spend more; the error that wraps
	// it names the limit and the remedy.
	ErrBudget = errors.New("the budget is used up")
	// ErrSummary is returned by [Loop.Compact] when the model makes no summary; the error that wraps it
	// says why.
	ErrSummary = errors.New("no summary was made")
	// ErrDenied is returned by [Loop.Compact] when a hook refuses what the model would get.
	ErrDenied = errors.New("denied")
)

// minCompacted is the length, in tokens, of a history after [Loop.Compact], if it can be less: the
// summary of a few sentences would be as long as they are.
const minCompacted = 512

// Compacted is the effect of [Loop.Compact].
type Compacted struct {
	TokensBefore int     `json:"tokens_before" doc:"estimated length of the history before"`
	TokensAfter  int     `json:"tokens_after"`
	CostUSD      float64 `json:"cost_usd,omitempty" doc:"of the summary, as far as prices are known"`
}

// Compact replaces the older part of a session's history by a summary, however full the window is,
// and whether or not compaction is on. keep tells the model what the summary must have; "" leaves it
// to the model. The session's model makes it, or the one for summaries, within the budget.
//
// It returns [ErrBusy] while a turn runs. Meanwhile messages are refused with [ErrCompacting], or
// queued; one that interrupts ends it, like [Loop.Cancel], the end of ctx and [Loop.Close]. If it
// returns an error, the history has not changed.
func (l *Loop) Compact(ctx context.Context, id, keep string) (Compacted, error) {
	if l.cfg.Sessions == nil {
		return Compacted{}, session.ErrNotFound
	}
	s, err := l.cfg.Sessions.Find(id, "")
	if err != nil {
		return Compacted{}, err
	}
	t, done, err := l.compacting(ctx, s)
	if err != nil {
		return Compacted{}, err
	}
	defer done()
	before, err := s.Tokens()
	if err == nil {
		err = t.compact(before, l.cfg.Secrets.ConcealString(keep))
	}
	if cause := context.Cause(t.ctx); err != nil && cause != nil {
		err = cause // the call's own error tells only that it was cancelled
	}
	if err != nil {
		return Compacted{}, fmt.Errorf("compact the session %s: %w", id, err)
	}
	after, err := s.Tokens()
	if err == nil {
		err = lasting(s)
	}
	return Compacted{before, after, t.out.CostUSD}, err
}

// compacting has a turn that only summarizes take the place of the session's turn, so that no other
// begins, until the function that it returns is called. The admit lock is not held meanwhile: a call
// of the model may take minutes, and who asks for a turn or a cancel need not wait for it.
func (l *Loop) compacting(ctx context.Context, s *session.Session) (t *turn, done func(), err error) {
	thread := l.thread(s.ID())
	thread.admit.Lock()
	defer thread.admit.Unlock()
	if err := l.rest(thread, s); err != nil {
		return nil, nil, err
	}
	release := s.Pin()
	defer func() {
		if err != nil {
			release()
		}
	}()
	t = &turn{l: l, thread: thread, session: s, compacting: true, done: make(chan struct{}), followed: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, ErrShutdown
	}
	t.ctx, t.stop = context.WithCancelCause(context.Background())
	left := context.AfterFunc(ctx, func() { t.stop(context.Cause(ctx)) })
	thread.current, thread.followed = t, t.followed
	l.work.Add(1)
	return t, func() {
		left()
		t.stop(nil)
		l.mu.Lock()
		thread.current = nil
		l.mu.Unlock()
		close(t.done)
		go func() { // messages may have been queued meanwhile
			defer l.work.Done()
			defer release()
			defer close(t.followed)
			l.goOn(thread, s)
		}()
	}, nil
}

// compact summarizes a history of that many tokens.
func (t *turn) compact(tokens int, keep string) error {
	if err := t.allowed(); err != nil {
		return as(ErrBudget, err)
	}
	t.l.cfg.Boundary(t.ctx)
	provider, model, err := t.target(event.DecideResponse{})
	if err != nil {
		return as(ErrSummary, err)
	}
	req := event.LLMRequest{Provider: provider, Model: model}
	w := t.measure(req)
	o, _ := t.l.cfg.Compaction()
	target := min(tokens, int(float64(w.limit)/w.ratio)) / 4
	if o.Target > 0 {
		target = min(target, o.Target)
	}
	o.Target = max(target, minCompacted)
	o.Threshold, o.Summary = o.Target+1, min(o.Target/2, maxSummary)
	if tokens < o.Threshold {
		return ErrNothingToCompact
	}
	if err := t.admitted(keep); err != nil {
		return err
	}
	summarise := t.summariser(req, keep)
	var failed error // of the last call
	done, err := t.session.Compact(t.ctx, o, func(ctx context.Context, old []event.Message, tokens int) (made session.Summary, err error) {
		if made, err = summarise(ctx, old, tokens); err == nil && made.Text == "" {
			err = errors.New("the model answered with an empty summary")
		}
		failed = err
		return made, err
	})
	s, ok := errors.AsType[*stepError](failed)
	switch {
	case errors.Is(err, session.ErrNoGain) || err == nil && !done:
		return ErrNothingToCompact
	case err == nil || failed == nil:
		return err
	case ok && s.kind == failedBudget: // used up by the parts before
		return as(ErrBudget, failed)
	}
	return as(ErrSummary, failed)
}

// admitted asks about what no model has got yet: messages without an answer, and what to keep.
func (t *turn) admitted(keep string) error {
	history, err := t.history()
	if err == nil {
		err = t.admit(t.attached(history))
	}
	if s, ok := errors.AsType[*stepError](err); ok && s.kind == event.Denied {
		return as(ErrDenied, err)
	}
	if err != nil || keep == "" {
		return err
	}
	// The notes that hooks add are for answers, and a summary is not one.
	if _, err := t.l.cfg.Admit(t.ctx, t.thread.id, keep); err != nil {
		return as(ErrDenied, err)
	}
	return nil
}

// as returns an error with the text of err that is also kind.
func as(kind, err error) error { return worded.Error(errors.Join(kind, err), "%v", err) }
