package chat

import (
	"encoding/json"
	"testing"
)

// MIS-2, USE-6: the status tells the length of the history as the last call had it, not one from before a
// summary; and which model answers, even after an answer that broke off.
func TestContextAndModel(t *testing.T) {
	var x transcript
	for i, tt := range []struct {
		event, data, model string
		context            int
	}{
		{"turn_started", `{"model":"m"}`, "m", 0},
		{"model_output_completed", `{"text":"a","model":"m","usage":{"total":9000}}`, "m", 9000},
		{"model_output_completed", `{"text":"half"}`, "m", 9000},
		{"history_compacted", `{"how":"summarized","tokens_before":8000,"tokens_after":700}`, "m", 0},
		{"model_output_completed", `{"text":"b","model":"n","usage":{"total":800}}`, "n", 800},
	} {
		x.take(Event{Type: tt.event, Data: json.RawMessage(tt.data)})
		if x.model != tt.model || x.context != tt.context {
			t.Errorf("event %d, %s: the model %q and a context of %d, want %q and %d", i, tt.event, x.model, x.context, tt.model, tt.context)
		}
	}
}
