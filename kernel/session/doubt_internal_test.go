package session

import (
	"encoding/json"
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
)

// A call without a record has not run if its turn was ended; if the machine or the disk failed, the record may
// be what was lost.
func TestCallsWithoutRecord(t *testing.T) {
	note := func(p *Projection, id int64, name string, data any) {
		t.Helper()
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		if raw, err = json.Marshal(Note{Name: name, Data: raw}); err != nil {
			t.Fatal(err)
		}
		p.Apply(Entry{ID: id, Kind: KindEvent, Payload: raw})
	}
	for end, want := range map[string]string{afterCrash: Interrupted, "storage": Interrupted, "budget": NotBegun} {
		var p Projection
		note(&p, 1, event.LLMCallResponse.Name(), event.LLMResponse{ToolCalls: []event.ToolCall{{ID: "c", Name: "shell"}}})
		note(&p, 2, event.TurnHasFailed.Name(), event.TurnFailed{TurnID: "t", Error: "x", Kind: end})
		if got := p.Messages()[1].Content; got != want {
			t.Errorf("after a turn that failed by %s, the call's result is %s, want %s", end, got, want)
		}
	}
	var p Projection
	note(&p, 1, event.LLMCallResponse.Name(), event.LLMResponse{ToolCalls: []event.ToolCall{{ID: "c", Name: "shell"}}})
	note(&p, 2, event.TurnWasCancelled.Name(), event.TurnCancelled{TurnID: "t"})
	note(&p, 3, event.TurnWasStarted.Name(), event.TurnStarted{TurnID: "t2"})
	note(&p, 4, event.TurnHasFailed.Name(), event.TurnFailed{TurnID: "t2", Error: "x", Kind: afterCrash})
	if got := p.Messages()[1].Content; got != NotBegun {
		t.Errorf("after a crash of the next turn, the call's result is %s, want %s", got, NotBegun)
	}
}
