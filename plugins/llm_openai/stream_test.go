package llm_openai_test

import (
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/plugins/provider/providertest"
)

// USE-6: an error within a stream is known in all the forms that services give it, with its status, and
// an answer that ends with one is not whole.
func TestErrorsInAStream(t *testing.T) {
	const half = `data: {"choices":[{"index":0,"delta":{"content":"half"}}]}` + "\n\n"
	busy := event.LLMError{Kind: event.LLMStatus, StatusCode: 502, Error: "Provider disconnected"}
	for name, tt := range map[string]struct {
		raw  string
		want event.LLMError
	}{
		"after a comment":       {half + ": PROCESSING\n\n" + `data: {"error":{"code":502,"message":"Provider disconnected"}}` + "\n\n", busy},
		"behind other members":  {half + `data: {"id":"x","error":{"code":502,"message":"Provider disconnected"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}` + "\n\ndata: [DONE]\n\n", busy},
		"as a reason":           {half + `data: {"id":"x","choices":[{"index":0,"delta":{},"finish_reason":"error"}]}` + "\n\ndata: [DONE]\n\n", event.LLMError{Kind: event.LLMConnection, Error: "ended the answer early"}},
		"by its code":           {half + `data: {"error":{"code":"rate_limit_exceeded","message":"slow down"}}` + "\n\n", event.LLMError{Kind: event.LLMStatus, StatusCode: 429, Error: "slow down"}},
		"by its type":           {half + `data: {"error":{"code":null,"type":"server_error","message":"oops"}}` + "\n\n", event.LLMError{Kind: event.LLMStatus, StatusCode: 500, Error: "oops"}},
		"as a text":             {half + `data: {"error":"out of memory"}` + "\n\n", event.LLMError{Kind: event.LLMOther, Error: "out of memory"}},
		"without a text":        {half + `data: {"error":7}` + "\n\n", event.LLMError{Kind: event.LLMOther, Error: "an error without a message"}},
		"a line of its own":     {half + `{"error":{"code":502,"message":"Provider disconnected"}}` + "\n", busy},
		"as a field":            {half + `error: {"code":400,"message":"no such model","type":"invalid_request_error"}` + "\n\n", event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "no such model"}},
		"before DONE":           {`{"error":{"code":400,"message":"no such model"}}` + "\n\ndata: [DONE]\n\n", event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "no such model"}},
		"on several lines":      {"{\n  \"error\": {\n    \"code\": 400,\n    \"message\": \"no such model\"\n  }\n}\n", event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "no such model"}},
		"after the reason":      {`data: {"choices":[{"index":0,"delta":{"content":"half"},"finish_reason":"stop"}]}` + "\n\n" + `data: {"error":{"code":502,"message":"Provider disconnected"}}` + "\n\n", busy},
		"half an event":         {half + `data: {"choices":[{"ind`, event.LLMError{Kind: event.LLMConnection, Error: "unexpected EOF"}},
		"DONE without a reason": {half + "data: [DONE]", event.LLMError{Kind: event.LLMConnection, Error: "ended the answer early"}},
		"too large an event":    {half + "data: \"" + strings.Repeat("x", 16<<20) + "\"\n\n", event.LLMError{Kind: event.LLMOther, Error: "exceeds"}},
		"instead of a stream":   {`{"error":{"code":400,"message":"no such model"}}`, event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "no such model"}},
		"an event without JSON": {half + "data: nonsense\n\n", event.LLMError{Kind: event.LLMOther, Error: "an event of the answer"}},
	} {
		s := providertest.Serve(t, fakellm.Step{Raw: tt.raw})
		e, ok := newWorld(t, instance("prod", s.URL), nil).Ask(event.LLMRequest{Provider: "prod"}).Payload.(event.LLMError)
		if !ok || e.Kind != tt.want.Kind || e.StatusCode != tt.want.StatusCode || !strings.Contains(e.Error, tt.want.Error) {
			t.Errorf("%s: got %+v, want %+v", name, e, tt.want)
		}
	}
}

// An answer with a finish reason is whole, however the stream ends: services leave out the last line
// break, the blank lines or [DONE], and keep the connection open after it or break it.
func TestWholeAnswers(t *testing.T) {
	const (
		text   = `data: {"choices":[{"index":0,"delta":{"content":"all of it"}}]}`
		reason = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`
		usage  = `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":7}}`
		done   = "data: [DONE]"
	)
	lines := func(end string, l ...string) string { return strings.Join(l, end) }
	for name, tt := range map[string]struct {
		step   fakellm.Step
		output int
	}{
		"DONE without a line break":     {fakellm.Step{Raw: lines("\n\n", text, reason, usage, done)}, 7},
		"usage without a blank line":    {fakellm.Step{Raw: lines("\n\n", text, reason, usage) + "\n"}, 7},
		"usage without a line break":    {fakellm.Step{Raw: lines("\n\n", text, reason, usage)}, 7},
		"the reason without a line":     {fakellm.Step{Raw: lines("\n\n", text, reason) + "\n"}, 0},
		"byte order mark":               {fakellm.Step{Raw: "\ufeff" + lines("\n\n", text, reason, usage, done)}, 7},
		"no blank lines":                {fakellm.Step{Raw: lines("\n", text, reason, usage, done) + "\n"}, 7},
		"CRLF":                          {fakellm.Step{Raw: lines("\r\n", "event: message", text, ": on\r\n", reason, usage, done) + "\r\n"}, 7},
		"open after DONE":               {fakellm.Step{Raw: lines("\n\n", text, reason, usage, done) + "\n\n", Open: true}, 7},
		"open after DONE without blank": {fakellm.Step{Raw: lines("\n", text, reason, usage, done) + "\n", Open: true}, 7},
		"cut after the reason":          {fakellm.Step{Raw: lines("\n\n", text, reason) + "\n\n", Cut: true}, 0},
		"cut within the usage":          {fakellm.Step{Raw: lines("\n\n", text, reason, usage[:40]), Cut: true}, 0},
		"cut after the usage":           {fakellm.Step{Raw: lines("\n\n", text, reason, usage), Cut: true}, 7},
		"not JSON after the reason":     {fakellm.Step{Raw: lines("\n\n", text, reason, "data: bye") + "\n\n", Open: true}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := providertest.Serve(t, tt.step)
			ev := newWorld(t, instance("prod", s.URL), nil).Ask(event.LLMRequest{Provider: "prod"})
			got, ok := ev.Payload.(event.LLMResponse)
			if !ok || got.Text != "all of it" || got.StopReason != event.StopLength || got.Usage.Output != tt.output || len(s.Requests()) != 1 {
				t.Errorf("got %+v after %d requests, want the answer with %d tokens after one", ev.Payload, len(s.Requests()), tt.output)
			}
		})
	}
}

// A service that thinks for long keeps the connection alive by comments.
func TestCommentsOfAStream(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Raw: strings.Repeat(": PROCESSING\n\n", 1000) + `data: {"choices":[{"index":0,"delta":{"content":"at last"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"})
	if got := newWorld(t, instance("prod", s.URL), nil).text(event.LLMRequest{Provider: "prod"}); got != "at last" {
		t.Errorf("got %q, want the answer", got)
	}
}

// MIS-3: services refuse names and arguments of calls that a model may write: they get others that fit.
func TestOddCallsGoBack(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Text: "fine"})
	newWorld(t, instance("prod", s.URL), nil).text(event.LLMRequest{Provider: "prod", Messages: []event.Message{
		{Role: "user", Content: "go"},
		{Role: "assistant", ToolCalls: []event.ToolCall{{ID: "a", Name: "functions.ls", Args: []byte(`"{\"pa"`)}, {ID: "b", Name: "", Args: []byte(`{"n": 1}`)}}},
		{Role: "tool", ToolCallID: "a", Content: "no"}, {Role: "tool", ToolCallID: "b", Content: "no"},
	}})
	call := func(i int) any {
		return s.Requests()[0].Body["messages"].([]any)[1].(map[string]any)["tool_calls"].([]any)[i].(map[string]any)["function"] //nolint:forcetypeassert // a failure is one of the test
	}
	for i, want := range []map[string]any{{"name": "invalid_tool", "arguments": `{"arguments":"{\"pa"}`}, {"name": "invalid_tool", "arguments": `{"n": 1}`}} {
		got, _ := call(i).(map[string]any)
		if got["name"] != want["name"] || got["arguments"] != want["arguments"] {
			t.Errorf("call %d went back as %v, want %v", i, got, want)
		}
	}
}
