package sessions

import (
	"encoding/json"
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// USE-6: the text of an answer that was interrupted or broke off is shown, although it is not the answer
// to a request, and counts in the usage; calls that a strategy makes are not and do not.
func TestUnfinishedAnswersAreShown(t *testing.T) {
	for stop, want := range map[event.StopReason]bool{event.StopInterrupted: true, event.StopBroken: true, event.StopEnd: false} {
		data, err := json.Marshal(event.LLMResponse{Text: "half", StopReason: stop})
		if err != nil {
			t.Fatal(err)
		}
		typ, got, ok := note(session.Note{Name: event.LLMCallResponse.Name(), Data: data})
		if out, _ := got.(outputData); ok != want || (ok && (typ != OutputCompleted || out.Text != "half")) {
			t.Errorf("%s is shown: %v as %s %+v, want %v", stop, ok, typ, got, want)
		}
		data, err = json.Marshal(event.LLMResponse{StopReason: stop, Usage: event.Usage{Total: 7}})
		if err != nil {
			t.Fatal(err)
		}
		if typ, got, ok := note(session.Note{Name: event.LLMCallResponse.Name(), Data: data}); ok || got != nil {
			t.Errorf("%s without text is shown as %s %+v, want nothing", stop, typ, got)
		}
		var r record
		data, err = json.Marshal(event.LLMResponse{StopReason: stop, Model: "m", CostUSD: 2, Usage: event.Usage{Total: 7}})
		if err != nil {
			t.Fatal(err)
		}
		r.note(session.Note{Name: event.LLMCallResponse.Name(), Data: data}, "t", nil)
		if counts := r.Usage.Steps == 1 && r.Usage.CostUSD == 2; counts != want {
			t.Errorf("%s counts in the usage: %+v, want %v", stop, r.Usage, want)
		}
	}
}

// MIS-3: the end of a turn whose last answer was refused says so.
func TestRefusalsAreShown(t *testing.T) {
	typ, got, ok := note(session.Note{Name: event.TurnWasCompleted.Name(), Data: json.RawMessage(`{"turn_id":"t","usage":{},"steps":1,"stop_reason":"refusal"}`)})
	if end, _ := got.(endData); !ok || typ != TurnCompleted || end.Reason != "refusal" {
		t.Errorf("got %s %+v, want the reason refusal", typ, got)
	}
}
