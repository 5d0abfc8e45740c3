package llm_ollama_test

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/plugins/llm_ollama"
	"github.com/yaya-ai/yaya/plugins/provider"
	"github.com/yaya-ai/yaya/plugins/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func load(t *testing.T, url string, fields map[string]string) *providertest.World {
	t.Helper()
	settings := map[string]string{"providers.local.plugin": `"llm-ollama"`, "providers.local.base_url": `"` + url + `"`, "providers.local.model": `"qwen3:8b"`}
	for k, v := range fields {
		settings["providers.local."+k] = v
	}
	return providertest.New(t, llm_ollama.New(provider.Env{Getenv: func(string) string { return "" }}), settings)
}

// lines are those of a stream, in the form of api/chat.
func lines(l ...string) fakellm.Step { return fakellm.Step{Raw: strings.Join(l, "\n") + "\n"} }

func piece(message string) string {
	return `{"model":"qwen3:8b","created_at":"2026-01-01T00:00:00.0Z","message":{"role":"assistant",` + message + `},"done":false}`
}

func done(reason string) string {
	return `{"model":"qwen3:8b","created_at":"2026-01-01T00:00:01.0Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"` + reason + `","total_duration":1,"load_duration":1,"prompt_eval_count":26,"prompt_eval_duration":1,"eval_count":282,"eval_duration":1}`
}

// MIS-3: reasoning, text and calls of an answer, with and without ids.
func TestStream(t *testing.T) {
	s := providertest.Serve(t, lines(piece(`"content":"","thinking":"I should "`), piece(`"content":"","thinking":"look."`), piece(`"content":"Let me "`), piece(`"content":"see."`),
		piece(`"content":"","tool_calls":[{"id":"call_a","function":{"index":0,"name":"ls","arguments":{"n":12345678901234567890}}}]`), piece(`"content":"","tool_calls":[{"function":{"name":"now","arguments":{}}}]`), done("stop")))
	got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "local"})
	if got.Text != "Let me see." || got.StopReason != event.StopToolCalls || len(got.ToolCalls) != 2 || got.ToolCalls[0].ID != "call_a" || string(got.ToolCalls[0].Args) != `{"n":12345678901234567890}` || got.ToolCalls[1].Name != "now" || got.ToolCalls[1].ID == "" {
		t.Errorf("got %+v, want the text and two calls", got)
	}
	if want := `[{"text":"I should look.","data":{"thinking":true},"by":"local/qwen3:8b"}]`; providertest.JSON(t, got.Reasoning) != want {
		t.Errorf("got the reasoning %s, want %s", providertest.JSON(t, got.Reasoning), want)
	}
	if u := got.Usage; u.Input != 26 || u.Output != 282 || got.Model != "qwen3:8b" {
		t.Errorf("got %+v of %s, want 26 in, 282 out", u, got.Model)
	}
}

// MIS-2, MIS-3: a request asks for the window and for an error instead of a cut; it has the reasoning of
// its own model, pictures, and the names of the tools that results are of.
func TestRequest(t *testing.T) {
	s := providertest.Serve(t, lines(piece(`"content":"fine"`), done("stop")))
	w := load(t, s.URL+"/v1/", map[string]string{"context_window": `9000`, "temperature": `0`, "max_tokens": `50`, "thinking_effort": `"low"`, "api_key": `"sk-own-key"`})
	w.Answer(event.LLMRequest{Provider: "local", Tools: []event.ToolSchema{{Name: "ls", Description: "lists", Parameters: []byte(`{"type":"object"}`)}}, Messages: []event.Message{
		{Role: "system", Content: "be good"}, {Role: "user", Content: "look", Images: []event.Image{{MimeType: "image/png", Data: []byte("PNG")}}},
		{Role: "assistant", Content: "so:", ToolCalls: []event.ToolCall{{ID: "c0", Name: "ls", Args: []byte(`{"a":1}`)}, {ID: "c1", Name: "ls", Args: []byte(`"broken {"`)}}, Reasoning: []event.Reasoning{
			{Text: "mine", Data: []byte(`{"thinking":true}`), By: "local/qwen3:8b"}, {Text: "another's", Data: []byte(`{"signature":"x"}`), By: "work/claude"}}},
		{Role: "tool", ToolCallID: "c0", Content: "files"},
	}})
	r := s.Requests()[0]
	if r.Path != "/api/chat" || r.Authorization != "Bearer sk-own-key" {
		t.Errorf("got %s with %q, want /api/chat with the key", r.Path, r.Authorization)
	}
	for member, want := range map[string]string{
		"model": `"qwen3:8b"`, "stream": `true`, "think": `"low"`, "truncate": `false`, "shift": `false`, "options": `{"num_ctx":9000,"num_predict":50,"temperature":0}`,
		"tools": `[{"function":{"description":"lists","name":"ls","parameters":{"type":"object"}},"type":"function"}]`,
		"messages": `[{"content":"be good","role":"system"},{"content":"look","images":["UE5H"],"role":"user"},` +
			`{"content":"so:","role":"assistant","thinking":"mine","tool_calls":[{"function":{"arguments":{"a":1},"name":"ls"},"id":"c0"},{"function":{"arguments":{"arguments":"broken {"},"name":"ls"},"id":"c1"}]},` +
			`{"content":"files","role":"tool","tool_call_id":"c0","tool_name":"ls"}]`,
	} {
		if got := providertest.JSON(t, r.Body[member]); got != want {
			t.Errorf("%s is\n%s, want\n%s", member, got, want)
		}
	}
}

// The window is that of the settings, else the default, and never more than a known model has.
func TestWindow(t *testing.T) {
	for _, tc := range []struct {
		model, effort, want string
	}{{"mine", "off", "32768 false"}, {"gpt-4", "on", "8192 true"}} {
		s := providertest.Serve(t, lines(piece(`"content":"x"`), done("stop")))
		load(t, s.URL, map[string]string{"thinking_effort": `"` + tc.effort + `"`}).Answer(event.LLMRequest{Provider: "local", Model: tc.model})
		b := s.Requests()[0].Body
		if got := fmt.Sprint(b["options"].(map[string]any)["num_ctx"], " ", b["think"]); got != tc.want {
			t.Errorf("%s: sent %s, want %s", tc.model, got, tc.want)
		}
	}
}

// MIS-3: an answer that was cut off, and errors before and within the stream.
func TestEnds(t *testing.T) {
	s := providertest.Serve(t, lines(piece(`"content":"well"`), done("length")))
	if got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "local"}); got.StopReason != event.StopLength || got.Text != "well" {
		t.Errorf("got %+v, want an answer that was cut off", got)
	}
	for name, tc := range map[string]struct {
		step fakellm.Step
		want event.LLMError
	}{
		"no model":     {fakellm.Step{Status: 404, Body: `{"error":"model 'qwen3:8b' not found"}`}, event.LLMError{Kind: event.LLMStatus, StatusCode: 404, Error: "model 'qwen3:8b' not found"}},
		"no thinking":  {fakellm.Step{Status: 400, Body: `{"error":"\"qwen3:8b\" does not support thinking"}`}, event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "does not support thinking"}},
		"too long":     {fakellm.Step{Status: 400, Body: `{"error":"the input length exceeds the context length"}`}, event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "exceeds", Overflow: true}},
		"within":       {lines(piece(`"content":"well"`), `{"error":"an error was encountered while running the model"}`), event.LLMError{Kind: event.LLMOther, Error: "running the model"}},
		"broken off":   {lines(piece(`"content":"half of"`)), event.LLMError{Kind: event.LLMConnection, Error: "ended the answer early"}},
		"half a line":  {fakellm.Step{Raw: piece(`"content":"half of"`) + "\n" + `{"message":{"content":"an`}, event.LLMError{Kind: event.LLMConnection, Error: "unexpected EOF"}},
		"no JSON":      {fakellm.Step{Raw: "<html>"}, event.LLMError{Kind: event.LLMOther, Error: "invalid character"}},
		"asks to wait": {fakellm.Step{Status: 429, RetryAfter: "3600", Body: `{"error":"too many requests"}`}, event.LLMError{Kind: event.LLMStatus, StatusCode: 429, RetryAfterS: 3600, Error: "too many"}},
	} {
		t.Run(name, func(t *testing.T) {
			ev := load(t, providertest.Serve(t, tc.step).URL, nil).Ask(event.LLMRequest{Provider: "local"})
			e, ok := ev.Payload.(event.LLMError)
			if !ok || e.Kind != tc.want.Kind || e.StatusCode != tc.want.StatusCode || e.RetryAfterS != tc.want.RetryAfterS || e.Overflow != tc.want.Overflow || !strings.Contains(e.Error, tc.want.Error) {
				t.Errorf("got %+v, want %+v", ev.Payload, tc.want)
			}
		})
	}
}

// An answer is whole with its last line, however the stream ends after it.
func TestWholeAnswers(t *testing.T) {
	whole := lines(piece(`"content":"all of it"`), done("length")).Raw
	for name, step := range map[string]fakellm.Step{
		"no line break at the end": {Raw: strings.TrimSuffix(whole, "\n")},
		"open":                     {Raw: whole, Open: true},
		"open, no line break":      {Raw: strings.TrimSuffix(whole, "\n"), Open: true},
		"cut":                      {Raw: strings.TrimSuffix(whole, "\n"), Cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := providertest.Serve(t, step)
			ev := load(t, s.URL, nil).Ask(event.LLMRequest{Provider: "local"})
			if got, ok := ev.Payload.(event.LLMResponse); !ok || got.Text != "all of it" || got.StopReason != event.StopLength || got.Usage.Output != 282 || len(s.Requests()) != 1 {
				t.Errorf("got %+v after %d requests, want the answer after one", ev.Payload, len(s.Requests()))
			}
		})
	}
}

// Y-153: a busy server is asked again.
func TestRetry(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Status: 503, RetryAfter: "0.1", Body: `{"error":"server busy, please try again.  maximum pending requests exceeded"}`}, lines(piece(`"content":"at last"`), done("stop")))
	if got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "local"}); got.Text != "at last" || len(s.Requests()) != 2 {
		t.Errorf("got %q after %d requests, want the answer after 2", got.Text, len(s.Requests()))
	}
}

// Y-149: the address of the server's own variable, in the forms that it has.
func TestEnvironment(t *testing.T) {
	s := providertest.Serve(t, lines(piece(`"content":"x"`), done("stop")))
	host := strings.TrimPrefix(s.URL, "http://")
	for _, value := range []string{s.URL, host, strings.Replace(host, "127.0.0.1", "0.0.0.0", 1)} {
		w := providertest.New(t, llm_ollama.New(provider.Env{Getenv: func(k string) string { return map[string]string{"OLLAMA_HOST": value}[k] }}), map[string]string{"providers.local.plugin": `"llm-ollama"`})
		if got := w.Answer(event.LLMRequest{Provider: "local"}); got.Text != "x" || got.Model != llm_ollama.DefaultModel {
			t.Errorf("OLLAMA_HOST=%s: got %+v, want an answer of the default model", value, got)
		}
	}
}
