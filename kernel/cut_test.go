package kernel_test

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// clipping is a provider that gives its answers one after the other, whatever is asked.
type clipping struct {
	answers []clip
	tool    string // that it calls, default work

	runner *llm.Runner

	mu       sync.Mutex
	requests []llm.Request
	asked    func(n int) // called with each request
}

// clip is an answer of clipping; it says why it ends.
type clip struct {
	text, args string
	stop       event.StopReason
	thought    string // signed
	told       string // of its reasoning, as it comes
	err        error  // with which it breaks off
	hangs      bool   // instead, until it is interrupted
}

func (*clipping) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: "test-clipping", Version: "1.0.0", Category: plugin.LLMProvider, ProviderID: "clipping"}
}

func (*clipping) Subscriptions() []string { return []string{event.LLMCallRequest.Name()} }

func (p *clipping) OnLoad(_ context.Context, c plugin.Context) error {
	p.runner = llm.NewRunner(llm.RunnerConfig{Emit: c.Emit})
	return nil
}

func (p *clipping) OnUnload(ctx context.Context, _ plugin.Context) error { return p.runner.Close(ctx) }

func (p *clipping) OnEvent(_ context.Context, ev event.Event, _ plugin.Context) error {
	if _, ok := ev.Payload.(event.LLMRequest); ok {
		p.runner.Start(ev, p)
	}
	return nil
}

func (*clipping) Name() string           { return "test-clipping" }
func (*clipping) ModelName() string      { return "clipping-1" }
func (*clipping) ThinkingEffort() string { return "off" }

func (p *clipping) Generate(ctx context.Context, r llm.Request) (llm.Stream, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r)
	if p.asked != nil {
		p.asked(len(p.requests))
	}
	c := p.answers[min(len(p.requests), len(p.answers))-1]
	var parts []llm.Part
	if c.text != "" {
		parts = append(parts, llm.Part{Content: c.text})
	}
	if c.told != "" {
		parts = append(parts, llm.Part{Thought: c.told})
	}
	if c.thought != "" {
		parts = append(parts, llm.Part{Reasoning: &event.Reasoning{Text: c.thought, Data: json.RawMessage(`"signed"`), By: "test-clipping/clipping-1"}})
	}
	if c.args != "" {
		parts = append(parts, llm.Part{ToolCall: &llm.ToolCallPart{Name: cmp.Or(p.tool, "work"), Args: c.args}})
	}
	out := &clipped{parts: append(parts, llm.Part{Stop: c.stop}), err: c.err}
	if c.hangs {
		out.until = ctx.Done()
	}
	return out, nil
}

type clipped struct {
	parts []llm.Part
	err   error
	until <-chan struct{}
}

func (s *clipped) Next() (llm.Part, error) {
	if len(s.parts) == 0 {
		if s.until != nil {
			<-s.until
		}
		return llm.Part{}, cmp.Or(s.err, io.EOF)
	}
	p := s.parts[0]
	s.parts = s.parts[1:]
	return p, nil
}

func (*clipped) Usage() event.Usage { return llm.NewUsage(10, 0, 0, 10) }
func (*clipped) Close() error       { return nil }

// withClips runs a test with a model that answers so.
func withClips(t *testing.T, dir string, p *clipping, f func(t *testing.T, w *world)) {
	t.Helper()
	withClipsIn(t, dir, p, map[string]string{}, f)
}

// withClipsIn is withClips with settings.
func withClipsIn(t *testing.T, dir string, p *clipping, settings map[string]string, f func(t *testing.T, w *world)) {
	t.Helper()
	settings["provider"], settings["approval.rules"] = `"test-clipping"`, `[{"decision":"allow"}]`
	inBubble(t, setup{dir: dir, plugins: []plugin.Plugin{p}, settings: settings, answer: approveAll}, f)
}

// MIS-3: an answer that the output limit cut off is not taken for whole: the model is asked for the rest,
// and the answer, in the history and after a restart too, is all of it.
func TestACutAnswerGoesOn(t *testing.T) {
	dir := t.TempDir()
	p := &clipping{answers: []clip{{text: "one, ", stop: event.StopLength}, {text: "two, ", stop: event.StopLength}, {text: "three", stop: event.StopEnd}, {text: "four"}}}
	withClips(t, dir, p, func(t *testing.T, w *world) {
		if out := w.run("s1", "count"); out.Err != nil || out.Text != "one, two, three" || out.Steps != 3 {
			t.Fatalf("got %q after %d steps, %v", out.Text, out.Steps, out.Err)
		}
		last := p.requests[2].History
		if n := len(last); n != 3 || last[1].Content != "one, two, " || last[1].Role != "assistant" || last[2].Role != "user" {
			t.Errorf("the last request has %+v, want what was said and one request to go on", last)
		}
		w.run("s1", "and then?")
	})
	withClips(t, dir, &clipping{answers: []clip{{text: "five"}}}, func(t *testing.T, w *world) {
		equal(t, w.history("s1")[:4], "user: count", "assistant: one, two, three", "user: and then?", "assistant: four")
	})
}

// MIS-3: a model that never comes to an end fails its turn soon, and says what to do. Its text stays
// for the next message.
func TestAnEndlessAnswer(t *testing.T) {
	p := &clipping{answers: []clip{{text: "and ", stop: event.StopLength}}}
	withClips(t, "", p, func(t *testing.T, w *world) {
		out := w.run("s1", "count")
		if out.Err == nil || out.Kind != "length" || !strings.Contains(out.Err.Error(), "ask for less at a time") || len(p.requests) != 6 {
			t.Errorf("got %v, kind %q after %d requests, want 6", out.Err, out.Kind, len(p.requests))
		}
		p.answers = []clip{{text: "end"}}
		w.run("s1", "and then?")
		equal(t, w.history("s1"), "user: count", "assistant: and and and and and and "+session.StoppedHere, "user: and then?", "assistant: end")
	})
}

// MIS-3: a call that was cut off is refused by its tool, and the model is told why, once.
func TestACutCall(t *testing.T) {
	p := &clipping{answers: []clip{{text: "so: ", args: `{"name": "wo`, stop: event.StopLength}, {args: `{"name": "it"}`, stop: event.StopToolCalls}, {text: "3"}}}
	withClips(t, "", p, func(t *testing.T, w *world) {
		if out := w.run("s1", "add"); out.Err != nil || out.Text != "3" {
			t.Fatalf("got %q, %v", out.Text, out.Err)
		}
		for i, want := range []bool{false, true, false} {
			has := slices.ContainsFunc(p.requests[i].History, func(m event.Message) bool { return strings.Contains(m.Content, "may not have all of its arguments") })
			if has != want {
				t.Errorf("request %d says that the call was cut off: %v, want %v", i, has, want)
			}
		}
	})
}

// MIS-3: a message that joins while the model goes on follows what it had said until then, and
// the answer to it begins after it.
func TestSteeringACutAnswer(t *testing.T) {
	p := &clipping{answers: []clip{{text: "one, ", stop: event.StopLength}, {text: "two, ", stop: event.StopLength}, {text: "stopped"}}}
	withClips(t, "", p, func(t *testing.T, w *world) {
		p.asked = func(n int) {
			if n != 2 {
				return
			}
			if _, err := w.Loop.Submit(t.Context(), loop.Prompt{SessionID: "s1", Text: "stop", Delivery: loop.DeliverSteer}); err != nil {
				t.Errorf("Submit = %v, want no error", err)
			}
		}
		if out := w.run("s1", "count"); out.Err != nil || out.Text != "stopped" {
			t.Fatalf("got %q, %v", out.Text, out.Err)
		}
		equal(t, w.history("s1"), "user: count", "assistant: one, ", "user: stop", "assistant: stopped")
	})
}

// MIS-3: an empty answer is not tried again if its reason would be the same.
func TestNothingForAReason(t *testing.T) {
	for stop, want := range map[event.StopReason]string{event.StopLength: "output limit", event.StopRefusal: "refused to answer"} {
		p := &clipping{answers: []clip{{stop: stop}}}
		withClips(t, "", p, func(t *testing.T, w *world) {
			if out := w.run("s1", "count"); out.Err == nil || !strings.Contains(out.Err.Error(), want) || len(p.requests) != 1 {
				t.Errorf("%s: got %v after %d requests, want one and %q", stop, out.Err, len(p.requests), want)
			}
		})
	}
}

// MIS-3: the reasoning before calls goes back to the model with them, even after a restart.
func TestReasoningGoesBack(t *testing.T) {
	dir := t.TempDir()
	want := []event.Reasoning{{Text: "it has to work", Data: json.RawMessage(`"signed"`), By: "test-clipping/clipping-1"}}
	back := func(t *testing.T, p *clipping, n int) {
		t.Helper()
		i := slices.IndexFunc(p.requests[n].History, func(m event.Message) bool { return len(m.ToolCalls) > 0 })
		if i < 0 || !reflect.DeepEqual(p.requests[n].History[i].Reasoning, want) {
			t.Errorf("request %d has %+v, want the reasoning %+v", n, p.requests[n].History, want)
		}
	}
	p := &clipping{answers: []clip{{thought: "it has to work", args: `{"name": "it"}`, stop: event.StopToolCalls}, {text: "done"}}}
	withClips(t, dir, p, func(t *testing.T, w *world) {
		w.run("s1", "work")
		back(t, p, 1)
	})
	p = &clipping{answers: []clip{{text: "yes"}}}
	withClips(t, dir, p, func(t *testing.T, w *world) {
		w.run("s1", "is it done?")
		back(t, p, 0)
	})
}

// MIS-3: a call that was cut off before its arguments began is not made: without arguments it could
// do more than was meant. One whose model has refused is not made either.
func TestACallWithoutItsArguments(t *testing.T) {
	for stop, ran := range map[event.StopReason]bool{event.StopToolCalls: true, event.StopLength: false, event.StopRefusal: false} {
		p := &clipping{tool: "everything", answers: []clip{{text: "so: ", args: " ", stop: stop}, {text: "done"}}}
		withClips(t, "", p, func(t *testing.T, w *world) {
			made := 0
			x, err := tool.New(tool.Definition{Name: "everything", Kind: tool.KindRead, Description: "takes what it gets"}, func(context.Context, tool.Call, struct {
				Only string `json:"only,omitempty"`
			}) (tool.Result, error) {
				made++
				return tool.OK("all of it"), nil
			})
			if err == nil {
				err = w.Tools.Register(x)
			}
			if err != nil {
				t.Fatal(err)
			}
			if out := w.run("s1", "go"); out.Err != nil || made > 0 != ran {
				t.Errorf("%s: the call was made %d times, %v; want it made: %v", stop, made, out.Err, ran)
			}
		})
	}
}

// MIS-3: an answer that ends exactly at the limit is whole: there is nothing to add.
func TestAnAnswerThatFits(t *testing.T) {
	p := &clipping{answers: []clip{{text: "all of it", stop: event.StopLength}, {stop: event.StopEnd}}}
	withClips(t, "", p, func(t *testing.T, w *world) {
		if out := w.run("s1", "count"); out.Err != nil || out.Text != "all of it" {
			t.Errorf("got %q, %v, want the answer", out.Text, out.Err)
		}
		equal(t, w.history("s1"), "user: count", "assistant: all of it")
	})
}

// MIS-3: a turn that is tried again after half an answer begins with a whole one.
func TestHalfAnAnswerIsNotDoubled(t *testing.T) {
	p := &clipping{answers: []clip{{text: "half ", stop: event.StopLength}, {stop: event.StopRefusal}, {text: "whole", args: `{"name": "it"}`, stop: event.StopToolCalls}, {text: "done"}}}
	withClips(t, "", p, func(t *testing.T, w *world) {
		if out := w.run("s1", "work"); out.Err == nil {
			t.Fatal("the turn succeeded, want the refusal")
		}
		if _, err := w.Loop.Retry("s1", ""); err != nil {
			t.Fatalf("Retry = %v, want no error", err)
		}
		time.Sleep(time.Second) // of the bubble
		if got := w.history("s1"); !strings.HasPrefix(got[1], "assistant: whole [work") {
			t.Errorf("the history is %q, want no half before the whole", got)
		}
	})
}

// MIS-3: an answer that a content filter has ended, or whose model refuses, is not taken for whole without a
// word: people are told, and the end of the turn says so. The next answer is another matter.
func TestARefusalIsTold(t *testing.T) {
	p := &clipping{answers: []clip{{text: "the first half", stop: event.StopRefusal}, {text: "fine"}}}
	withClips(t, "", p, func(t *testing.T, w *world) {
		for range 2 {
			if out := w.run("s1", "go"); out.Err != nil {
				t.Fatal(out.Err)
			}
		}
		var got []event.StopReason
		for _, ev := range w.web.all("turn.completed") {
			if c, ok := ev.Payload.(event.TurnCompleted); ok {
				got = append(got, c.StopReason)
			}
		}
		if n := w.web.all("turn.notice"); !slices.Equal(got, []event.StopReason{event.StopRefusal, ""}) || len(n) != 1 || !strings.Contains(n[0].Payload.(event.Notice).Text, "has refused to go on") { //nolint:forcetypeassert // of that kind
			t.Errorf("the turns ended with %q and the notices %+v, want a refusal that is told, and none", got, n)
		}
	})
}
