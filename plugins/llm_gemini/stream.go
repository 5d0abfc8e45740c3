package llm_gemini //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/genai"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/llmhttp"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// stops are the reasons that have a name in the contract. The others end an answer normally.
var stops = map[genai.FinishReason]event.StopReason{
	genai.FinishReasonMaxTokens: event.StopLength,
	genai.FinishReasonSafety:    event.StopRefusal, genai.FinishReasonRecitation: event.StopRefusal, genai.FinishReasonBlocklist: event.StopRefusal,
	genai.FinishReasonProhibitedContent: event.StopRefusal, genai.FinishReasonSPII: event.StopRefusal, genai.FinishReasonImageSafety: event.StopRefusal,
}

// stream is an answer in progress.
type stream struct {
	next    func() (*genai.GenerateContentResponse, error, bool)
	stop    func()
	failure llmhttp.Failure // of reading the answer
	by      string
	names   names

	usage   event.Usage
	calls   int
	ended   bool            // a reason for the end has arrived
	thought strings.Builder // the reasoning that no part of the history has yet
	parts   []llm.Part
}

// Next implements [llm.Stream].
func (s *stream) Next() (llm.Part, error) {
	for len(s.parts) == 0 {
		r, err, ok := s.event()
		if ok && err == nil {
			if err := s.take(r); err != nil {
				return llm.Part{}, err
			}
			continue
		}
		_, reported := errors.AsType[genai.APIError](err)
		switch {
		case s.ended && !reported: // the answer is whole, however its stream ends
			return llm.Part{}, io.EOF
		case s.failure.Err != nil: // before the error that half an event is
			return llm.Part{}, provider.Failed(s.failure.Err)
		case err != nil:
			return llm.Part{}, translate(err)
		}
		return llm.Part{}, provider.BrokeOff()
	}
	part := s.parts[0]
	s.parts = s.parts[1:]
	return part, nil
}

// event returns the next event. The SDK panics when an event has another shape than the service's.
func (s *stream) event() (r *genai.GenerateContentResponse, err error, ok bool) {
	defer func() {
		if v := recover(); v != nil {
			r, err, ok = nil, fmt.Errorf("not in the form of the service: %v", v), true
		}
	}()
	return s.next()
}

func (s *stream) add(p llm.Part) { s.parts = append(s.parts, p) }

func (s *stream) take(r *genai.GenerateContentResponse) error {
	if u := r.UsageMetadata; u != nil { // of the answer so far
		cached := int(u.CachedContentTokenCount)
		s.usage = llm.NewUsage(int(u.PromptTokenCount)+int(u.ToolUsePromptTokenCount)-cached, cached, 0, int(u.CandidatesTokenCount)+int(u.ThoughtsTokenCount))
	}
	if f := r.PromptFeedback; f != nil && f.BlockReason != "" && len(r.Candidates) == 0 {
		return &llm.Error{Kind: event.LLMOther, Err: fmt.Errorf("the service has blocked the request: %s", cut.Text(strings.TrimSuffix(string(f.BlockReason)+": "+f.BlockReasonMessage, ": "), 500))}
	}
	for _, c := range r.Candidates {
		if c == nil || c.Index != 0 {
			continue
		}
		if c.Content != nil {
			for _, p := range c.Content.Parts {
				if err := s.part(p); err != nil {
					return err
				}
			}
		}
		if c.FinishReason == "" || c.FinishReason == genai.FinishReasonUnspecified {
			continue
		}
		s.ended = true
		s.keep("", nil)
		if c.FinishReason == genai.FinishReasonMalformedFunctionCall || c.FinishReason == genai.FinishReasonUnexpectedToolCall {
			// The next attempt may do better.
			return &llm.Error{Kind: event.LLMEmpty, Err: fmt.Errorf("the model has written a call that its service cannot read: %s", c.FinishReason)}
		}
		stop := stops[c.FinishReason]
		if stop == "" && s.calls > 0 {
			stop = event.StopToolCalls
		}
		s.add(llm.Part{Stop: cmp.Or(stop, event.StopEnd)})
	}
	return nil
}

// part takes a part of the content.
func (s *stream) part(p *genai.Part) error {
	switch {
	case p == nil:
	case p.Thought:
		if s.thought.Len() <= llm.MaxReasoning { // which is too long, and ends the answer
			s.thought.WriteString(p.Text)
		}
		if p.Text != "" {
			s.add(llm.Part{Thought: p.Text})
		}
		if len(p.ThoughtSignature) > 0 {
			s.keep(ofThought, p.ThoughtSignature)
		}
	case p.FunctionCall != nil:
		s.keep(ofCall, p.ThoughtSignature)
		call := &llm.ToolCallPart{Index: s.calls, ID: p.FunctionCall.ID, Name: s.names.of(p.FunctionCall.Name)}
		if len(p.FunctionCall.Args) > 0 {
			args, err := json.Marshal(p.FunctionCall.Args)
			if err != nil {
				return err
			}
			call.Args = string(args)
		}
		s.add(llm.Part{ToolCall: call})
		s.calls++
	default: // a signature may come after the text, with a part of its own
		if p.Text != "" || len(p.ThoughtSignature) > 0 {
			s.keep(ofText, p.ThoughtSignature)
		}
		if p.Text != "" {
			s.add(llm.Part{Content: p.Text})
		}
	}
	return nil
}

// keep adds the reasoning so far, with a signature if it has one.
func (s *stream) keep(of kind, data []byte) {
	if s.thought.Len() == 0 && len(data) == 0 {
		return
	}
	r := &event.Reasoning{Text: s.thought.String(), By: s.by}
	s.thought.Reset()
	if len(data) > 0 {
		raw, err := json.Marshal(signature{data, of})
		if err == nil {
			r.Data = raw
		}
	}
	s.add(llm.Part{Reasoning: r})
}

// Usage implements [llm.Stream].
func (s *stream) Usage() event.Usage { return s.usage }

// Close implements [llm.Stream].
func (s *stream) Close() error {
	s.stop()
	return nil
}

// unsent is the standard library's error of a request, without what the SDK puts before it.
type unsent interface {
	error
	Timeout() bool
}

// translate converts errors of the SDK to those of the contract.
func translate(err error) error {
	if e, ok := errors.AsType[genai.APIError](err); ok { // in a stream that began with status 200
		out := &llm.Error{Kind: event.LLMOther, Err: errors.New(cmp.Or(cut.Text(e.Message, 2000), e.Status, "the service reports an error without a message"))}
		if e.Code >= 400 && e.Code < 600 {
			out.Kind, out.StatusCode = event.LLMStatus, e.Code
		}
		if raw, err := json.Marshal(map[string]any{"error": e}); err == nil {
			out.RetryAfter = wait(raw)
		}
		return llm.Explain(out, e.Status)
	}
	if e, ok := errors.AsType[*llmhttp.StatusError](err); ok {
		own := *e
		own.RetryAfter = cmp.Or(own.RetryAfter, wait([]byte(e.Body)))
		return provider.Failed(&own)
	}
	if e, ok := errors.AsType[unsent](err); ok {
		return provider.Failed(e)
	}
	if e, ok := errors.AsType[*json.SyntaxError](err); ok && e.Error() == "unexpected end of JSON input" {
		return provider.Failed(fmt.Errorf("an event of the answer: %w", io.ErrUnexpectedEOF))
	}
	// The SDK's errors about events quote them as a whole.
	return &llm.Error{Kind: event.LLMOther, Err: worded.Error(err, "an event of the answer: %s", cut.Text(strings.ToValidUTF8(err.Error(), "\ufffd"), 500))}
}

// wait returns how long an error asks to wait, 0 if it does not: the service says so in the details
// of its error (google.rpc.RetryInfo) and not in a header.
func wait(body []byte) time.Duration {
	var e struct {
		Error struct {
			Details []struct {
				Type  string `json:"@type"`
				Delay string `json:"retryDelay"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil {
		return 0
	}
	for _, d := range e.Error.Details {
		if t, err := time.ParseDuration(d.Delay); err == nil && t > 0 && strings.HasSuffix(d.Type, "google.rpc.RetryInfo") {
			return t
		}
	}
	return 0
}
