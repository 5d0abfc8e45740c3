package llm_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
)

// MIS-3: reasoning is shown as it comes, and kept with what its service needs and its place
// among the calls. A part with a secret is not sent back: concealed, nobody would know it again.
func TestReasoningIsKept(t *testing.T) {
	const secret = "k3y-0123456789"
	var signed, broken = json.RawMessage(`{"signature":"s1"}`), json.RawMessage(`{"sign`)
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		s := new(masked.Secrets)
		s.Declare(secret)
		r := llm.NewRunner(llm.RunnerConfig{Emit: rec.emit, Secrets: s})
		r.Start(request(event.LLMRequest{}), &fake{attempts: []attempt{{parts: []llm.Part{
			{Thought: "I should "}, {Thought: "add. " + secret[:5]}, {Thought: secret[5:]},
			{Reasoning: &event.Reasoning{Text: "I should add.", Data: signed, By: "fake/m"}},
			{Reasoning: &event.Reasoning{Text: "The key is " + secret, Data: signed, By: "fake/m"}},
			{Reasoning: &event.Reasoning{Data: json.RawMessage(`{"data":"` + secret + `"}`), By: "fake/m"}},
			{ToolCall: &llm.ToolCallPart{ID: "c", Name: "t", Args: `{}`}},
			{Reasoning: &event.Reasoning{Text: "Then that.", Data: broken, By: "fake/m"}},
			{Reasoning: &event.Reasoning{Text: "And that.", Data: signed, By: "fake/m"}},
			{Stop: event.StopToolCalls},
		}}}})
		synctest.Wait()
		var shown strings.Builder
		var answer event.LLMResponse
		for _, e := range rec.all() {
			switch p := e.payload.(type) {
			case event.LLMDelta:
				shown.WriteString(p.Reasoning)
			case event.LLMResponse:
				answer = p
			}
		}
		if want := "I should add. ****"; shown.String() != want {
			t.Errorf("the deltas have the reasoning %q, want %q", shown.String(), want)
		}
		want := []event.Reasoning{
			{Text: "I should add.", Data: signed, By: "fake/m"}, {Text: "The key is ****"},
			{Text: "Then that.", Calls: 1}, {Text: "And that.", Data: signed, By: "fake/m", Calls: 1},
		}
		if !reflect.DeepEqual(answer.Reasoning, want) || answer.StopReason != event.StopToolCalls {
			t.Errorf("got %+v and %q, want %+v and %q", answer.Reasoning, answer.StopReason, want, event.StopToolCalls)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Errorf("Close of the runner = %v, want no error", err)
		}
	})
}

// Reasoning is bounded, like everything that services send.
func TestReasoningIsBounded(t *testing.T) {
	for name, parts := range map[string][]llm.Part{
		"long": {{Reasoning: &event.Reasoning{Text: strings.Repeat("x", llm.MaxReasoning+1)}}},
		"many": repeat(llm.Part{Reasoning: &event.Reasoning{Text: "x"}}, 65),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := call(t, &fake{attempts: []attempt{{parts: parts}}}, event.LLMRequest{})
				if e, ok := got[len(got)-1].payload.(event.LLMError); !ok || !strings.Contains(e.Error, "reasoning of the answer exceeds") {
					t.Errorf("got %+v, want an error", got[len(got)-1].payload)
				}
			})
		})
	}
}

func repeat(p llm.Part, n int) (out []llm.Part) {
	for range n {
		out = append(out, p)
	}
	return out
}

// An answer that nobody takes, because it is too long for an event for instance, is a failed call:
// whoever asked does not wait for the end of the time.
func TestAnAnswerThatIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		r := llm.NewRunner(llm.RunnerConfig{Emit: func(kind, session string, payload any) error {
			if _, answer := payload.(event.LLMResponse); answer {
				return errors.New("too long")
			}
			return rec.emit(kind, session, payload)
		}})
		r.Start(request(event.LLMRequest{}), &fake{attempts: []attempt{{parts: text("hi")}}})
		synctest.Wait()
		all := rec.all()
		if e, ok := all[len(all)-1].payload.(event.LLMError); !ok || !strings.Contains(e.Error, "could not be passed on: too long") {
			t.Errorf("got %+v, want the error", all[len(all)-1].payload)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Errorf("Close of the runner = %v, want no error", err)
		}
	})
}
