package llm_responses_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/plugins/llm_responses"
	"github.com/yaya-ai/yaya/plugins/provider"
	"github.com/yaya-ai/yaya/plugins/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func load(t *testing.T, url string, fields map[string]string) *providertest.World {
	t.Helper()
	settings := map[string]string{"providers.work.plugin": `"llm-responses"`, "providers.work.base_url": `"` + url + `/v1/"`, "providers.work.model": `"gpt-5"`, "providers.work.api_key": `"sk-instance"`}
	for k, v := range fields {
		settings["providers.work."+k] = v
	}
	return providertest.New(t, llm_responses.New(provider.Env{Getenv: func(string) string { return "" }}), settings)
}

// events are those of a stream, with their names as the service sends them.
func events(data ...string) fakellm.Step {
	var b strings.Builder
	for _, d := range data {
		var e struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal([]byte(d), &e)
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", e.Type, d)
	}
	return fakellm.Step{Raw: b.String()}
}

const (
	created   = `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","error":null,"incomplete_details":null,"output":[],"usage":null}}`
	completed = `{"type":"response.completed","sequence_number":9,"response":{"id":"resp_1","status":"completed","error":null,"incomplete_details":null,"usage":{"input_tokens":1037,"input_tokens_details":{"cached_tokens":1000},"output_tokens":89,"output_tokens_details":{"reasoning_tokens":64},"total_tokens":1126}}}`
)

func text(s string) string {
	return fmt.Sprintf(`{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":%q}`, s)
}

// MIS-3: encrypted reasoning, text, and parallel calls with arguments in pieces.
func TestStream(t *testing.T) {
	s := providertest.Serve(t, events(created,
		`{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[]}}`,
		`{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"I should look."}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"I should look."}],"encrypted_content":"gAAAA=="}}`,
		text("Let me "), text("see."),
		`{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","arguments":"","call_id":"call_1","name":"ls"}}`,
		`{"type":"response.output_item.added","output_index":3,"item":{"id":"fc_2","type":"function_call","status":"in_progress","arguments":"","call_id":"call_2","name":"now"}}`,
		`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"path\":"}`,
		`{"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":3,"delta":"{}"}`,
		`{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"\"/tmp\"}"}`,
		`{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"path\":\"/tmp\"}"}`,
		`{"type":"response.new_event","output_index":0}`, completed))
	got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "work"})
	if got.Text != "Let me see." || got.StopReason != event.StopToolCalls || len(got.ToolCalls) != 2 || got.ToolCalls[0].ID != "call_1" || string(got.ToolCalls[0].Args) != `{"path":"/tmp"}` || got.ToolCalls[1].Name != "now" || string(got.ToolCalls[1].Args) != `{}` {
		t.Errorf("got %+v, want the text and two calls", got)
	}
	if want := `[{"text":"I should look.","data":{"id":"rs_1","summary":[{"type":"summary_text","text":"I should look."}],"encrypted_content":"gAAAA=="},"by":"work/gpt-5"}]`; providertest.JSON(t, got.Reasoning) != want {
		t.Errorf("got the reasoning %s, want %s", providertest.JSON(t, got.Reasoning), want)
	}
	if u := got.Usage; u.InputOther != 37 || u.InputCacheRead != 1000 || u.Output != 89 {
		t.Errorf("got the usage %+v, want 37 and 1000 in, 89 out", u)
	}
}

// MIS-3, MIS-5: a request stores nothing, has reasoning in its place and unchanged, and pictures in
// results.
func TestRequest(t *testing.T) {
	s := providertest.Serve(t, events(created, text("fine"), completed))
	w := load(t, s.URL, map[string]string{"thinking_effort": `"high"`, "max_tokens": `4000`})
	w.Answer(event.LLMRequest{Provider: "work", Tools: []event.ToolSchema{{Name: "ls", Description: "lists", Parameters: []byte(`{"type":"object"}`)}, {Name: "now"}}, Messages: []event.Message{
		{Role: "system", Content: "be good"}, {Role: "user", Content: "look", Images: []event.Image{{MimeType: "image/png", Data: []byte("PNG")}}},
		{Role: "assistant", Content: "so:", ToolCalls: []event.ToolCall{{ID: "c0", Name: "ls", Args: []byte(`{"n":1}`)}, {ID: "functions.ls:0", Name: "a b", Args: []byte(`"{"`)}}, Reasoning: []event.Reasoning{
			{Text: "first", Data: []byte(`{"id":"rs_1","summary":[],"encrypted_content":"e1"}`), By: "work/gpt-5"}, {Text: "another's", Data: []byte(`{"encrypted_content":"e2"}`), By: "work/gpt-4"}, {Text: "not encrypted"},
			{Data: []byte(`{"id":"rs_2","summary":[],"encrypted_content":"e3"}`), By: "work/gpt-5", Calls: 1},
		}},
		{Role: "tool", ToolCallID: "c0", Content: "files", Images: []event.Image{{MimeType: "image/jpeg", Data: []byte("JPG")}}}, {Role: "tool", ToolCallID: "functions.ls:0", Content: "refused"},
	}})
	r := s.Requests()[0]
	if r.Path != "/v1/responses" || r.Authorization != "Bearer sk-instance" {
		t.Errorf("got %s with %q, want /v1/responses with the key", r.Path, r.Authorization)
	}
	for member, want := range map[string]string{
		"model": `"gpt-5"`, "instructions": `"be good"`, "stream": `true`, "store": `false`, "include": `["reasoning.encrypted_content"]`, "reasoning": `{"effort":"high","summary":"auto"}`, "max_output_tokens": `4000`, "temperature": `null`,
		"tools": `[{"description":"lists","name":"ls","parameters":{"type":"object"},"strict":false,"type":"function"},{"name":"now","parameters":{"properties":{},"type":"object"},"strict":false,"type":"function"}]`,
		"input": `[{"content":[{"text":"look","type":"input_text"},{"image_url":"data:image/png;base64,UE5H","type":"input_image"}],"role":"user","type":"message"},` +
			`{"encrypted_content":"e1","id":"rs_1","summary":[],"type":"reasoning"},{"content":[{"text":"so:","type":"output_text"}],"role":"assistant","type":"message"},` +
			`{"arguments":"{\"n\":1}","call_id":"c0","name":"ls","type":"function_call"},{"encrypted_content":"e3","id":"rs_2","summary":[],"type":"reasoning"},{"arguments":"{\"arguments\":\"{\"}","call_id":"call_1","name":"invalid_tool","type":"function_call"},` +
			`{"call_id":"c0","output":[{"text":"files","type":"input_text"},{"image_url":"data:image/jpeg;base64,SlBH","type":"input_image"}],"type":"function_call_output"},{"call_id":"call_1","output":"refused","type":"function_call_output"}]`,
	} {
		if got := providertest.JSON(t, r.Body[member]); got != want {
			t.Errorf("%s is\n%s, want\n%s", member, got, want)
		}
	}
}

// Models that do not reason get no parameters of reasoning, and a temperature of 0 is sent.
func TestPlainModel(t *testing.T) {
	s := providertest.Serve(t, events(created, text("fine"), completed))
	load(t, s.URL, map[string]string{"temperature": `0`}).Answer(event.LLMRequest{Provider: "work", Model: "gpt-4o"})
	b := s.Requests()[0].Body
	if b["include"] != nil || b["reasoning"] != nil || b["temperature"] != 0.0 || b["max_output_tokens"] != nil {
		t.Errorf("sent %v, want nothing about reasoning, and the temperature", b)
	}
}

// MIS-3: why an answer ended.
func TestStopReasons(t *testing.T) {
	for reason, want := range map[string]event.StopReason{"max_output_tokens": event.StopLength, "content_filter": event.StopRefusal} {
		s := providertest.Serve(t, events(created, text("well"), `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"`+reason+`"},"usage":{"input_tokens":5,"output_tokens":6}}}`))
		if got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "work"}); got.StopReason != want || got.Text != "well" || got.Usage.Output != 6 {
			t.Errorf("%s: got %+v, want %s", reason, got, want)
		}
	}
	s := providertest.Serve(t, events(created, `{"type":"response.refusal.delta","delta":"I will not."}`, completed))
	if got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "work"}); got.Text != "I will not." || got.StopReason != event.StopRefusal {
		t.Errorf("got %+v, want the words of the refusal, as one", got)
	}
}

// An answer is whole with its last event, however the stream ends after it.
func TestWholeAnswers(t *testing.T) {
	whole := events(created, text("all of it"), completed).Raw
	for name, step := range map[string]fakellm.Step{
		"no blank line at the end": {Raw: strings.TrimSuffix(whole, "\n")},
		"no line break at the end": {Raw: strings.TrimSuffix(whole, "\n\n")},
		"no blank lines":           {Raw: strings.ReplaceAll(whole, "\n\n", "\n")},
		"open":                     {Raw: whole, Open: true},
		"open, no blank line":      {Raw: strings.TrimSuffix(whole, "\n"), Open: true},
		"cut":                      {Raw: strings.TrimSuffix(whole, "\n\n"), Cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := providertest.Serve(t, step)
			ev := load(t, s.URL, nil).Ask(event.LLMRequest{Provider: "work"})
			if got, ok := ev.Payload.(event.LLMResponse); !ok || got.Text != "all of it" || got.Usage.Output != 89 || len(s.Requests()) != 1 {
				t.Errorf("got %+v after %d requests, want the answer after one", ev.Payload, len(s.Requests()))
			}
		})
	}
}

// Y-151, Y-152, MIS-2: the errors of the service, before and within the stream.
func TestErrors(t *testing.T) {
	failed := func(code, message string) fakellm.Step {
		return events(created, fmt.Sprintf(`{"type":"response.failed","response":{"status":"failed","error":{"code":%q,"message":%q}}}`, code, message))
	}
	for name, tc := range map[string]struct {
		step fakellm.Step
		want event.LLMError
	}{
		"key":        {fakellm.Step{Status: 401, Body: `{"error":{"message":"Incorrect API key provided: sk-instance","type":"invalid_request_error","code":"invalid_api_key"}}`}, event.LLMError{Kind: event.LLMStatus, StatusCode: 401, Error: "provided: ****"}},
		"too long":   {fakellm.Step{Status: 400, Body: `{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`}, event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "exceeds", Overflow: true}},
		"wait":       {fakellm.Step{Status: 429, RetryAfter: "3600", Body: `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`}, event.LLMError{Kind: event.LLMStatus, StatusCode: 429, RetryAfterS: 3600, Error: "slow down"}},
		"failed":     {failed("invalid_prompt", "odd"), event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "odd"}},
		"overflow":   {failed("context_length_exceeded", "Your input exceeds the context window of this model."), event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "exceeds", Overflow: true}},
		"strange":    {failed("new_code", "strange"), event.LLMError{Kind: event.LLMOther, Error: "strange"}},
		"nothing":    {events(created, `{"type":"response.failed","response":{}}`), event.LLMError{Kind: event.LLMOther, Error: "without a message"}},
		"error":      {events(created, text("half"), `{"type":"error","code":"server_error","message":"sorry","param":null}`), event.LLMError{Kind: event.LLMStatus, StatusCode: 500, Error: "sorry"}},
		"nested":     {events(created, text("half"), `{"type":"error","error":{"type":"x","code":"server_error","message":"sorry"}}`), event.LLMError{Kind: event.LLMStatus, StatusCode: 500, Error: "sorry"}},
		"broken off": {events(created, text("half of")), event.LLMError{Kind: event.LLMConnection, Error: "ended the answer early"}},
		"half event": {fakellm.Step{Raw: events(created, text("half of")).Raw + `data: {"type":"resp`}, event.LLMError{Kind: event.LLMConnection, Error: "unexpected EOF"}},
		"no JSON":    {fakellm.Step{Raw: "data: <html>\n\n"}, event.LLMError{Kind: event.LLMOther, Error: "an event of the answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			ev := load(t, providertest.Serve(t, tc.step).URL, nil).Ask(event.LLMRequest{Provider: "work"})
			e, ok := ev.Payload.(event.LLMError)
			if !ok || e.Kind != tc.want.Kind || e.StatusCode != tc.want.StatusCode || e.RetryAfterS != tc.want.RetryAfterS || e.Overflow != tc.want.Overflow || !strings.Contains(e.Error, tc.want.Error) {
				t.Errorf("got %+v, want %+v", ev.Payload, tc.want)
			}
		})
	}
}

// Y-153: a busy service is asked again, whether it says so before the stream or in it.
func TestRetry(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Status: 503, RetryAfter: "0.1", Text: "busy"}, events(created, `{"type":"response.failed","response":{"error":{"code":"server_error","message":"sorry"}}}`), events(created, text("at last"), completed))
	if got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "work"}); got.Text != "at last" || len(s.Requests()) != 3 {
		t.Errorf("got %q after %d requests, want the answer after 3", got.Text, len(s.Requests()))
	}
}

// Its service has an API for embeddings that the plugin does not speak: the error says who does.
func TestEmbed(t *testing.T) {
	p := llm_responses.New(provider.Env{Getenv: func(string) string { return "" }})
	providertest.New(t, p, map[string]string{"providers.work.plugin": `"llm-responses"`, "providers.work.base_url": `"http://127.0.0.1:1"`})
	if _, err := p.Embed(t.Context(), "work", "m", []string{"a"}); err == nil || !strings.Contains(err.Error(), "llm-responses has no embeddings") {
		t.Errorf("Embed = %v, want an error that names the plugin", err)
	}
}
