package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/backoff"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/workgroup"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Bounds of one answer.
const (
	MaxText      = 2 << 20 // bytes of text
	MaxToolCalls = 64
	MaxArgs      = 1 << 20 // bytes of the arguments of one call
	MaxReasoning = 1 << 20 // bytes of reasoning, with what services add to it
)

// ErrInterrupted is the cause of a call that its user interrupted.
var ErrInterrupted = errors.New("interrupted")

// RunnerConfig adjusts a runner. Emit is required: it publishes as the plugin.
type RunnerConfig struct {
	Emit func(kind, session string, payload any) error
	// Secrets are concealed in the text of answers and in the arguments of their
	// calls, however these are cut into pieces. Optional.
	Secrets *masked.Secrets
	// Report is called with errors of publishing.
	Report func(error)
	// Price returns what the tokens of a call cost, in US dollars. Optional.
	Price func(instance, model string, u event.Usage) float64
	// Timeout bounds a call with all its attempts. Default 10 min.
	Timeout time.Duration
	// Attempts is how often a call is tried. Default 4.
	Attempts int
	// Backoff is the pause before the second attempt; it doubles, with jitter, up
	// to 20 s. Default 500 ms.
	Backoff time.Duration
	// MaxRetryAfter is the longest wait that a service may ask for. Default 60 s.
	MaxRetryAfter time.Duration
}

// longestPause is between two attempts, unless the service asks for another.
const longestPause = 20 * time.Second

// Runner runs calls. The zero value is not usable; see [NewRunner].
type Runner struct {
	cfg RunnerConfig

	mu    sync.Mutex
	ended map[string]Outcome                            // of the last call, by instance
	calls map[string]map[string]context.CancelCauseFunc // by session and request
	work  workgroup.Group                               // closed under mu
}

// NewRunner returns a runner.
func NewRunner(cfg RunnerConfig) *Runner {
	cfg.Timeout = cmp.Or(cfg.Timeout, 10*time.Minute)
	cfg.Attempts = cmp.Or(cfg.Attempts, 4)
	cfg.Backoff = cmp.Or(cfg.Backoff, 500*time.Millisecond)
	cfg.MaxRetryAfter = cmp.Or(cfg.MaxRetryAfter, time.Minute)
	return &Runner{cfg: cfg, calls: map[string]map[string]context.CancelCauseFunc{}, ended: map[string]Outcome{}}
}

// Start answers a request on a goroutine of its own.
func (r *Runner) Start(ev event.Event, p Provider) {
	req, ok := ev.Payload.(event.LLMRequest)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), r.cfg.Timeout)
	ctx, interrupt := context.WithCancelCause(ctx)
	r.mu.Lock()
	if !r.work.Begin() {
		r.mu.Unlock()
		interrupt(nil)
		cancel()
		r.fail(ev, &Error{Kind: event.LLMOther, Err: errors.New("the provider is shutting down")})
		return
	}
	if r.calls[ev.SessionID] == nil {
		r.calls[ev.SessionID] = map[string]context.CancelCauseFunc{}
	}
	r.calls[ev.SessionID][ev.ID] = interrupt
	r.mu.Unlock()
	go func() {
		defer r.work.End()
		defer cancel()
		defer r.done(ev)
		res, err := r.run(ctx, ev, p, toRequest(req))
		r.note(ctx, p.Name(), err)
		if err != nil {
			if cause := context.Cause(ctx); errors.Is(cause, ErrInterrupted) {
				err = &Error{Kind: event.LLMOther, Err: cause}
			}
			r.fail(ev, Explain(AsError(err)))
			return
		}
		res.Request, res.Model = event.Request{RequestID: ev.ID}, cmp.Or(req.Model, p.ModelName())
		if r.cfg.Price != nil {
			res.CostUSD = r.cfg.Price(p.Name(), res.Model, res.Usage)
		}
		if err := r.cfg.Emit(event.LLMCallResponse.Name(), ev.SessionID, res); err != nil { // it is too long, say
			r.fail(ev, &Error{Kind: event.LLMOther, Err: fmt.Errorf("the answer could not be passed on: %w", err)})
		}
	}()
}

// Outcome is how a call ended. Err is nil if it succeeded.
type Outcome struct {
	At  time.Time
	Err error
}

// maxOutcomes bounds the instances of which the last outcome is known.
const maxOutcomes = 256

// note keeps how a call of an instance ended. One that its user interrupted says nothing.
func (r *Runner) note(ctx context.Context, instance string, err error) {
	if err != nil && errors.Is(context.Cause(ctx), ErrInterrupted) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.ended[instance]; known || len(r.ended) < maxOutcomes {
		r.ended[instance] = Outcome{time.Now(), err}
	}
}

// Last returns how the last call of an instance ended. It reports false if there was none.
func (r *Runner) Last(instance string) (Outcome, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := r.ended[instance]
	return o, ok
}

func (r *Runner) done(ev event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[ev.SessionID][ev.ID](nil)
	delete(r.calls[ev.SessionID], ev.ID)
	if len(r.calls[ev.SessionID]) == 0 {
		delete(r.calls, ev.SessionID)
	}
}

// Interrupt cancels the calls of a session.
func (r *Runner) Interrupt(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cancel := range r.calls[session] {
		cancel(ErrInterrupted)
	}
}

// Close cancels every call and waits for them.
func (r *Runner) Close(ctx context.Context) error {
	r.mu.Lock()
	r.work.Shut()
	for _, calls := range r.calls {
		for _, cancel := range calls {
			cancel(ErrInterrupted)
		}
	}
	r.mu.Unlock()
	if err := r.work.CloseWithin(ctx); err != nil {
		return fmt.Errorf("model calls are still running: %w", err)
	}
	return nil
}

func (r *Runner) emit(kind, session string, payload any) {
	if err := r.cfg.Emit(kind, session, payload); err != nil && r.cfg.Report != nil {
		r.cfg.Report(err)
	}
}

func (r *Runner) fail(ev event.Event, e *Error) {
	out := event.LLMError{Error: e.Err.Error(), Kind: e.Kind, RetryAfterS: e.RetryAfter.Seconds(), Overflow: e.Overflow, ContextWindow: e.Window, Request: event.Request{RequestID: ev.ID}}
	if e.Kind == event.LLMStatus {
		out.StatusCode = e.StatusCode
	}
	r.emit(event.LLMCallError.Name(), ev.SessionID, out)
}

// run retries until a call succeeds, fails permanently, or has used up its
// attempts.
func (r *Runner) run(ctx context.Context, ev event.Event, p Provider, req Request) (event.LLMResponse, error) {
	for attempt := 1; ; attempt++ {
		streamed := false
		res, err := r.attempt(ctx, p, req, func(d event.LLMDelta) {
			streamed = streamed || strings.TrimSpace(d.Content) != ""
			d.Request = event.Request{RequestID: ev.ID}
			r.emit(event.LLMCallDelta.Name(), ev.SessionID, d)
		})
		if err == nil || ctx.Err() != nil {
			return res, err
		}
		retry := Worth(Explain(AsError(err)))
		if own, ok := p.(Retryable); ok {
			retry = own.OnRetryableError(err, attempt)
		}
		// Text that a reader has seen cannot be taken back: who has asked may ask for the rest. Nobody
		// has seen reasoning or calls of an answer that is not whole.
		if !retry || streamed || attempt == r.cfg.Attempts {
			return res, err
		}
		pause := backoff.Spread(backoff.Pause(r.cfg.Backoff, longestPause, attempt-1), 1, 1.5)
		if after := AsError(err).RetryAfter; after > 0 {
			if after > r.cfg.MaxRetryAfter {
				return res, err
			}
			pause = after
		}
		why := Explain(AsError(err))
		told := event.LLMRetry{Attempt: attempt, WaitS: pause.Seconds(), Error: why.Err.Error(), Kind: why.Kind, Request: event.Request{RequestID: ev.ID}}
		if why.Kind == event.LLMStatus {
			told.StatusCode = why.StatusCode
		}
		r.emit(event.LLMRetried.Name(), ev.SessionID, told)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return res, err
		}
	}
}

func (r *Runner) attempt(ctx context.Context, p Provider, req Request, delta func(event.LLMDelta)) (res event.LLMResponse, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("provider %s: panic: %v\n%s", p.Name(), v, debug.Stack())
		}
	}()
	s, err := p.Generate(ctx, req)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var text strings.Builder
	said, thought := r.cfg.Secrets.Stream(), r.cfg.Secrets.Stream()
	var calls assembly
	var reasoning thoughts
	var stop event.StopReason
	for {
		part, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return res, err
		}
		if err := ctx.Err(); err != nil {
			return res, err
		}
		stop = cmp.Or(part.Stop, stop)
		if part.Reasoning != nil {
			if err := reasoning.add(*part.Reasoning, len(calls), r.cfg.Secrets); err != nil {
				return res, err
			}
		}
		d := event.LLMDelta{Content: said.Next(part.Content), Reasoning: thought.Next(part.Thought)}
		text.WriteString(d.Content)
		if part.ToolCall != nil {
			if err := calls.add(*part.ToolCall); err != nil {
				return res, err
			}
			told := *part.ToolCall
			told.Args = calls.said(told.Index, r.cfg.Secrets).Next(told.Args)
			if d.ToolCallPartial, err = json.Marshal(told); err != nil {
				return res, err
			}
		}
		if text.Len() > MaxText {
			return res, fmt.Errorf("the answer exceeds %d bytes", MaxText)
		}
		if d.Content == "" && d.Reasoning == "" && part.ToolCall == nil {
			continue // it has no text, or its text is held back
		}
		delta(d)
	}
	if rest := (event.LLMDelta{Content: said.End(), Reasoning: thought.End()}); rest.Content != "" || rest.Reasoning != "" {
		text.WriteString(rest.Content)
		delta(rest)
	}
	for i, c := range calls {
		if rest := c.told.End(); rest != "" {
			d, err := json.Marshal(ToolCallPart{Index: i, Args: rest})
			if err != nil {
				return res, err
			}
			delta(event.LLMDelta{ToolCallPartial: d})
		}
	}
	res = event.LLMResponse{Text: text.String(), ToolCalls: calls.list(stop, r.cfg.Secrets), Usage: s.Usage(), Reasoning: reasoning.list, StopReason: stop}
	if stop == event.StopRefusal {
		res.ToolCalls = nil // what it refused to go through with
	}
	if strings.TrimSpace(res.Text) == "" && len(res.ToolCalls) == 0 {
		return res, nothing(stop)
	}
	return res, nil
}

// nothing is the error of an answer with neither text nor calls. Without a reason it may be a
// hiccup, and is tried again; the others would end the same way.
func nothing(stop event.StopReason) error {
	switch stop {
	case event.StopLength:
		return &Error{Kind: event.LLMOther, Err: errors.New("the model has used all of its output limit without an answer, to reason for instance: raise the limit or lower the effort")}
	case event.StopRefusal:
		return &Error{Kind: event.LLMOther, Err: errors.New("the model or its service has refused to answer")}
	case event.StopEnd, event.StopToolCalls, event.StopInterrupted, event.StopBroken:
	}
	return &Error{Kind: event.LLMEmpty, Err: errors.New("the model answered nothing")}
}

// toRequest moves the system messages out of the history.
func toRequest(p event.LLMRequest) Request {
	req := Request{Tools: p.Tools, Model: p.Model, Params: p.Params}
	var system []string
	for _, m := range p.Messages {
		if m.Role == "system" {
			system = append(system, m.Content)
		} else {
			req.History = append(req.History, m)
		}
	}
	req.System = strings.Join(system, "\n\n")
	return req
}
