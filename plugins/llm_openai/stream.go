package llm_openai //nolint:staticcheck // see openai.go

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/sashabaranov/go-openai"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// stops are the reasons that have a name in the contract.
var stops = map[openai.FinishReason]event.StopReason{
	openai.FinishReasonStop: event.StopEnd, openai.FinishReasonToolCalls: event.StopToolCalls, openai.FinishReasonFunctionCall: event.StopToolCalls,
	openai.FinishReasonLength: event.StopLength, openai.FinishReasonContentFilter: event.StopRefusal,
}

// finishError is the reason of services such as OpenRouter for an answer that has failed on its way.
const finishError = "error"

// stream is an answer in progress.
type stream struct {
	body    io.Closer
	events  *provider.Events
	usage   event.Usage
	ended   bool             // a finish reason has arrived
	stop    event.StopReason // that reason
	over    bool             // the stream has ended, too
	refused bool             // its text is the words of a refusal
	index   int              // of the tool call in progress
	calls   map[string]int   // indexes by id
	parts   []llm.Part
}

func newStream(body io.ReadCloser) *stream {
	return &stream{body: body, events: provider.NewEvents(body), index: -1}
}

// chunk is an event of the stream. An error may be in one of any form, with status 200.
type chunk struct {
	openai.ChatCompletionStreamResponse
	Error json.RawMessage `json:"error"`
}

// Next implements [llm.Stream].
func (s *stream) Next() (llm.Part, error) {
	for len(s.parts) == 0 {
		if s.over {
			return llm.Part{}, io.EOF
		}
		var c chunk
		err := s.events.Next(&c)
		switch {
		case err == nil:
			err = s.take(c)
		case s.ended: // the answer is whole, however its stream ends
			s.over, err = true, nil
			if s.stop != "" {
				s.parts = append(s.parts, llm.Part{Stop: s.stop})
			}
		case errors.Is(err, io.EOF):
			err = provider.BrokeOff()
		}
		if err != nil {
			return llm.Part{}, err
		}
	}
	part := s.parts[0]
	s.parts = s.parts[1:]
	return part, nil
}

// UnmarshalJSON implements [json.Unmarshaler]. Some services send a call's arguments as an object,
// where the API has a string with its JSON.
func (c *chunk) UnmarshalJSON(data []byte) error {
	type plain chunk
	err := json.Unmarshal(data, (*plain)(c))
	if bad := new(json.UnmarshalTypeError); !errors.As(err, &bad) || !strings.HasSuffix(bad.Field, ".arguments") {
		return err
	}
	var again struct {
		Choices []struct {
			Delta struct {
				ToolCalls []struct {
					Function struct {
						Arguments json.RawMessage `json:"arguments"`
					} `json:"function"`
				} `json:"tool_calls"`
			} `json:"delta"`
		} `json:"choices"`
	}
	if err := json.Unmarshal(data, &again); err != nil {
		return err
	}
	for i, ch := range again.Choices {
		for j, tc := range ch.Delta.ToolCalls {
			var text string
			if args := tc.Function.Arguments; len(args) > 0 && json.Unmarshal(args, &text) != nil {
				c.Choices[i].Delta.ToolCalls[j].Function.Arguments = string(args)
			}
		}
	}
	return nil
}

// failed returns the error that a chunk reports, nil if it reports none.
func (c chunk) failed() error {
	var e struct {
		Code    json.RawMessage `json:"code"`
		Type    string          `json:"type"`
		Message string          `json:"message"`
	}
	switch {
	case len(c.Error) == 0 || string(c.Error) == "null":
		for _, ch := range c.Choices {
			if ch.FinishReason == finishError {
				return provider.BrokeOff()
			}
		}
		return nil
	case json.Unmarshal(c.Error, &e) != nil && json.Unmarshal(c.Error, &e.Message) != nil:
		return provider.Reported("", "", "")
	}
	var code string
	if json.Unmarshal(e.Code, &code) != nil { // a number is one of HTTP
		code = string(e.Code)
	}
	return provider.Reported(code, e.Type, e.Message)
}

func (s *stream) take(c chunk) error {
	if err := c.failed(); err != nil {
		return err
	}
	if u := c.Usage; u != nil {
		cached := 0
		if u.PromptTokensDetails != nil {
			cached = u.PromptTokensDetails.CachedTokens
		}
		s.usage = llm.NewUsage(u.PromptTokens-cached, cached, 0, u.CompletionTokens)
	}
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue
		}
		if ch.FinishReason != "" {
			s.ended = true
			s.stop = stops[ch.FinishReason]
		}
		s.refused = s.refused || ch.Delta.Refusal != ""
		if s.refused && s.ended {
			s.stop = event.StopRefusal
		}
		if text := ch.Delta.Content + ch.Delta.Refusal; text != "" {
			s.parts = append(s.parts, llm.Part{Content: text})
		}
		for _, tc := range ch.Delta.ToolCalls {
			s.parts = append(s.parts, llm.Part{ToolCall: &llm.ToolCallPart{Index: s.count(tc), ID: tc.ID, Name: tc.Function.Name, Args: tc.Function.Arguments}})
		}
	}
	return nil
}

// count returns the index of the call that a fragment belongs to. Some services omit it, or
// send each whole call with index 0: a new id means a new call. Others give all calls of a tool
// one id, its name for instance: a new index means a new call, too.
func (s *stream) count(tc openai.ToolCall) int {
	if i, known := s.calls[tc.ID]; known && tc.ID != "" && (tc.Index == nil || s.taken(*tc.Index)) {
		s.index = i
		return i
	}
	switch {
	case tc.Index != nil && (tc.ID == "" || !s.taken(*tc.Index)):
		s.index = *tc.Index
	case tc.ID != "" || s.index < 0:
		s.index = len(s.calls)
	}
	if tc.ID != "" {
		if s.calls == nil {
			s.calls = map[string]int{}
		}
		s.calls[tc.ID] = s.index
	}
	return s.index
}

func (s *stream) taken(index int) bool {
	for _, i := range s.calls {
		if i == index {
			return true
		}
	}
	return false
}

// Usage implements [llm.Stream].
func (s *stream) Usage() event.Usage { return s.usage }

// Close implements [llm.Stream].
func (s *stream) Close() error { return s.body.Close() }
