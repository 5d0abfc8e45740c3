package kernel_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel/budget"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// MIS-3: nobody has seen anything of an answer that breaks off after white space: it is asked for again,
// and another model may give it.
func TestABrokenAnswerOfWhiteSpace(t *testing.T) {
	p := &clipping{answers: []clip{{text: "\n\n", err: lost}, {text: "one"}}}
	withClips(t, "", p, func(t *testing.T, w *world) {
		if out := w.run("s1", "count"); out.Err != nil || out.Text != "one" || len(p.requests) != 2 || len(w.web.all("llm.call.retry")) != 1 {
			t.Errorf("got %q, %v after %d requests, want the answer to the second one", out.Text, out.Err, len(p.requests))
		}
	})
	p = &clipping{answers: []clip{{text: " \n", err: lost}}}
	withClipsIn(t, "", p, map[string]string{"model.fallbacks": `["llm-echo"]`}, func(t *testing.T, w *world) {
		if out := w.run("s1", "count"); out.Err != nil || out.Text != "echo: count" {
			t.Errorf("got %q, %v, want the answer of the fallback", out.Text, out.Err)
		}
	})
}

// USE-6: the text of a long answer that breaks off is kept as a whole.
func TestALongBrokenAnswer(t *testing.T) {
	long := strings.Repeat("a word ", 100_000)
	p := &clipping{answers: []clip{{text: long, err: lost}, {text: "end"}}}
	withClips(t, "", p, func(t *testing.T, w *world) {
		if out := w.run("s1", "write"); out.Err != nil || out.Text != long+"end" {
			t.Errorf("got %d bytes, %v, want all %d", len(out.Text), out.Err, len(long)+3)
		}
	})
}

// MIS-3: an answer that ended exactly at its limit is told once, also to who checks it.
func TestAnAnswerThatFitsIsNotDoubled(t *testing.T) {
	checked := false
	own := &strategy{func(s event.LoopState) (event.DecideResponse, error) {
		switch {
		case len(s.Pending) > 0:
			return event.DecideResponse{Next: event.NextTool}, nil
		case s.Answered && !checked:
			checked = true
			return event.DecideResponse{Next: event.NextTool, ToolCalls: []event.ToolCall{{ID: "check", Name: "work", Args: []byte(`{"name":"it"}`)}}}, nil
		case s.Answered:
			return event.DecideResponse{Next: event.NextDone}, nil
		}
		return event.DecideResponse{Next: event.NextLLM}, nil
	}}
	p := &clipping{answers: []clip{{text: "all of it", stop: event.StopLength}, {stop: event.StopEnd}}}
	inBubble(t, setup{plugins: []plugin.Plugin{p, own}, settings: map[string]string{"strategy": `"test"`, "provider": `"test-clipping"`}, answer: approveAll}, func(t *testing.T, w *world) {
		if out := w.run("s1", "count"); out.Err != nil {
			t.Fatal(out.Err)
		}
		equal(t, w.history("s1"), "user: count", `assistant: all of it [work {"name":"it"}]`, "tool: did it", "assistant: all of it")
	})
}

// MIS-3: an answer that broke off, or was interrupted, counts towards a limit by an estimate.
func TestBudgetOfBrokenAnswers(t *testing.T) {
	prices := map[string]string{
		"providers.test-clipping.plugin": `"test-clipping"`, "providers.test-clipping.input_price": `0`, "providers.test-clipping.output_price": `1000`, // 0.1 cents a token
		budget.SessionKey: `2`,
	}
	p := &clipping{answers: []clip{{text: strings.Repeat("word", 15), err: lost}, {text: "end"}}}
	withClipsIn(t, "", p, prices, func(t *testing.T, w *world) {
		out := w.run("s1", "count")
		if out.Err != nil || out.Usage.Output != 15+10 || out.Usage.Input <= 10 || out.CostUSD != 0.015 {
			t.Errorf("got %+v, %v dollars, %v; want 25 tokens out, and 1.5 cents of the part", out.Usage, out.CostUSD, out.Err)
		}
	})
	prices = map[string]string{"providers.llm-echo.plugin": `"llm-echo"`, "providers.llm-echo.input_price": `0`, "providers.llm-echo.output_price": `1000`, budget.SessionKey: `2`}
	inBubble(t, setup{script: `{"steps":[{"text":"` + strings.Repeat("many words ", 20) + `","delay_ms":100}]}`, settings: prices}, func(t *testing.T, w *world) {
		ended := make(chan string)
		go func() { ended <- w.run("s1", "count").Kind }()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		w.Loop.Cancel("s1")
		if kind := <-ended; kind != "cancelled" {
			t.Fatalf("the turn ended as %q, want it cancelled", kind)
		}
		if out := w.run("s1", "again"); out.Kind != "budget" {
			t.Errorf("after an interrupted answer of more than 2 cents: %s, %v, want the limit", out.Kind, out.Err)
		}
	})
}

// MIS-3: an answer that broke off in its reasoning or in the arguments of a call counts by an estimate, too, and
// leaves no message. A call to which nothing came back counts with nothing.
func TestBudgetWithoutText(t *testing.T) {
	prices := map[string]string{"providers.test-clipping.plugin": `"test-clipping"`, "providers.test-clipping.input_price": `0`, "providers.test-clipping.output_price": `1000`}
	long := strings.Repeat("word", 15)
	down := &llm.Error{Kind: event.LLMStatus, StatusCode: 400, Err: lost}
	for _, tt := range []struct {
		clip
		out int
	}{{clip{told: long, err: down}, 15}, {clip{args: long[:56], err: down}, 15}, {clip{told: long, stop: event.StopLength}, 15}, {clip{err: down}, 0}} {
		p := &clipping{answers: []clip{tt.clip, {text: "end"}}}
		withClipsIn(t, "", p, prices, func(t *testing.T, w *world) {
			out := w.run("s1", "count")
			if out.Err == nil || out.Usage.Output != tt.out || (out.Usage.Input > 0) != (tt.out > 0) || out.CostUSD != float64(tt.out)/1000 {
				t.Errorf("%+v: got %+v, %v dollars, %v; want the failure and %d tokens out", tt.clip, out.Usage, out.CostUSD, out.Err, tt.out)
			}
			n := 0
			for _, ev := range w.web.all("llm.call.response") {
				if r, ok := ev.Payload.(event.LLMResponse); ok && r.Partial() && r.Text == "" && r.Usage.Output == tt.out {
					n++
				}
			}
			if n != min(tt.out, 1) {
				t.Errorf("%+v: %d parts of an answer count in the session, want %d", tt.clip, n, min(tt.out, 1))
			}
			w.run("s1", "and then?")
			equal(t, w.history("s1"), "user: count", "user: and then?", "assistant: end")
		})
	}
	p := &clipping{answers: []clip{{told: long, err: lost}, {err: lost}, {text: "end"}}}
	withClipsIn(t, "", p, prices, func(t *testing.T, w *world) {
		if out := w.run("s1", "count"); out.Err != nil || out.Usage.Output != 15+10 || out.CostUSD != 0.015 {
			t.Errorf("got %+v, %v dollars, %v; want the answer, and 1.5 cents of the attempt before", out.Usage, out.CostUSD, out.Err)
		}
		equal(t, w.history("s1"), "user: count", "assistant: end")
	})
	p = &clipping{answers: []clip{{told: long, hangs: true}, {text: "end"}}}
	withClipsIn(t, "", p, prices, func(t *testing.T, w *world) {
		ended := make(chan loop.Outcome)
		go func() { ended <- w.run("s1", "count") }()
		time.Sleep(time.Second)
		synctest.Wait()
		w.Loop.Cancel("s1")
		if out := <-ended; out.Kind != "cancelled" || out.Usage.Output != 15 {
			t.Errorf("got %s with %+v, want it cancelled with 15 tokens out", out.Kind, out.Usage)
		}
		w.run("s1", "and then?")
		equal(t, w.history("s1"), "user: count", "user: and then?", "assistant: end")
	})
}
