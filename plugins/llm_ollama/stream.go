package llm_ollama //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// thinking is the data of reasoning, whose text the API takes back as it is.
var thinking = json.RawMessage(`{"thinking":true}`)

// stream is an answer in progress: lines of JSON.
type stream struct {
	body  io.Closer
	lines *json.Decoder
	by    string
	usage event.Usage
	calls int
	ended bool
	parts []llm.Part
	read  strings.Builder // the reasoning so far
}

func newStream(body io.ReadCloser, by string) *stream {
	return &stream{body: body, lines: json.NewDecoder(body), by: by}
}

// line is one of the stream.
type line struct {
	Message struct {
		Content  string `json:"content"`
		Thinking string `json:"thinking"`
		Calls    []struct {
			ID       string `json:"id"`
			Function struct {
				Name string          `json:"name"`
				Args json.RawMessage `json:"arguments"`
			} `json:"function"`
		} `json:"tool_calls"`
	} `json:"message"`
	Done   bool   `json:"done"`
	Reason string `json:"done_reason"`
	Input  int    `json:"prompt_eval_count"`
	Output int    `json:"eval_count"`
	Error  string `json:"error"`
}

// Next implements [llm.Stream].
func (s *stream) Next() (llm.Part, error) {
	for len(s.parts) == 0 {
		if s.ended {
			return llm.Part{}, io.EOF
		}
		var l line
		if err := s.lines.Decode(&l); err != nil {
			if errors.Is(err, io.EOF) {
				return llm.Part{}, provider.BrokeOff()
			}
			return llm.Part{}, provider.Failed(err)
		}
		if l.Error != "" { // with status 200
			return llm.Part{}, llm.Explain(&llm.Error{Kind: event.LLMOther, Err: errors.New(l.Error)})
		}
		s.take(l)
	}
	part := s.parts[0]
	s.parts = s.parts[1:]
	return part, nil
}

func (s *stream) take(l line) {
	add := func(p llm.Part) { s.parts = append(s.parts, p) }
	if l.Message.Thinking != "" {
		if s.read.Len() <= llm.MaxReasoning { // which is too long, and ends the answer
			s.read.WriteString(l.Message.Thinking)
		}
		add(llm.Part{Thought: l.Message.Thinking})
	}
	if l.Message.Thinking == "" || l.Message.Content != "" || len(l.Message.Calls) > 0 || l.Done {
		if s.read.Len() > 0 {
			add(llm.Part{Reasoning: &event.Reasoning{Text: s.read.String(), Data: thinking, By: s.by}})
			s.read.Reset()
		}
	}
	if l.Message.Content != "" {
		add(llm.Part{Content: l.Message.Content})
	}
	for _, c := range l.Message.Calls {
		add(llm.Part{ToolCall: &llm.ToolCallPart{Index: s.calls, ID: c.ID, Name: c.Function.Name, Args: string(c.Function.Args)}})
		s.calls++
	}
	if !l.Done {
		return
	}
	s.ended, s.usage = true, llm.NewUsage(l.Input, 0, 0, l.Output)
	switch {
	case l.Reason == "length":
		add(llm.Part{Stop: event.StopLength})
	case s.calls > 0:
		add(llm.Part{Stop: event.StopToolCalls})
	default:
		add(llm.Part{Stop: event.StopEnd})
	}
}

// Usage implements [llm.Stream].
func (s *stream) Usage() event.Usage { return s.usage }

// Close implements [llm.Stream].
func (s *stream) Close() error { return s.body.Close() }
