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
