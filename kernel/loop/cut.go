package loop

import (
	"context"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/internal/backoff"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

const (
	// maxCuts is how often in a row the loop asks for the rest of an answer: one that goes on after that
	// seldom comes to an end, and each part costs what the whole history does.
	maxCuts = 5
	// maxBreaks is how often one answer that breaks off is gone on with.
	maxBreaks = 3

	goOn    = "Your answer was cut off at the output limit. Go on exactly where it stops, without repeating anything and without a word about the limit."
	broken  = "Your answer broke off on its way. Go on exactly where it stops, without repeating anything and without a word about it."
	clipped = "Your last answer was cut off at the output limit, so its last call may not have all of its arguments. Write less at a time: a long file in several calls, for example."
)

// unfinished is an answer that is not whole.
type unfinished struct {
	cut      string // what the model has said of it
	cuts     int    // how often it was cut off …
	breaks   int    // … and broke off, which it did last if it is broken
	broken   bool
	clipped  bool // its calls were cut off
	declined bool // the model or its service did not go on with it
}

const declined = "the model or its service has refused to go on with this answer (a content filter, for instance): it may not be whole"

// took takes an answer in. It returns false for a text that was cut off: the loop asks for the
// rest, and the answer is all of it together.
func (t *turn) took(r event.LLMResponse) (whole bool, err error) {
	t.cut += r.Text
	t.broken = false
	t.declined = r.StopReason == event.StopRefusal
	t.clipped = r.StopReason == event.StopLength && len(r.ToolCalls) > 0
	if r.StopReason == event.StopLength && !t.clipped {
		if t.cuts++; t.cuts > maxCuts {
			return false, failed(string(event.StopLength), "the answer was cut off at the model's output limit %d times and is still not whole: send a message to go on, ask for less at a time, or raise the limit (max_tokens of the provider)", t.cuts)
		}
		return false, nil
	}
	t.out.Text, t.pending, t.answered = t.cut, r.ToolCalls, len(r.ToolCalls) == 0
	t.cut, t.cuts, t.breaks = "", 0, 0
	if t.declined {
		if _, err := bus.Publish(t.l.kernel.ForTurn(t.id), event.TurnNotice, t.thread.id, event.Notice{Text: declined}); err != nil {
			return true, &stepError{"storage", err}
		}
	}
	return true, nil
}

// whole takes the answer so far for whole. The tape says so: the next answer on it is not the rest.
func (t *turn) whole() error {
	end := event.LLMResponse{StopReason: event.StopEnd}
	ev, err := bus.Publish(t.l.kernel.ForTurn(t.id), event.LLMCallResponse, t.thread.id, end)
	if err != nil {
		return &stepError{"storage", err}
	}
	t.observe(ev)
	_, err = t.took(end)
	return err
}

// stopReason returns why the last answer ended, if it was not finished.
func (t *turn) stopReason() event.StopReason {
	if t.declined {
		return event.StopRefusal
	}
	return ""
}

// broke keeps what the model had written of an answer that has failed on its way, since whoever has
// read it may refer to it. It reports whether the model is asked for the rest, after a pause: then the
// answer is all of it together, and a reader gets nothing twice. No call of such an answer has run.
func (t *turn) broke(req event.LLMRequest, e event.LLMError) (again bool, err error) {
	written := t.keep(req, event.StopBroken)
	if written == "" {
		return false, nil
	}
	t.cut += written
	t.broken = true
	if t.breaks++; t.breaks > maxBreaks || !e.Unavailable() {
		return false, nil
	}
	if _, err := bus.Publish(t.l.kernel.ForTurn(t.id), event.TurnNotice, t.thread.id, event.Notice{Text: "the answer broke off: " + e.Error + "; the model is asked for the rest"}); err != nil {
		return false, &stepError{"storage", err}
	}
	select {
	case <-time.After(backoff.Pause(time.Second, 20*time.Second, t.breaks-1)):
	case <-t.ctx.Done():
		return false, context.Cause(t.ctx)
	}
	return true, t.step()
}

// goOn adds to a history what a model needs whose answer is not whole. No tape has it: what the model has
// said of the answer becomes part of the history once it is whole, or once a message joins the
// turn that follows it.
func (t *turn) goOn(history []event.Message, seen int) []event.Message {
	if seen != t.seen {
		t.cut = ""
	}
	history = history[:len(history):len(history)]
	switch {
	case t.cut != "":
		why := goOn
		if t.broken {
			why = broken
		}
		return append(history, event.Message{Role: "assistant", Content: t.cut}, event.Message{Role: "user", Content: why})
	case t.clipped:
		return append(history, event.Message{Role: "user", Content: clipped})
	case t.idle() >= warnIdle:
		return append(history, spoken([]event.Message{{Role: session.NoteRole, Note: noteCalls, Content: fmt.Sprintf(idling, maxIdle)}})...)
	}
	return history
}
