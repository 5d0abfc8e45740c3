package loop

import (
	"context"
	"errors"
	"time"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// settleTime is how long a cancelled turn waits for the calls that it has cancelled, so that their
// results precede its end.
const settleTime = 2 * time.Second

// volunteer makes the strategy's own calls, once the model has answered: to check its
// work, say. They run through the same dispatcher as the model's calls, and the
// history has them as the assistant's.
func (t *turn) volunteer(calls []event.ToolCall) error {
	if len(calls) == 0 {
		return nil
	}
	if len(t.pending) > 0 || !t.answered {
		return failed("strategy", "the strategy wants calls of its own while the model's are open")
	}
	if t.checks++; t.checks > t.limit {
		return failed("max_iterations", "the strategy has made its own calls %d times%s", t.limit, t.limiting())
	}
	// Recorded like a model's answer, but without a request.
	ev, err := bus.Publish(t.l.kernel, event.LLMCallResponse, t.thread.id, event.LLMResponse{Text: t.out.Text, ToolCalls: calls})
	if err != nil {
		return &stepError{"storage", err}
	}
	t.observe(ev)
	t.pending = calls
	return nil
}

// callTools runs the calls that the model asked for and waits for the end of each: at once, except
// for those that change or run something in the folder. One of these finds the folder as the calls
// before it have left it, is asked about as it is then, and ends before the next call begins.
func (t *turn) callTools() error {
	calls := t.pending
	if len(calls) == 0 {
		return failed("strategy", "the strategy wants tools to run and the model asked for none")
	}
	t.pending = nil
	ctx, settled := t.grace()
	defer settled()
	var answers []event.Event
	for rest := calls; len(rest) > 0; {
		if err := context.Cause(t.ctx); err != nil {
			return &stepError{"cancelled", err}
		}
		n := t.together(rest)
		got, err := t.callAtOnce(ctx, rest[:n])
		if err != nil {
			return err
		}
		answers, rest = append(answers, got...), rest[n:]
	}
	return t.answeredCalls(calls, answers)
}

// together returns how many of the first calls run at once.
func (t *turn) together(calls []event.ToolCall) int {
	for i, c := range calls {
		if e, ok := t.tools.Lookup(c.Name); ok && e.Def.InFolder {
			return max(i, 1)
		}
	}
	return len(calls)
}

// callAtOnce runs calls at once, and waits for the end of each.
func (t *turn) callAtOnce(ctx context.Context, calls []event.ToolCall) (answers []event.Event, err error) {
	var waits []*bus.Pending
	for _, c := range calls {
		var p *bus.Pending
		if p, err = t.begin(c); err != nil {
			break
		}
		waits = append(waits, p)
		t.out.Calls = append(t.out.Calls, c)
	}
	for _, p := range waits {
		ev, werr := p.Wait(ctx)
		if werr != nil {
			err = errors.Join(err, werr)
			continue
		}
		t.observe(ev)
		answers = append(answers, ev)
	}
	return answers, err
}

// begin asks for a call, unless the turn was cancelled: the interrupt ends the calls that were asked for
// before it, and no others.
func (t *turn) begin(c event.ToolCall) (*bus.Pending, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := context.Cause(t.ctx); err != nil {
		return nil, &stepError{"cancelled", err}
	}
	p, err := bus.Ask(t.l.kernel.ForTurn(t.id), event.ToolCallRequest, t.thread.id, event.ToolRequest{ID: c.ID, Name: c.Name, Args: c.Args, SchemaVersion: event.SchemaV1},
		event.ToolCallResult.Kind(), event.ToolCallError.Kind())
	if err != nil {
		return nil, &stepError{"storage", err}
	}
	t.endLate()
	return p, nil
}

// endLate ends what was asked for behind an interrupt of an adapter, which does not wait for the turn's lock.
// The lock is held.
func (t *turn) endLate() {
	if t.ctx.Err() == nil {
		return
	}
	_, err := bus.Publish(t.l.kernel, event.UserInterrupt, t.thread.id, event.Empty{})
	t.l.report(err)
}

// grace returns a context that ends shortly after the turn was cancelled.
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
