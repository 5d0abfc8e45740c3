package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
)

// model calls the model once. It makes room for the request first if that nears the window,
// and again if the service refuses it as too long. It calls looked once the request is put together.
func (t *turn) model(d event.DecideResponse, looked func()) error {
	req, seen, err := t.first(d, looked)
	if err != nil {
		return err
	}
	for try := 0; ; try++ {
		ev, err := t.call(req)
		if err != nil {
			return err
		}
		switch r := ev.Payload.(type) {
		case event.LLMResponse:
			t.observe(ev)
			t.weighed(req, r.Usage)
			t.spent(req, r)
			if strings.TrimSpace(r.Text) == "" && len(r.ToolCalls) == 0 && t.cut == "" { // it would pass for an answer
				return failed(string(event.LLMEmpty), "the provider %s answered nothing: neither text nor calls of tools", req.Provider)
			}
			t.seen = seen
			whole, err := t.took(r)
			if whole || err != nil {
				return err
			}
			if try, err = -1, t.step(); err != nil {
				return err
			}
		case event.LLMError:
			if t.cut != "" && r.EffectiveKind() == event.LLMEmpty { // there was nothing to add
				t.keep(req, event.StopBroken)
				t.seen = seen
				return t.whole()
			}
			if again, err := t.broke(req, r); err != nil {
				return err
			} else if again {
				t.seen, try = seen, -1
				break
			}
			if !r.Overflow {
				if again, err := t.instead(req, r); err != nil || !again {
					return cmp.Or(err, t.unanswering(req, r))
				}
				req, seen, err = t.request(d)
				if req, seen, err = t.fitted(d, req, seen, err); err != nil {
					return err
				}
				try = -1
				continue
			}
			t.refused(req, r.ContextWindow)
			if try == overflowTries || !t.makeRoom(req, try > 0) {
				return t.tooLong(req, r.Error)
			}
		default:
			return failed("internal", "the model answered with a %T", ev.Payload)
		}
		if err := context.Cause(t.ctx); err != nil {
			return err
		}
		if req, seen, err = t.request(d); err != nil {
			return err
		}
	}
}

// first returns the first request of a step.
func (t *turn) first(d event.DecideResponse, looked func()) (req event.LLMRequest, seen int, err error) {
	defer looked()
	if len(t.pending) > 0 {
		return req, 0, failed("strategy", "the strategy asks the model while tool calls are open")
	}
	if err := t.step(); err != nil {
		return req, 0, err
	}
	req, seen, err = t.request(d)
	looked()
	return t.fitted(d, req, seen, err)
}

// fitted returns a request of a step, or another one that it has made room for if that nears the
// window.
func (t *turn) fitted(d event.DecideResponse, req event.LLMRequest, seen int, err error) (event.LLMRequest, int, error) {
	if err == nil && t.relieve(req) {
		return t.request(d)
	}
	return req, seen, err
}

// step counts a model call of the turn.
func (t *turn) step() error {
	if t.out.Steps >= t.limit {
		return failed("max_iterations", "the turn has reached its limit of %d model calls%s", t.limit, t.limiting())
	}
	t.out.Steps++
	return nil
}

// limiting names the setting behind the limit of the turn's model calls, and what to do. A sub-agent may
// have been given a lower one.
func (t *turn) limiting() string {
	if t.limit < t.l.cfg.MaxIterations() {
		return ", which its task came with"
	}
	return " (setting loop.max_iterations): send a message to go on"
}

// request returns the request of a step, and how many steering messages it has.
func (t *turn) request(d event.DecideResponse) (req event.LLMRequest, seen int, err error) {
	t.mu.Lock()
	seen = t.steers
	t.mu.Unlock()
	history, err := t.history()
	if err != nil {
		return req, 0, err
	}
	if d.Provider, d.Model, err = t.target(d); err != nil {
		return req, 0, &stepError{"model", err}
	}
	known := t.l.cfg.Model(d.Provider, d.Model)
	if err := t.admit(t.attached(history)); err != nil {
		return req, 0, err
	}
	own := ""
	if t.session != nil {
		if own, err = t.session.System(); err != nil {
			return req, 0, &stepError{"storage", err}
		}
	}
	mode, err := t.mode(history)
	if err != nil {
		return req, 0, err
	}
	notes, err := t.notes(d)
	if err == nil {
		err = t.tell(slices.Concat(t.standing(history), d.Notes, mode)...)
	}
	if err == nil {
		history, err = t.history() // with what was just told
	}
	if err != nil {
		return req, 0, err
	}
	var msgs []event.Message
	for _, system := range []string{own, d.System, notes} {
		if system != "" {
			msgs = append(msgs, event.Message{Role: "system", Content: system})
		}
	}
	t.systems = len(msgs)
	return event.LLMRequest{Provider: d.Provider, Model: d.Model, Messages: append(msgs, t.goOn(t.forModel(history, known), seen)...), Tools: t.offered(d.Tools), Params: objectParams(d.Params)}, seen, nil
}

// forModel returns the history as a model gets it: with notes as messages, and pictures if it takes some.
func (t *turn) forModel(history []event.Message, known Model) []event.Message {
	history = spoken(t.attached(history))
	if known.Blind {
		history = unseen(history)
	}
	return history
}

// admit asks about the messages that the model is about to get for the first time: all that it
// has not answered, whoever sent them and however the turns ended that they began, but for those
// of this turn that were admitted before.
func (t *turn) admit(history []event.Message) error {
	var said []string
	for _, m := range slices.Backward(history) {
		if m.Role == "assistant" {
			break
		}
		if m.Role == "user" {
			said = append(said, m.Content+strings.Repeat("\n[a picture]", len(m.Images)))
		}
	}
	slices.Reverse(said)
	fresh := said
	if n := len(t.let); n <= len(said) && slices.Equal(said[:n], t.let) {
		fresh = said[n:]
	}
	if len(fresh) == 0 {
		return nil
	}
	notes, err := t.l.cfg.Admit(t.ctx, t.thread.id, strings.Join(fresh, "\n"))
	if err != nil {
		return &stepError{event.Denied, err}
	}
	t.let = said
	return t.tell(event.TurnNote{Name: noteHooks, Text: strings.TrimSpace(notes)})
}

// call sends a request and returns how it ended.
func (t *turn) call(req event.LLMRequest) (event.Event, error) {
	if err := t.allowed(); err != nil {
		return event.Event{}, err
	}
	ctx, cancel := context.WithTimeout(t.ctx, t.l.cfg.LLMTimeout())
	defer cancel()
	ev, err := t.ask(ctx, req)
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ev, failed(string(event.LLMTimeout), "%s", t.l.unanswered())
	}
	if err != nil {
		return ev, &stepError{"llm", err}
	}
	return ev, nil
}

// Bounds of the pictures of tools in one request, in bytes and in number; the newest count. With
// more than twenty, services take small ones only.
const (
	maxPictures   = 12 << 20
	maxPicturesOf = 20
)

// attached returns a history with the attachments of its messages: pictures as
// pictures, texts as text, and other files by name.
func (t *turn) attached(history []event.Message) []event.Message {
	var out []event.Message
	left, room := maxPictures, maxPicturesOf
	for i, m := range slices.Backward(history) {
		if len(m.Attachments) == 0 {
			continue
		}
		if out == nil {
			out = slices.Clone(history) // which is not ours to change
		}
		if m.Role != "tool" || (left > 0 && room > 0) {
			m = t.l.cfg.Attached(t.thread.id, m)
		}
		if m.Role == "tool" {
			shown := m.Images
			m.Images = nil
			for _, p := range shown {
				if room == 0 || len(p.Data) > left {
					left = 0
					break
				}
				left, room = left-len(p.Data), room-1
				m.Images = append(m.Images, p)
			}
		}
		m.Attachments = nil
		out[i] = m
	}
	if out == nil {
		return history
	}
	return out
}

// offered returns the tools for the model: all, or those named.
func (t *turn) offered(names []string) []event.ToolSchema {
	var out []event.ToolSchema
	for _, f := range t.tools.FunctionSpecs() {
		if len(names) == 0 || slices.Contains(names, f.Name) {
			out = append(out, event.ToolSchema(f))
		}
	}
	return out
}

// ask sends a request to the provider and waits for its end, and until the relay
// has passed on everything before it.
func (t *turn) ask(ctx context.Context, req event.LLMRequest) (event.Event, error) {
	heard := make(chan struct{})
	t.mu.Lock()
	if err := context.Cause(t.ctx); err != nil { // the interrupt has passed, and would not end the call
		t.mu.Unlock()
		return event.Event{}, err
	}
	// Deltas wait at this lock until their request is known.
	p, err := bus.Ask(t.l.kernel.Unrecorded(), event.LLMCallRequest, t.thread.id, req, event.LLMCallResponse.Kind(), event.LLMCallError.Kind())
	if err != nil {
		t.mu.Unlock()
		return event.Event{}, err
	}
	t.asked, t.heard, t.shown = p.Event.ID, heard, false
	t.written.Reset()
	t.unread, t.failed = 0, nil
	t.endLate()
	t.mu.Unlock()
	defer t.countFailed(req)
	ev, err := p.Wait(ctx)
	if err != nil {
		t.mu.Lock()
		t.asked = ""
		t.mu.Unlock()
		stop := event.StopInterrupted
		if t.ctx.Err() == nil { // it took too long: nobody waits for the rest, which costs
			stop = event.StopBroken
			_, perr := bus.Publish(t.l.kernel, event.UserInterrupt, t.thread.id, event.Empty{})
			t.l.report(perr)
		}
		t.keep(req, stop)
		return event.Event{}, err
	}
	select {
	case <-heard:
	case <-ctx.Done():
	case <-time.After(settleTime): // the relay fell behind: the answer counts
		t.mu.Lock()
		t.shown = true
		t.mu.Unlock()
	}
	return ev, nil
}

// keep records what the model had written of an answer that has ended so on its way, and returns it: whoever has
// read it may refer to it, and so may the model. Its service has not said what the call took, which counts by
// an estimate even if there is no text. It counts with nothing if nothing came back: the service may not have begun.
func (t *turn) keep(req event.LLMRequest, stop event.StopReason) (written string) {
	t.mu.Lock()
	written = t.written.String()
	sent := len(written) + t.unread
	t.written.Reset()
	t.unread = 0
	t.mu.Unlock()
	if strings.TrimSpace(written) == "" {
		written = ""
	}
	if sent == 0 {
		return written
	}
	t.count(req, written, sent, stop)
	return written
}

// countFailed counts the attempts of a call that broke off and were followed by others: their service has not
// said what they took either, and nobody has seen what they wrote.
func (t *turn) countFailed(req event.LLMRequest) {
	t.mu.Lock()
	all := t.failed
	t.failed = nil
	t.mu.Unlock()
	for _, sent := range all {
		t.count(req, "", sent, event.StopBroken)
	}
}

// count records what came back of a call that has ended so on its way.
func (t *turn) count(req event.LLMRequest, written string, sent int, stop event.StopReason) {
	r := event.LLMResponse{Text: written, StopReason: stop, Model: req.Model, Usage: t.guessed(req, sent)}
	if cost := t.l.cfg.Model(req.Provider, req.Model).Cost; cost != nil {
		r.CostUSD = cost(r.Usage)
	}
	ev, err := bus.Publish(t.l.kernel.ForTurn(t.id), event.LLMCallResponse, t.thread.id, r)
	t.l.report(err)
	if err == nil {
		t.observe(ev)
	}
	t.spent(req, r)
}

// unread is how many bytes of a delta are of what no reader gets: of reasoning, and of calls.
func unread(d event.LLMDelta) int {
	var c llm.ToolCallPart
	if len(d.ToolCallPartial) > 0 && json.Unmarshal(d.ToolCallPartial, &c) != nil {
		return len(d.Reasoning) + len(d.ToolCallPartial) // of another form
	}
	return len(d.Reasoning) + len(c.Name) + len(c.Args)
}

// relay passes the model's text on to adapters as it arrives.
func (l *Loop) relay() error {
	var attach func() error
	attach = func() error {
		sub, err := l.cfg.Bus.Subscribe(bus.SubscribeOptions{
			Name: "loop-relay", Limit: 16384,
			OnEnd: func(err error) {
				if errors.Is(err, bus.ErrLagging) {
					l.work.Go(func() { l.report(attach()) })
				}
			},
		}, []string{event.LLMCallDelta.Name(), event.LLMRetried.Name(), event.LLMCallResponse.Name(), event.LLMCallError.Name()}, l.onModel)
		if err != nil {
			return err
		}
		l.mu.Lock()
		l.subs = append(l.subs, sub)
		l.mu.Unlock()
		return nil
	}
	return attach()
}

func (l *Loop) onModel(_ context.Context, ev event.Event) error {
	l.mu.Lock()
	var t *turn
	if thread := l.threads[ev.SessionID]; thread != nil {
		t = thread.current
	}
	l.mu.Unlock()
	if t == nil {
		return nil
	}
	r, ok := ev.Payload.(event.Responder)
	if !ok {
		return nil
	}
	t.mu.Lock()
	mine := t.asked != "" && t.asked == r.RequestRef()
	heard := t.heard
	if _, again := ev.Payload.(event.LLMRetry); again {
		if mine && t.unread > 0 {
			t.failed, t.unread = append(t.failed, t.unread), 0
		}
		t.mu.Unlock()
		return nil
	}
	d, isDelta := ev.Payload.(event.LLMDelta)
	if mine && !isDelta {
		t.asked = ""
	}
	if mine && strings.TrimSpace(d.Content) != "" {
		t.shown = true
	}
	if mine && t.written.Len() <= llm.MaxText { // the answer ends there
		t.written.WriteString(d.Content)
	}
	if mine {
		t.unread += unread(d)
	}
	t.mu.Unlock()
	if !mine {
		return nil
	}
	if !isDelta {
		close(heard)
		return nil
	}
	if d.Content == "" {
		return nil
	}
	_, err := bus.Publish(l.kernel, event.AssistantMessageDelta, ev.SessionID, event.Delta{Content: d.Content})
	if errors.Is(err, bus.ErrClosed) {
		return nil
	}
	return err
}

// unanswered returns the error of a model call that took too long.
func (l *Loop) unanswered() string {
	return fmt.Sprintf("the model has not answered within %v (setting loop.llm_timeout)", l.cfg.LLMTimeout())
}
