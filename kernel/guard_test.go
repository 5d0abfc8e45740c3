package kernel_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// repeating is a script of a model that makes one call so many times and then answers "ok".
func repeating(call string, times int) string {
	return `{"steps":[` + strings.Repeat(`{"tool_calls":[`+call+`]},`, times) + `{"text":"ok"}]}`
}

// guarding runs a test with a tool "probe" that answers so, and counts its calls.
func guarding(t *testing.T, script string, answer func(n int) tool.Result, f func(t *testing.T, w *world, made *int)) {
	t.Helper()
	inBubble(t, setup{script: script, answer: approveAll}, func(t *testing.T, w *world) {
		made := 0
		probe, err := tool.New(tool.Definition{Name: "probe", Kind: tool.KindRead, Description: "looks", Timeout: time.Hour}, func(context.Context, tool.Call, struct{}) (tool.Result, error) {
			made++
			return answer(made), nil
		})
		if err == nil {
			err = w.Tools.Register(probe)
		}
		if err != nil {
			t.Fatal(err)
		}
		f(t, w, &made)
	})
}

const probing = `{"name":"probe","args":{}}`

// MIS-1: answers that take turns differ from the one before each time, such as those of a check that
// fails with its times. The call is made thirty times in a turn and then denied, until the agent
// changes something.
func TestSameCallWithAnswersThatTakeTurns(t *testing.T) {
	flip := func(n int) tool.Result {
		return tool.OK("x", tool.Text(fmt.Sprintf("FAIL 0.0%ds", n%2+1)))
	}
	guarding(t, repeating(probing, 199), flip, func(t *testing.T, w *world, made *int) {
		out := w.run("s1", "go")
		if *made != 30 || out.Kind != "repeated_calls" || !strings.Contains(strings.Join(w.history("s1"), "\n"), "this very call 30 times, which is as often as it may") {
			t.Errorf("the call was made %d times, %s: %v; want 30 times, and then repeated_calls", *made, out.Kind, out.Err)
		}
	})
	change := `{"tool_calls":[{"name":"danger","args":{"name":"a"}}]},`
	script := `{"steps":[` + strings.Repeat(`{"tool_calls":[`+probing+`]},`, 29) + change + strings.Repeat(`{"tool_calls":[`+probing+`]},`, 29) + `{"text":"ok"}]}`
	guarding(t, script, flip, func(t *testing.T, w *world, made *int) {
		if out := w.run("s1", "go"); *made != 58 || out.Text != "ok" {
			t.Errorf("with a change in between, the call was made %d times, %q, %v; want 58 times", *made, out.Text, out.Err)
		}
	})
}

// MIS-1: an agent that asks once in a while whether something is done gets to know when it is.
func TestSameCallThatWaits(t *testing.T) {
	guarding(t, repeating(probing, 45), func(n int) tool.Result {
		time.Sleep(30 * time.Second) // of the bubble
		if n < 45 {
			return tool.OK("state", tool.Text("pending"))
		}
		return tool.OK("state", tool.Text("done"))
	}, func(t *testing.T, w *world, made *int) {
		w.run("s1", "go")
		if h := w.history("s1"); *made != 45 || !strings.Contains(strings.Join(h, "\n"), "done") {
			t.Errorf("asked %d times: %q; want all 45, and the news", *made, h)
		}
	})
}

// MIS-1: a failure of the tool itself is an answer, too: only one that is the same again counts.
func TestSameCallThatFailsDifferently(t *testing.T) {
	for name, tt := range map[string]struct {
		news int
		want int
	}{"differently": {1, 6}, "the same": {0, 3}} {
		t.Run(name, func(t *testing.T) {
			guarding(t, repeating(probing, 6), func(n int) tool.Result {
				return tool.Fail(tool.ErrNotFound, "%d of 5 are built", tt.news*n)
			}, func(t *testing.T, w *world, made *int) {
				if out := w.run("s1", "go"); *made != tt.want || out.Text != "ok" {
					t.Errorf("the call was made %d times, %q, %v; want %d times", *made, out.Text, out.Err, tt.want)
				}
			})
		})
	}
}

// MIS-1: a turn ends after ten steps in a row in which no call runs, whether they differ or not. The model
// is told before.
func TestCallsThatNeverRun(t *testing.T) {
	var unknown []string
	for i := range 20 {
		unknown = append(unknown, fmt.Sprintf(`{"tool_calls":[{"name":"tool_%d","args":{}},{"name":"work","args":"{\"name"}]}`, i))
	}
	for name, tt := range map[string]struct{ script, want string }{
		"an unknown tool":      {repeating(`{"name":"Bash","args":{}}`, 20), `the last one, of Bash: unknown tool "Bash"`},
		"not JSON":             {repeating(`{"name":"work","args":"{\"name"}`, 20), "the last one, of work: invalid arguments"},
		"another one each":     {`{"steps":[` + strings.Join(unknown, ",") + `,{"text":"ok"}]}`, "none of the calls of 10 steps in a row has run"},
		"a tool that is there": {repeating(`{"name":"danger","args":{"name":"a"}}`, 20), "denied"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, setup{script: tt.script, settings: map[string]string{"approval.rules": `[{"tool":"danger","decision":"deny"}]`}}, func(t *testing.T, w *world) {
				out := w.run("s1", "go")
				if out.Steps != 10 || out.Err == nil || !strings.Contains(out.Err.Error(), tt.want) || (out.Kind != "failing_calls" && name != "a tool that is there") {
					t.Errorf("got %s after %d steps, %v; want the end after 10, with %q", out.Kind, out.Steps, out.Err, tt.want)
				}
				told := 0
				for _, ev := range w.web.all("llm.call.request") {
					if r, ok := ev.Payload.(event.LLMRequest); ok && strings.Contains(r.Messages[len(r.Messages)-1].Content, "None of your last calls has run") {
						told++
					}
				}
				if told != 5 {
					t.Errorf("the model was told in %d of its requests, want the last 5", told)
				}
			})
		})
	}
}

// MIS-1: a step in which a call runs starts the count of those in which none does again.
func TestCallsThatRunNowAndThen(t *testing.T) {
	bad, good := `{"tool_calls":[{"name":"Bash","args":{}}]},`, `{"tool_calls":[{"name":"Bash","args":{}},{"name":"work","args":{"name":"a"}}]},`
	inBubble(t, setup{script: `{"steps":[` + strings.Repeat(bad, 9) + good + strings.Repeat(bad, 9) + `{"text":"ok"}]}`}, func(t *testing.T, w *world) {
		if out := w.run("s1", "go"); out.Err != nil || out.Text != "ok" {
			t.Errorf("got %q, %s: %v; want the answer", out.Text, out.Kind, out.Err)
		}
	})
}

// MIS-1: calls of one answer are one step: the model gets nothing between them.
func TestSameCallsOfOneAnswer(t *testing.T) {
	one := `{"name":"work","args":{"name":"a"}}`
	inBubble(t, setup{script: `{"steps":[{"tool_calls":[` + strings.Repeat(one+",", 13) + one + `]},{"text":"ok"}]}`}, func(t *testing.T, w *world) {
		if out := w.run("s1", "go"); out.Err != nil || out.Text != "ok" || len(w.ran) != 3 {
			t.Errorf("got %q, %s: %v after %d calls; want the answer after 3", out.Text, out.Kind, out.Err, len(w.ran))
		}
	})
}

// MIS-1: an agent's call that comes while the history is summarized belongs to no turn.
func TestCallWhileCompacting(t *testing.T) {
	inBubble(t, setup{script: sums}, func(t *testing.T, w *world) {
		w.talk(5000)
		wait := w.compact(t.Context(), "")
		res := w.Dispatch.Call(t.Context(), w.Tools.For("s1"), tool.Call{ID: "x1", Name: "work", Args: []byte(`{"name":"a"}`), SessionID: "s1", Origin: tool.OriginLoop, Caller: w.Dispatch.Agent("s1")})
		if !res.OK {
			t.Errorf("the call = %q, want that it runs", res.Text())
		}
		w.Loop.Cancel("s1")
		_, _ = wait()
	})
}
