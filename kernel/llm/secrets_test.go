package llm_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
)

// No delta and no argument of a model contains a known secret, wherever the answer
// is cut; the masked text is the same in the deltas and in the answer.
func TestAnswersHaveNoSecrets(t *testing.T) {
	const secret = `k3y-"Q/8+z\x`
	quoted, err := json.Marshal(secret)
	if err != nil {
		t.Fatal(err)
	}
	said, args := "It is "+secret+", I think.", `{"key":`+string(quoted)+`,"n":1}`
	for i := range max(len(said), len(args)) {
		synctest.Test(t, func(t *testing.T) {
			var rec recorder
			s := new(masked.Secrets)
			s.Declare(secret)
			r := llm.NewRunner(llm.RunnerConfig{Emit: rec.emit, Secrets: s})
			a, b := min(i, len(said)), min(i, len(args))
			r.Start(request(event.LLMRequest{}), &fake{attempts: []attempt{{parts: []llm.Part{
				{Content: said[:a]}, {Content: said[a:]},
				{ToolCall: &llm.ToolCallPart{ID: "c", Name: "t", Args: args[:b]}}, {ToolCall: &llm.ToolCallPart{Args: args[b:]}},
			}}}})
			synctest.Wait()
			var text, partial strings.Builder
			var answer event.LLMResponse
			for _, e := range rec.all() {
				switch p := e.payload.(type) {
				case event.LLMDelta:
					text.WriteString(p.Content)
					var part llm.ToolCallPart
					if len(p.ToolCallPartial) > 0 {
						if err := json.Unmarshal(p.ToolCallPartial, &part); err != nil {
							t.Fatal(err)
						}
					}
					partial.WriteString(part.Args)
				case event.LLMResponse:
					answer = p
				}
			}
			if want := "It is ****, I think."; text.String() != want || answer.Text != want {
				t.Errorf("cut at %d: the deltas are %q, the answer is %q, want %q", i, text.String(), answer.Text, want)
			}
			if want := `{"key":"****","n":1}`; partial.String() != want || len(answer.ToolCalls) != 1 || string(answer.ToolCalls[0].Args) != want {
				t.Errorf("cut at %d: the arguments are %s, the calls %+v, want %s", i, partial.String(), answer.ToolCalls, want)
			}
			if err := r.Close(t.Context()); err != nil {
				t.Errorf("cut at %d: Close of the runner = %v, want no error", i, err)
			}
		})
	}
}

// The end of an answer is delivered, although it could have been the beginning of a
// secret.
func TestTheEndOfAnAnswerIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		s := new(masked.Secrets)
		s.Declare("secret-value-1")
		r := llm.NewRunner(llm.RunnerConfig{Emit: rec.emit, Secrets: s})
		r.Start(request(event.LLMRequest{}), &fake{attempts: []attempt{{parts: []llm.Part{{Content: "this is a sec"}, {Content: "re"}, {ToolCall: &llm.ToolCallPart{ID: "c", Name: "t", Args: `"sec`}}}}}})
		synctest.Wait()
		var text, args string
		for _, e := range rec.all() {
			if d, ok := e.payload.(event.LLMDelta); ok {
				text += d.Content
				var part llm.ToolCallPart
				if len(d.ToolCallPartial) > 0 && json.Unmarshal(d.ToolCallPartial, &part) != nil {
					t.Errorf("the delta is %s", d.ToolCallPartial)
				}
				args += part.Args
			}
		}
		if text != "this is a secre" || args != `"sec` {
			t.Errorf("the deltas are %q and %q", text, args)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Errorf("Close of the runner = %v, want no error", err)
		}
	})
}
