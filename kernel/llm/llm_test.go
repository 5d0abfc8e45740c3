package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a provider whose attempts each follow a script.
type fake struct {
	attempts []attempt
	n        int
	got      []llm.Request
	at       []time.Time
}

type attempt struct {
	err   error // of Generate
	parts []llm.Part
	end   error         // after the parts; nil is io.EOF
	block bool          // until ctx ends
	panic any           // in Next
	pause time.Duration // before each part
}

func (f *fake) Name() string           { return "fake" }
func (f *fake) ModelName() string      { return "m" }
func (f *fake) ThinkingEffort() string { return "off" }

func (f *fake) Generate(ctx context.Context, req llm.Request) (llm.Stream, error) {
	a := f.attempts[min(f.n, len(f.attempts)-1)]
	f.n++
	f.got, f.at = append(f.got, req), append(f.at, time.Now())
	if a.err != nil {
		return nil, a.err
	}
	return &stream{ctx, a, 0}, nil
}

type stream struct {
	ctx context.Context
	a   attempt
	i   int
}

func (s *stream) Next() (llm.Part, error) {
	if s.a.panic != nil {
		panic(s.a.panic)
	}
	if s.a.block {
		<-s.ctx.Done()
		return llm.Part{}, s.ctx.Err()
	}
	if s.i == len(s.a.parts) {
		if s.a.end != nil {
			return llm.Part{}, s.a.end
		}
		return llm.Part{}, io.EOF
	}
	time.Sleep(s.a.pause)
	s.i++
	return s.a.parts[s.i-1], nil
}

func (s *stream) Usage() event.Usage { return llm.NewUsage(10, 5, 3, 2) }
func (s *stream) Close() error       { return nil }

// call runs one request and returns what was emitted.
type emitted struct {
	kind    string
	payload any
}

type recorder struct {
	mu   sync.Mutex
	list []emitted
}

func (r *recorder) emit(kind, session string, payload any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, emitted{kind, payload})
	return nil
}

func (r *recorder) all() []emitted {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

func request(p event.LLMRequest) event.Event {
	return event.Event{ID: "req-1", Kind: event.LLMCallRequest.Name(), SessionID: "s1", Payload: p}
}

func call(t *testing.T, p llm.Provider, req event.LLMRequest) []emitted {
	t.Helper()
	var rec recorder
	r := llm.NewRunner(llm.RunnerConfig{Emit: rec.emit})
	r.Start(request(req), p)
	synctest.Wait()
	for range 1000 {
		rec.mu.Lock()
		n := len(rec.list)
		done := n > 0 && terminal(rec.list[n-1])
		rec.mu.Unlock()
		if done {
			break
		}
		time.Sleep(time.Second)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Errorf("Close of the runner = %v, want no error", err)
	}
	return rec.all()
}

func terminal(e emitted) bool {
	return e.kind == event.LLMCallResponse.Name() || e.kind == event.LLMCallError.Name()
}

func text(s ...string) (parts []llm.Part) {
	for _, s := range s {
		parts = append(parts, llm.Part{Content: s})
	}
	return parts
}

// Y-146, Y-147, Y-26, Y-27: each part is a delta, then exactly one response with
// text, calls and usage; fragments of calls come together.
func TestStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parts := append(text("Hel", "lo"),
			llm.Part{ToolCall: &llm.ToolCallPart{Index: 0, ID: "c1", Name: "ls"}},
			llm.Part{ToolCall: &llm.ToolCallPart{Index: 1, ID: "c1", Name: "cat", Args: `{"f":`}},
			llm.Part{ToolCall: &llm.ToolCallPart{Index: 1, Args: `12345678901234567890}`}},
			llm.Part{ToolCall: &llm.ToolCallPart{Index: 2, Name: "bad", Args: `{"x`}})
		got := call(t, &fake{attempts: []attempt{{parts: parts}}}, event.LLMRequest{})
		if len(got) != 7 {
			t.Fatalf("%d events: %+v", len(got), got)
		}
		var content string
		for _, e := range got[:6] {
			d := e.payload.(event.LLMDelta)
			if e.kind != "llm.call.delta" || d.RequestID != "req-1" || (d.Content == "") == (len(d.ToolCallPartial) == 0) {
				t.Errorf("got %+v, want a delta of req-1 with either text or a part of a call", e)
			}
			content += d.Content
		}
		r := got[6].payload.(event.LLMResponse)
		if got[6].kind != "llm.call.response" || r.RequestID != "req-1" || r.Text != "Hello" || content != "Hello" {
			t.Errorf(`got %+v, want the response "Hello" to req-1`, r)
		}
		if len(r.ToolCalls) != 3 || string(r.ToolCalls[0].Args) != "{}" || string(r.ToolCalls[1].Args) != `{"f":12345678901234567890}` {
			t.Errorf("got %+v; want 3 calls, with the arguments as they came", r.ToolCalls)
		}
		if r.ToolCalls[1].ID == "c1" || r.ToolCalls[1].ID == "" || r.ToolCalls[2].ID == "" {
			t.Errorf("ids are not unique: %+v", r.ToolCalls)
		}
		if string(r.ToolCalls[2].Args) != `"{\"x"` {
			t.Errorf("broken arguments became %s", r.ToolCalls[2].Args)
		}
		raw, err := json.Marshal(r.Usage)
		if want := `{"input_other":10,"input_cache_read":5,"input_cache_creation":3,"output":2,"input":18,"total":20}`; err != nil || string(raw) != want { // Y-147
			t.Errorf("usage %s", raw)
		}
	})
}

// Y-145: the provider gets system prompt, tools and history apart.
func TestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{attempts: []attempt{{parts: text("x")}}}
		call(t, f, event.LLMRequest{
			Model: "big", Params: []byte(`{"temperature":0}`), Tools: []event.ToolSchema{{Name: "ls"}},
			Messages: []event.Message{{Role: "system", Content: "A"}, {Role: "user", Content: "u"}, {Role: "system", Content: "B"}},
		})
		got := f.got[0]
		if got.System != "A\n\nB" || len(got.History) != 1 || got.History[0].Content != "u" || got.Model != "big" || string(got.Params) != `{"temperature":0}` || len(got.Tools) != 1 {
			t.Errorf(`got %+v; want the system messages joined, the history "u", the model big, its parameters and one tool`, got)
		}
	})
}

// Y-152, Y-28: each error of a service gets its kind.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct {
		a    attempt
		want event.LLMError
	}{
		"connection": {attempt{err: &llm.Error{Kind: event.LLMConnection, Err: errors.New("refused")}}, event.LLMError{Error: "refused", Kind: event.LLMConnection}},
		"system":     {attempt{err: &net.OpError{Op: "dial", Err: os.ErrPermission}}, event.LLMError{Error: "dial: permission denied", Kind: event.LLMConnection}},
		"timeout":    {attempt{err: context.DeadlineExceeded}, event.LLMError{Error: "context deadline exceeded", Kind: event.LLMTimeout}},
		"status": {attempt{err: &llm.Error{Kind: event.LLMStatus, StatusCode: 401, RetryAfter: 1500 * time.Millisecond, Err: errors.New("no key")}},
			event.LLMError{Error: "no key", Kind: event.LLMStatus, StatusCode: 401, RetryAfterS: 1.5}},
		"empty":   {attempt{}, event.LLMError{Error: "the model answered nothing", Kind: event.LLMEmpty}},
		"blank":   {attempt{parts: text(" ", "\n")}, event.LLMError{Error: "the model answered nothing", Kind: event.LLMEmpty}},
		"unknown": {attempt{err: errors.New("strange")}, event.LLMError{Error: "strange", Kind: event.LLMOther}},
		"midway":  {attempt{parts: text("a"), end: &llm.Error{Kind: event.LLMConnection, Err: errors.New("reset")}}, event.LLMError{Error: "reset", Kind: event.LLMConnection}},
		"too long": {attempt{parts: text(strings.Repeat("x", llm.MaxText), "x")},
			event.LLMError{Error: fmt.Sprintf("the answer exceeds %d bytes", llm.MaxText), Kind: event.LLMOther}},
		"too many calls": {attempt{parts: []llm.Part{{ToolCall: &llm.ToolCallPart{Index: llm.MaxToolCalls}}}},
			event.LLMError{Error: "the answer has more than 64 tool calls", Kind: event.LLMOther}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := call(t, &fake{attempts: []attempt{c.a}}, event.LLMRequest{})
				last := got[len(got)-1]
				c.want.RequestID = "req-1"
				if last.kind != "llm.call.error" || last.payload.(event.LLMError) != c.want {
					t.Errorf("got %+v, want %+v", last, c.want)
				}
				ends := 0
				for _, e := range got {
					if terminal(e) {
						ends++
					}
				}
				if ends != 1 {
					t.Errorf("%d terminal events", ends)
				}
			})
		})
	}
}

func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := call(t, &fake{attempts: []attempt{{panic: "boom"}}}, event.LLMRequest{})
		if e := got[0].payload.(event.LLMError); e.Kind != event.LLMOther || !strings.Contains(e.Error, "boom") {
			t.Errorf(`got %+v, want the kind %s with "boom"`, e, event.LLMOther)
		}
	})
}

// chooser decides by itself what to retry.
type chooser struct {
	fake
	asked []int
}

func (c *chooser) OnRetryableError(err error, attempt int) bool {
	c.asked = append(c.asked, attempt)
	return attempt < 2
}

// Y-153: temporary errors are retried, with pauses that grow or that the service asks
// for, a bounded number of times, and never once a reader has seen something.
func TestRetries(t *testing.T) {
	status := func(code int, after time.Duration) attempt {
		return attempt{err: &llm.Error{Kind: event.LLMStatus, StatusCode: code, RetryAfter: after, Err: errors.New("no")}}
	}
	good := attempt{parts: text("ok")}
	lost := &llm.Error{Kind: event.LLMConnection, Err: errors.New("lost")}
	for name, c := range map[string]struct {
		attempts    []attempt
		tries       int
		ok          bool
		least, most time.Duration
	}{
		"429, then good":       {[]attempt{status(429, 0), status(429, 0), good}, 3, true, 1500 * time.Millisecond, 2300 * time.Millisecond},
		"503 with Retry-After": {[]attempt{status(503, 7*time.Second), good}, 2, true, 7 * time.Second, 7 * time.Second},
		"asks for too long":    {[]attempt{status(429, 2*time.Minute), good}, 1, false, 0, 0},
		"never good":           {[]attempt{status(500, 0)}, 4, false, 3500 * time.Millisecond, 5300 * time.Millisecond},
		"not worth it":         {[]attempt{status(400, 0), good}, 1, false, 0, 0},
		"connection lost":      {[]attempt{{err: lost}, good}, 2, true, 500 * time.Millisecond, 760 * time.Millisecond},
		"something was seen":   {[]attempt{{parts: text("half"), end: lost}, good}, 1, false, 0, 0},
		"answered nothing":     {[]attempt{{}, good}, 2, true, 500 * time.Millisecond, 760 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{attempts: c.attempts}
				got := call(t, f, event.LLMRequest{})
				if ok := got[len(got)-1].kind == "llm.call.response"; ok != c.ok || f.n != c.tries {
					t.Errorf("%d tries, ok %v: %+v", f.n, ok, got)
				}
				var told []event.LLMRetry
				var waited time.Duration
				for _, e := range got {
					if r, ok := e.payload.(event.LLMRetry); ok {
						told, waited = append(told, r), waited+time.Duration(r.WaitS*float64(time.Second))
					}
				}
				if len(told) != c.tries-1 {
					t.Errorf("%d events about retries, want one before each: %+v", len(told), told)
				}
				for i, r := range told {
					if r.Attempt != i+1 || r.RequestID != "req-1" || r.Error == "" || r.Kind == "" || (r.Kind == event.LLMStatus) != (r.StatusCode > 0) {
						t.Errorf("the retry %d is told as %+v, want its attempt, request and reason", i, r)
					}
				}
				took := f.at[len(f.at)-1].Sub(f.at[0])
				if off := (took - waited).Abs(); off > time.Millisecond {
					t.Errorf("waited %v and told %v", took, waited)
				}
				if took < c.least || took > c.most {
					t.Errorf("waited %v, want within [%v, %v]", took, c.least, c.most)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		c := &chooser{fake: fake{attempts: []attempt{{err: errors.New("strange")}}}}
		call(t, c, event.LLMRequest{})
		if c.n != 2 || len(c.asked) != 2 || c.asked[1] != 2 {
			t.Errorf("%d tries, asked %v", c.n, c.asked)
		}
	})
}

// Y-22: an interrupt ends the session's calls at once, and nobody else's.
func TestInterrupt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rec recorder
		r := llm.NewRunner(llm.RunnerConfig{Emit: rec.emit})
		r.Start(request(event.LLMRequest{}), &fake{attempts: []attempt{{block: true}}})
		other := request(event.LLMRequest{})
		other.SessionID, other.ID = "s2", "req-2"
		r.Start(other, &fake{attempts: []attempt{{parts: text("a", "b"), pause: time.Minute}}})
		synctest.Wait()
		r.Interrupt("s1")
		synctest.Wait()
		got := rec.all()
		if len(got) != 1 || got[0].payload.(event.LLMError).Error != "interrupted" || got[0].payload.(event.LLMError).RequestID != "req-1" {
			t.Fatalf(`got %+v, want one error "interrupted" of req-1`, got)
		}
		time.Sleep(5 * time.Minute)
		got = rec.all()
		if last := got[len(got)-1]; last.kind != "llm.call.response" {
			t.Errorf("got %+v, want llm.call.response", last)
		}
		if err := r.Close(t.Context()); err != nil {
			t.Errorf("Close of the runner = %v, want no error", err)
		}
		r.Start(request(event.LLMRequest{}), &fake{attempts: []attempt{{parts: text("x")}}})
		got = rec.all()
		if last := got[len(got)-1]; last.kind != "llm.call.error" {
			t.Errorf("after close: %+v", last)
		}
	})
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := call(t, &fake{attempts: []attempt{{block: true}}}, event.LLMRequest{})
		if e := got[0].payload.(event.LLMError); e.Kind != event.LLMTimeout {
			t.Errorf("got %+v, want the kind %s", e, event.LLMTimeout)
		}
	})
}
