package llm_responses //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// stream is an answer in progress.
type stream struct {
	body    io.Closer
	events  *provider.Events
	by      string
	usage   event.Usage
	calls   map[int]int // the calls that have begun, by their item
	ended   bool
	refused bool // its text is the words of a refusal
	parts   []llm.Part
}

func newStream(body io.ReadCloser, by string) *stream {
	return &stream{body: body, events: provider.NewEvents(body), by: by, calls: map[int]int{}}
}

// failure is an error of the service.
type failure struct {
	Code    string `json:"code"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

// answer is the response as an event tells of it.
type answer struct {
	Error      *failure `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage struct {
		Input   int `json:"input_tokens"`
		Output  int `json:"output_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"input_tokens_details"`
	} `json:"usage"`
}

// item is a part of the answer.
type item struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Args      string          `json:"arguments"`
	Encrypted string          `json:"encrypted_content"`
	Summary   json.RawMessage `json:"summary"`
}

// told is an event of the stream, as far as it matters.
type told struct {
	Type     string   `json:"type"`
	Index    int      `json:"output_index"`
	Delta    string   `json:"delta"`
	Item     item     `json:"item"`
	Response answer   `json:"response"`
	Error    *failure `json:"error"`
	Code     string   `json:"code"`
	Message  string   `json:"message"`
}

// Next implements [llm.Stream].
func (s *stream) Next() (llm.Part, error) {
	for len(s.parts) == 0 {
		if s.ended {
			return llm.Part{}, io.EOF
		}
		var e told
		if err := s.events.Next(&e); errors.Is(err, io.EOF) {
			return llm.Part{}, provider.BrokeOff()
		} else if err != nil {
			return llm.Part{}, err
		}
		if err := s.take(e); err != nil {
			return llm.Part{}, err
		}
	}
	part := s.parts[0]
	s.parts = s.parts[1:]
	return part, nil
}

func (s *stream) take(e told) error {
	add := func(p llm.Part) { s.parts = append(s.parts, p) }
	switch e.Type {
	case "response.output_text.delta", "response.refusal.delta":
		s.refused = s.refused || e.Type == "response.refusal.delta"
		add(llm.Part{Content: e.Delta})
	case "response.reasoning_summary_text.delta":
		add(llm.Part{Thought: e.Delta})
	case "response.output_item.added":
		if e.Item.Type == "function_call" {
			s.calls[e.Index] = len(s.calls)
			add(llm.Part{ToolCall: &llm.ToolCallPart{Index: s.calls[e.Index], ID: e.Item.CallID, Name: e.Item.Name, Args: e.Item.Args}})
		}
	case "response.function_call_arguments.delta":
		if n, begun := s.calls[e.Index]; begun {
			add(llm.Part{ToolCall: &llm.ToolCallPart{Index: n, Args: e.Delta}})
		}
	case "response.output_item.done":
		if e.Item.Type == "reasoning" {
			add(llm.Part{Reasoning: s.reasoning(e.Item)})
		}
	case "response.completed":
		s.end(e.Response)
		stop := event.StopEnd
		if len(s.calls) > 0 {
			stop = event.StopToolCalls
		}
		if s.refused {
			stop = event.StopRefusal
		}
		add(llm.Part{Stop: stop})
	case "response.incomplete":
		s.end(e.Response)
		stop := event.StopLength
		if e.Response.Incomplete.Reason == "content_filter" {
			stop = event.StopRefusal
		}
		add(llm.Part{Stop: stop})
	case "response.failed":
		return failed(e.Response.Error)
	case "error":
		if e.Error == nil {
			e.Error = &failure{Code: e.Code, Message: e.Message}
		}
		return failed(e.Error)
	}
	return nil
}

func (s *stream) end(a answer) {
	u := a.Usage
	s.ended, s.usage = true, llm.NewUsage(u.Input-u.Details.Cached, u.Details.Cached, 0, u.Output)
}

// reasoning returns a part of the reasoning. Without encrypted content, it cannot go back.
func (s *stream) reasoning(i item) *event.Reasoning {
	r := &event.Reasoning{By: s.by}
	var summary []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(i.Summary, &summary) != nil {
		summary, i.Summary = nil, nil
	}
	var texts []string
	for _, p := range summary {
		texts = append(texts, p.Text)
	}
	r.Text = strings.Join(texts, "\n\n")
	if i.Encrypted == "" {
		return r
	}
	if i.Summary == nil {
		i.Summary = json.RawMessage("[]")
	}
	if data, err := json.Marshal(thought{ID: i.ID, Summary: i.Summary, Encrypted: i.Encrypted}); err == nil {
		r.Data = data
	}
	return r
}

func failed(f *failure) error {
	if f == nil {
		f = new(failure)
	}
	return provider.Reported(f.Code, f.Type, f.Message)
}

// Usage implements [llm.Stream].
func (s *stream) Usage() event.Usage { return s.usage }

// Close implements [llm.Stream].
func (s *stream) Close() error { return s.body.Close() }
