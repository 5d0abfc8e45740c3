package session

import (
	"encoding/json"
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
)

// answered adds an answer of a model to a history.
func answered(t *testing.T, p *Projection, id int64, r event.LLMResponse) {
	t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(Note{Name: event.LLMCallResponse.Name(), Data: data})
	if err != nil {
		t.Fatal(err)
	}
	p.Apply(Entry{ID: id, Kind: KindEvent, Payload: raw})
}

// MIS-3: a compaction between an answer that was cut off and the rest of it keeps both.
func TestAHalfAnswerSurvivesACompaction(t *testing.T) {
	var p Projection
	answered(t, &p, 1, event.LLMResponse{Text: "half ", StopReason: event.StopLength})
	p.compact(Compaction{Summary: "notes", KeepFrom: 2})
	answered(t, &p, 3, event.LLMResponse{Text: "rest", ToolCalls: []event.ToolCall{{ID: "c", Name: "x", Args: json.RawMessage(`{}`)}}})
	if got := p.Messages(); len(got) != 3 || got[1].Content != "half rest" {
		t.Errorf("got %+v, want the summary, the whole answer and the place of its result", got)
	}
}

// USE-6: a part of an answer that has no text, and only says what the call took, does not become a message, and
// leaves the half of an answer as it is.
func TestPartsWithoutTextAreNoMessages(t *testing.T) {
	said := func(p *Projection) string {
		raw, err := json.Marshal(Message{Role: "user", Content: "next"})
		if err != nil {
			t.Fatal(err)
		}
		p.Apply(Entry{ID: 9, Kind: KindMessage, Payload: raw})
		out := ""
		for _, m := range p.Messages() {
			out += m.Role + ":" + m.Content + ";"
		}
		return out
	}
	for _, stop := range []event.StopReason{event.StopInterrupted, event.StopBroken} {
		var none, half Projection
		answered(t, &none, 1, event.LLMResponse{StopReason: stop})
		if got := said(&none); got != "user:next;" {
			t.Errorf("%s without text: %q, want the user's message alone", stop, got)
		}
		answered(t, &half, 1, event.LLMResponse{Text: "half ", StopReason: event.StopLength})
		answered(t, &half, 2, event.LLMResponse{StopReason: stop})
		answered(t, &half, 3, event.LLMResponse{Text: "rest", StopReason: event.StopEnd})
		if got := said(&half); got != "assistant:half rest;user:next;" {
			t.Errorf("%s without text after half an answer: %q, want the whole of it", stop, got)
		}
	}
}
