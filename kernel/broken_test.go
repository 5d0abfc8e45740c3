package kernel_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/kernel/session"
)

// lost is how a connection ends in the middle of an answer.
var lost = &llm.Error{Kind: event.LLMConnection, Err: io.ErrUnexpectedEOF}

// deltas returns what was shown as it came.
func (w *world) deltas() string {
	var b strings.Builder
	for _, ev := range w.web.all("assistant.message.delta") {
		if d, ok := ev.Payload.(event.Delta); ok {
			b.WriteString(d.Content)
		}
	}
	return b.String()
}

// USE-6: an answer that breaks off keeps its text, and the model is asked for the rest. Readers get
// all of it, once, and so does the model, after a restart too.
func TestABrokenAnswerGoesOn(t *testing.T) {
	dir := t.TempDir()
	p := &clipping{answers: []clip{{text: "one, ", err: lost}, {text: "two, ", stop: event.StopLength}, {text: "three, ", err: lost}, {text: "four"}, {text: "five"}}}
	withClips(t, dir, p, func(t *testing.T, w *world) {
		if out := w.run("s1", "count"); out.Err != nil || out.Text != "one, two, three, four" || out.Steps != 4 {
			t.Fatalf("got %q after %d steps, %v", out.Text, out.Steps, out.Err)
		}
		if got := w.deltas(); got != "one, two, three, four" {
			t.Errorf("%q was shown, want the answer once", got)
		}
		for i, want := range map[int]string{1: "broke off", 2: "cut off at the output limit", 3: "broke off"} {
			if h := p.requests[i].History; len(h) != 3 || h[1].Role != "assistant" || !strings.Contains(h[2].Content, want) {
				t.Errorf("request %d has %+v, want what was said and that it %s", i, h, want)
			}
		}
		if n := w.web.all("turn.notice"); len(n) != 2 || !strings.Contains(n[0].Payload.(event.Notice).Text, "the answer broke off: unexpected EOF; the model is asked for the rest") { //nolint:forcetypeassert // of that kind
			t.Errorf("the notices are %+v, want one for each time", n)
		}
	})
	withClips(t, dir, &clipping{answers: []clip{{text: "five"}}}, func(t *testing.T, w *world) {
		w.run("s1", "and then?")
		equal(t, w.history("s1")[:3], "user: count", "assistant: one, two, three, four", "user: and then?")
	})
}

// USE-6: the text of an answer whose rest does not come stays, and the model gets it with the next message.
// The turn says how to go on, and asks nobody whether a service runs that has just answered.
func TestABrokenAnswerStays(t *testing.T) {
	for name, tt := range map[string]struct {
		err      error
		requests int
		want     string
	}{
		"always":     {lost, 4, "a a a a"},
		"for good":   {&llm.Error{Kind: event.LLMStatus, StatusCode: 400, Err: errors.New("no")}, 1, "a"},
		"overloaded": {&llm.Error{Kind: event.LLMStatus, StatusCode: 529, Err: errors.New("busy")}, 4, "a a a a"},
	} {
		t.Run(name, func(t *testing.T) {
			p := &clipping{answers: []clip{{text: "a ", err: tt.err}}}
			withClips(t, "", p, func(t *testing.T, w *world) {
				out := w.run("s1", "go")
				if out.Err == nil || !strings.Contains(out.Err.Error(), "; the answer broke off: send a message to go on") || strings.Contains(out.Err.Error(), "does the service run") || len(p.requests) != tt.requests {
					t.Errorf("got %v after %d requests, want it after %d, and how to go on", out.Err, len(p.requests), tt.requests)
				}
				w.run("s1", "go on")
				equal(t, w.history("s1")[:3], "user: go", "assistant: "+tt.want+" "+session.StoppedHere, "user: go on")
			})
		})
	}
}

// USE-6: so does that of an answer that takes too long.
func TestASlowAnswerStays(t *testing.T) {
	inBubble(t, setup{script: `{"scenarios":[{"match":"^go$","steps":[{"text":"a b c d e f","delay_ms":1000}]},{"match":"","steps":[{"text":"more"}]}]}`, settings: map[string]string{"loop.llm_timeout": `"3500ms"`}}, func(t *testing.T, w *world) {
		if out := w.run("s1", "go"); out.Kind != "timeout" {
			t.Fatalf("got %s, %v; want a timeout", out.Kind, out.Err)
		}
		time.Sleep(time.Minute)
		w.run("s1", "and on")
		equal(t, w.history("s1"), "user: go", "assistant: a b c "+session.StoppedHere, "user: and on", "assistant: more")
	})
}

// USE-6: a turn that is cancelled before it asks for the rest ends at once, with the text that there is.
func TestCancelABrokenAnswer(t *testing.T) {
	p := &clipping{answers: []clip{{text: "one, ", err: lost}, {text: "two"}}}
	withClips(t, "", p, func(t *testing.T, w *world) {
		ended := make(chan string)
		go func() { ended <- w.run("s1", "count").Kind }()
		synctest.Wait() // it pauses
		begun := time.Now()
		w.Loop.Cancel("s1")
		if kind := <-ended; kind != "cancelled" || time.Since(begun) > 0 || len(p.requests) != 1 {
			t.Errorf("got %s after %v and %d requests, want it cancelled at once", kind, time.Since(begun), len(p.requests))
		}
		w.run("s1", "more")
		equal(t, w.history("s1")[:3], "user: count", "assistant: one, "+session.StoppedHere, "user: more")
	})
}

// MIS-3: an answer that breaks off before any text of it is asked for again: nobody has seen its reasoning
// or its calls, and none of those has run.
func TestABrokenAnswerWithoutText(t *testing.T) {
	p := &clipping{answers: []clip{{thought: "hm", err: lost}, {args: `{"name": "it"}`, err: lost}, {args: `{"name": "it"}`, stop: event.StopToolCalls}, {text: "done"}}}
	withClips(t, "", p, func(t *testing.T, w *world) {
		if out := w.run("s1", "work"); out.Err != nil || out.Text != "done" || len(w.ran) != 1 || len(w.web.all("llm.call.retry")) != 2 {
			t.Errorf("got %q, %v after the calls %q and %d retries; want one call", out.Text, out.Err, w.ran, len(w.web.all("llm.call.retry")))
		}
	})
}
