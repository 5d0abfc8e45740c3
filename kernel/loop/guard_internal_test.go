package loop

import (
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
)

// MIS-1: an answer is the same as the one before if all that the model gets of it is: the error of a
// result without an envelope counts, and that a denial of the guard itself is in between does not.
func TestAnsweredTheSame(t *testing.T) {
	c := event.ToolCall{ID: "c", Name: "look", Args: []byte("{}")}
	key := callKey(c.Name, c.Args)
	for name, tt := range map[string]struct {
		answers []any
		denied  bool // the second answer is of the guard
		times   int
	}{
		"errors that differ":  {[]any{event.ToolResult{Error: "1 of 2"}, event.ToolResult{Error: "2 of 2"}}, false, 1},
		"one error":           {[]any{event.ToolResult{Error: "none"}, event.ToolResult{Error: "none"}}, false, 2},
		"values that differ":  {[]any{event.ToolResult{OK: true, Value: []byte("1")}, event.ToolResult{OK: true, Value: []byte("2")}}, false, 1},
		"details that differ": {[]any{event.ToolError{Brief: "no", Detail: []byte("1")}, event.ToolError{Brief: "no", Detail: []byte("2")}}, false, 1},
		"a denial":            {[]any{event.ToolResult{Error: "none"}, event.ToolError{Brief: "denied"}}, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var r repetitions
			for i, a := range tt.answers {
				if why := r.count(key, false); why != "" {
					t.Fatalf("call %d is denied: %s", i+1, why)
				}
				r.refused = map[string]bool{c.ID: tt.denied && i == 1}
				r.answered(c, event.Event{Payload: a})
			}
			if got := r.made[key].times; got != tt.times {
				t.Errorf("%d calls have one answer, want %d", got, tt.times)
			}
		})
	}
}
