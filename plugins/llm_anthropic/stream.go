package llm_anthropic //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// stops are the reasons that have a name in the contract. The others end an answer normally.
var stops = map[anthropic.StopReason]event.StopReason{
	anthropic.StopReasonToolUse: event.StopToolCalls, anthropic.StopReasonRefusal: event.StopRefusal,
	anthropic.StopReasonMaxTokens: event.StopLength, anthropic.StopReasonModelContextWindowExceeded: event.StopLength,
}

// stream is an answer in progress.
type stream struct {
	s     *ssestream.Stream[anthropic.MessageStreamEventUnion]
	by    string
	usage event.Usage
	calls map[int64]int // the calls that have begun, by their block
	ended bool          // a stop reason has arrived, or the last event
	over  bool          // the last event has arrived: the connection may stay open

	thinking  strings.Builder // the block of reasoning that comes in
	signature signature
}

// Next implements [llm.Stream].
func (s *stream) Next() (llm.Part, error) {
	for !s.over && s.s.Next() {
		if part, ok := s.take(s.s.Current()); ok {
			return part, nil
		}
	}
	err := s.s.Err()
	_, reported := errors.AsType[*anthropic.Error](err)
	switch {
	case s.ended && !reported: // the answer is whole, however its stream ends
		return llm.Part{}, io.EOF
	case err != nil:
		return llm.Part{}, translate(err)
	}
	return llm.Part{}, provider.BrokeOff()
}

// take returns the part that an event of the stream is. It reports false for an event without one.
func (s *stream) take(ev anthropic.MessageStreamEventUnion) (part llm.Part, ok bool) {
	switch ev.Type {
	case "message_start":
		u := ev.Message.Usage
		s.usage = llm.NewUsage(int(u.InputTokens), int(u.CacheReadInputTokens), int(u.CacheCreationInputTokens), int(u.OutputTokens))
	case "content_block_start":
		return s.begin(ev.Index, ev.ContentBlock)
	case "content_block_delta":
		return s.more(ev.Index, ev.Delta)
	case "content_block_stop":
		if s.signature == (signature{}) && s.thinking.Len() == 0 {
			return part, false
		}
		r := &event.Reasoning{Text: s.thinking.String(), By: s.by}
		if data, err := json.Marshal(s.signature); err == nil && s.signature != (signature{}) {
			r.Data = data
		}
		s.thinking.Reset()
		s.signature = signature{}
		return llm.Part{Reasoning: r}, true
	case "message_delta":
		// These count what came so far; services that copy the API may leave the input out here, or at the start.
		u, was := ev.Usage, s.usage
		s.usage = llm.NewUsage(max(was.InputOther, int(u.InputTokens)), max(was.InputCacheRead, int(u.CacheReadInputTokens)), max(was.InputCacheCreation, int(u.CacheCreationInputTokens)), max(was.Output, int(u.OutputTokens)))
		if r := ev.Delta.StopReason; r != "" {
			s.ended = true
			if part.Stop = stops[r]; part.Stop == "" {
				part.Stop = event.StopEnd
			}
			return part, true
		}
	case "message_stop":
		s.ended, s.over = true, true
	}
	return part, false
}

// begin starts a block of content.
func (s *stream) begin(index int64, b anthropic.ContentBlockStartEventContentBlockUnion) (part llm.Part, ok bool) {
	switch b.Type {
	case "text":
		return llm.Part{Content: b.Text}, b.Text != ""
	case "thinking":
		s.thinking.WriteString(b.Thinking)
		s.signature.Signature = b.Signature
		return llm.Part{Thought: b.Thinking}, b.Thinking != ""
	case "redacted_thinking":
		s.signature.Redacted = b.Data
	case "tool_use":
		if s.calls == nil {
			s.calls = map[int64]int{}
		}
		s.calls[index] = len(s.calls)
		return llm.Part{ToolCall: &llm.ToolCallPart{Index: s.calls[index], ID: b.ID, Name: b.Name}}, true
	}
	return part, false
}

// more continues the block that began last.
func (s *stream) more(index int64, d anthropic.MessageStreamEventUnionDelta) (part llm.Part, ok bool) {
	switch d.Type {
	case "text_delta":
		return llm.Part{Content: d.Text}, d.Text != ""
	case "thinking_delta":
		if s.thinking.Len() <= llm.MaxReasoning { // which is too long, and ends the answer
			s.thinking.WriteString(d.Thinking)
		}
		return llm.Part{Thought: d.Thinking}, d.Thinking != ""
	case "signature_delta":
		if len(s.signature.Signature) <= llm.MaxReasoning {
			s.signature.Signature += d.Signature
		}
	case "input_json_delta":
		call, known := s.calls[index]
		return llm.Part{ToolCall: &llm.ToolCallPart{Index: call, Args: d.PartialJSON}}, d.PartialJSON != "" && known
	}
	return part, false
}

// Usage implements [llm.Stream].
func (s *stream) Usage() event.Usage { return s.usage }

// Close implements [llm.Stream].
func (s *stream) Close() error { return s.s.Close() }
