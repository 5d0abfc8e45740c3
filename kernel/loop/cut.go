package loop

import (
	"fmt"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

const (
	// maxCuts is how often in a row the loop asks for the rest of an answer.
	maxCuts = 16

	goOn    = "Your answer was cut off at the output limit. Go on exactly where it stops, without repeating anything and without a word about the limit."
	clipped = "Your last answer was cut off at the output limit, so its last call may not have all of its arguments. Write less at a time: a long file in several calls, for example."
)

// took takes an answer in. It returns false for a text that was cut off: the loop asks for the
// rest, and the answer is all of it together.
func (t *turn) took(r event.LLMResponse) (whole bool, err error) {
	t.cut += r.Text
	t.clipped = r.StopReason == event.StopLength && len(r.ToolCalls) > 0
	if r.StopReason == event.StopLength && !t.clipped {
		if t.cuts++; t.cuts > maxCuts {
			return false, failed(string(event.StopLength), "the answer was cut off at the model's output limit %d times and is still not whole: ask for less at a time", t.cuts)
		}
		return false, nil
	}
	t.out.Text, t.pending, t.answered = t.cut, r.ToolCalls, len(r.ToolCalls) == 0
	t.cut, t.cuts = "", 0
	return true, nil
}

// goOn adds to a history what a model needs that was cut off. No tape has it: what the model has
// said of the answer becomes part of the history once it is whole, or once a message joins the
// turn that follows it.
func (t *turn) goOn(history []event.Message, seen int) []event.Message {
	if seen != t.seen {
		t.cut = ""
	}
	history = history[:len(history):len(history)]
	switch {
	case t.cut != "":
		return append(history, event.Message{Role: "assistant", Content: t.cut}, event.Message{Role: "user", Content: goOn})
	case t.clipped:
		return append(history, event.Message{Role: "user", Content: clipped})
	case t.idle() >= warnIdle:
		return append(history, spoken([]event.Message{{Role: session.NoteRole, Note: noteCalls, Content: fmt.Sprintf(idling, maxIdle)}})...)
	}
	return history
}
