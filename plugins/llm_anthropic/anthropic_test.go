package llm_anthropic_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/plugins/llm_anthropic"
	"github.com/yaya-ai/yaya/plugins/provider"
	"github.com/yaya-ai/yaya/plugins/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// sse writes events as the service streams them, of which a ping may be anywhere.
func sse(events ...string) string {
	var b strings.Builder
	for i, e := range events {
		var t struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal([]byte(e), &t); err != nil {
			panic(err)
		}
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", t.Type, e)
		if i == 1 {
			b.WriteString("event: ping\ndata: {\"type\": \"ping\"}\n\n")
		}
	}
	return b.String()
}

const (
	start = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":12,"cache_read_input_tokens":1000,"output_tokens":1,"service_tier":"standard"}}}`
	end   = `{"type":"message_stop"}`
)

func begin(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func delta(i int, d string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d)
}

func stop(i int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i) }

func done(reason string, output int) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, reason, output)
}

// said is an answer that is a text.
func said(text, reason string) fakellm.Step {
	return fakellm.Step{Raw: sse(start, begin(0, `{"type":"text","text":""}`), delta(0, fmt.Sprintf(`{"type":"text_delta","text":%q}`, text)), stop(0), done(reason, 15), end)}
}

func load(t *testing.T, url string, more map[string]string) *providertest.World {
	t.Helper()
	settings := map[string]string{"providers.work.plugin": `"llm-anthropic"`, "providers.work.base_url": `"` + url + `"`, "providers.work.api_key": `"sk-ant-instance"`, "providers.work.model": `"claude-a"`}
	for k, v := range more {
		settings["providers.work."+k] = v
	}
	return providertest.New(t, llm_anthropic.New(provider.Env{Getenv: func(string) string { return "" }}), settings)
}

// MIS-3: services that copy the API may count the input at the end only.
func TestInputAtTheEnd(t *testing.T) {
	const late = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":30,"cache_read_input_tokens":2000,"cache_creation_input_tokens":5,"output_tokens":9}}`
	begun := strings.NewReplacer(`"input_tokens":25`, `"input_tokens":0`, `"cache_creation_input_tokens":12`, `"cache_creation_input_tokens":0`, `"cache_read_input_tokens":1000`, `"cache_read_input_tokens":0`).Replace(start)
	s := providertest.Serve(t, fakellm.Step{Raw: sse(begun, begin(0, `{"type":"text","text":"hi"}`), stop(0), late, end)})
	if u := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "work"}).Usage; u.InputOther != 30 || u.InputCacheRead != 2000 || u.InputCacheCreation != 5 || u.Output != 9 {
		t.Errorf("got the usage %+v, want 30, 2000 and 5 in, 9 out", u)
	}
}

// Y-145, Y-146, Y-147, MIS-3: text, reasoning and parallel calls come as they are streamed, and
// all tokens are counted.
func TestStream(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Raw: sse(start,
		begin(0, `{"type":"thinking","thinking":"","signature":""}`),
		delta(0, `{"type":"thinking_delta","thinking":"I should "}`), delta(0, `{"type":"thinking_delta","thinking":"look."}`),
		delta(0, `{"type":"signature_delta","signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h"}`), stop(0),
		begin(1, `{"type":"redacted_thinking","data":"EmwKAhgBEgy3va3pzix"}`), stop(1),
		begin(2, `{"type":"text","text":""}`), delta(2, `{"type":"text_delta","text":"Let me "}`), delta(2, `{"type":"text_delta","text":"see."}`), stop(2),
		begin(3, `{"type":"tool_use","id":"toolu_1","name":"ls","input":{}}`), delta(3, `{"type":"input_json_delta","partial_json":""}`),
		delta(3, `{"type":"input_json_delta","partial_json":"{\"path\": \"/t"}`), delta(3, `{"type":"input_json_delta","partial_json":"mp\"}"}`), stop(3),
		begin(4, `{"type":"tool_use","id":"toolu_2","name":"now","input":{}}`), stop(4),
		done("tool_use", 89), end)})
	w := load(t, s.URL, nil)
	var shown strings.Builder
	sub, err := bus.On(w.Bus, bus.SubscribeOptions{Name: "t"}, event.LLMCallDelta, func(_ context.Context, _ event.Event, d event.LLMDelta) error {
		shown.WriteString(d.Reasoning + d.Content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := w.Answer(event.LLMRequest{Provider: "work"})
	if got.Text != "Let me see." || got.StopReason != event.StopToolCalls || len(got.ToolCalls) != 2 || got.ToolCalls[0].ID != "toolu_1" || string(got.ToolCalls[0].Args) != `{"path":"/tmp"}` || got.ToolCalls[1].Name != "now" || string(got.ToolCalls[1].Args) != `{}` {
		t.Errorf("got %+v, want the text and two calls", got)
	}
	want := []event.Reasoning{
		{Text: "I should look.", Data: json.RawMessage(`{"signature":"EqQBCgIYAhIM1gbcDa9GJwZA2b3h"}`), By: "work/claude-a"},
		{Data: json.RawMessage(`{"redacted":"EmwKAhgBEgy3va3pzix"}`), By: "work/claude-a"},
	}
	if !reflect.DeepEqual(got.Reasoning, want) {
		t.Errorf("got the reasoning %s, want %s", providertest.JSON(t, got.Reasoning), providertest.JSON(t, want))
	}
	if u := got.Usage; u.InputOther != 25 || u.InputCacheRead != 1000 || u.InputCacheCreation != 12 || u.Output != 89 || u.Input != 1037 {
		t.Errorf("got the usage %+v, want 25, 1000 and 12 in, 89 out", u)
	}
	sub.Drain(t.Context())
	if shown.String() != "I should look.Let me see." {
		t.Errorf("streamed %q, want the reasoning and the text", shown.String())
	}
}

// MIS-3, MIS-4, MIS-5: a request has reasoning in its place and unchanged, pictures in results,
// the results of one answer together, and the breakpoints of the cache.
func TestRequest(t *testing.T) {
	s := providertest.Serve(t, said("fine", "end_turn"))
	w := load(t, s.URL, map[string]string{"thinking_effort": `"high"`, "max_tokens": `4000`})
	w.Answer(event.LLMRequest{Provider: "work", Params: []byte(`{"temperature":0.5}`),
		Tools: []event.ToolSchema{{Name: "ls", Description: "lists", Parameters: []byte(`{"type":"object","properties":{"n":{"maximum":12345678901234567890}},"required":["n"],"additionalProperties":false}`)}, {Name: "now"}},
		Messages: []event.Message{
			{Role: "system", Content: "be good"}, {Role: "assistant", Content: "a summary"}, {Role: "user", Content: "look", Images: []event.Image{{MimeType: "image/png", Data: []byte("PNG")}}},
			{Role: "assistant", Content: "so:", ToolCalls: []event.ToolCall{{ID: "c0", Name: "ls", Args: []byte(`{"n":1}`)}, {ID: "c1", Name: "ls", Args: []byte(`"broken {"`)}}, Reasoning: []event.Reasoning{
				{Text: "first", Data: []byte(`{"signature":"s1"}`), By: "work/claude-a"}, {Text: "another's", Data: []byte(`{"signature":"s2"}`), By: "work/claude-b"}, {Text: "unsigned"},
				{Data: []byte(`{"redacted":"r"}`), By: "work/claude-a", Calls: 1},
			}},
			{Role: "tool", ToolCallID: "c0", Content: "files", Images: []event.Image{{MimeType: "image/jpeg", Data: []byte("JPG")}}}, {Role: "tool", ToolCallID: "c1", Content: "refused"}, {Role: "user", Content: "and?"},
		}})
	r := s.Requests()[0]
	if r.Path != "/v1/messages" || r.Header.Get("X-Api-Key") != "sk-ant-instance" || r.Header.Get("Anthropic-Version") != "2023-06-01" || r.Header.Get("Authorization") != "" {
		t.Errorf("got %s with %v, want /v1/messages with the key", r.Path, r.Header)
	}
	for member, want := range map[string]string{
		"model": `"claude-a"`, "max_tokens": `4000`, "stream": `true`, "thinking": `{"display":"summarized","type":"adaptive"}`, "output_config": `{"effort":"high"}`, "temperature": `null`,
		"system": `[{"cache_control":{"type":"ephemeral"},"text":"be good","type":"text"}]`,
		"tools":  `[{"description":"lists","input_schema":{"additionalProperties":false,"properties":{"n":{"maximum":12345678901234567000}},"required":["n"],"type":"object"},"name":"ls"},{"cache_control":{"type":"ephemeral"},"input_schema":{"properties":{},"type":"object"},"name":"now"}]`,
		"messages": `[{"content":[{"text":"(The beginning of the conversation is not shown.)","type":"text"}],"role":"user"},{"content":[{"text":"a summary","type":"text"}],"role":"assistant"},` +
			`{"content":[{"source":{"data":"UE5H","media_type":"image/png","type":"base64"},"type":"image"},{"text":"look","type":"text"}],"role":"user"},` +
			`{"content":[{"signature":"s1","thinking":"first","type":"thinking"},{"text":"so:","type":"text"},{"id":"c0","input":{"n":1},"name":"ls","type":"tool_use"},{"data":"r","type":"redacted_thinking"},{"id":"c1","input":{"arguments":"broken {"},"name":"ls","type":"tool_use"}],"role":"assistant"},` +
			`{"content":[{"content":[{"text":"files","type":"text"},{"source":{"data":"SlBH","media_type":"image/jpeg","type":"base64"},"type":"image"}],"tool_use_id":"c0","type":"tool_result"},{"content":[{"text":"refused","type":"text"}],"tool_use_id":"c1","type":"tool_result"},{"cache_control":{"type":"ephemeral"},"text":"and?","type":"text"}],"role":"user"}]`,
	} {
		if got := providertest.JSON(t, r.Body[member]); got != want {
			t.Errorf("%s is\n%s, want\n%s", member, got, want)
		}
	}
}

// MIS-3: a history of other services is written as the API takes it: ids of calls that it refuses or
// that come twice, names that it refuses, and texts of spaces alone.
func TestHistoryOfOthers(t *testing.T) {
	s := providertest.Serve(t, said("fine", "end_turn"))
	w := load(t, s.URL, nil)
	call := func(id, name string) []event.ToolCall {
		return []event.ToolCall{{ID: id, Name: name, Args: []byte(`{}`)}}
	}
	w.Answer(event.LLMRequest{Provider: "work", Messages: []event.Message{
		{Role: "user", Content: "go"},
		{Role: "assistant", Content: "\n\n", ToolCalls: call("functions.ls:0", "ls")}, {Role: "tool", ToolCallID: "functions.ls:0", Content: " "},
		{Role: "assistant", ToolCalls: call("same", "a b")}, {Role: "tool", ToolCallID: "same", Content: "one"},
		{Role: "assistant", ToolCalls: call("same", "ls")}, {Role: "tool", ToolCallID: "same", Content: "two"},
	}})
	want := `[{"content":[{"text":"go","type":"text"}],"role":"user"},` +
		`{"content":[{"id":"call_0","input":{},"name":"ls","type":"tool_use"}],"role":"assistant"},{"content":[{"tool_use_id":"call_0","type":"tool_result"}],"role":"user"},` +
		`{"content":[{"id":"same","input":{},"name":"invalid_tool","type":"tool_use"}],"role":"assistant"},{"content":[{"content":[{"text":"one","type":"text"}],"tool_use_id":"same","type":"tool_result"}],"role":"user"},` +
		`{"content":[{"id":"call_2","input":{},"name":"ls","type":"tool_use"}],"role":"assistant"},{"content":[{"cache_control":{"type":"ephemeral"},"content":[{"text":"two","type":"text"}],"tool_use_id":"call_2","type":"tool_result"}],"role":"user"}]`
	if got := strings.ReplaceAll(providertest.JSON(t, s.Requests()[0].Body["messages"]), `,"is_error":false`, ""); got != want {
		t.Errorf("messages are\n%s, want\n%s", got, want)
	}
}

// Blocks of an answer may come between each other.
func TestInterleavedCalls(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Raw: sse(start,
		begin(0, `{"type":"tool_use","id":"a","name":"ls","input":{}}`), begin(1, `{"type":"tool_use","id":"b","name":"cat","input":{}}`),
		delta(0, `{"type":"input_json_delta","partial_json":"{\"n\":1}"}`), delta(1, `{"type":"input_json_delta","partial_json":"{\"n\":2}"}`), stop(0), stop(1),
		done("tool_use", 9), end)})
	got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "work"})
	if len(got.ToolCalls) != 2 || string(got.ToolCalls[0].Args) != `{"n":1}` || string(got.ToolCalls[1].Args) != `{"n":2}` {
		t.Errorf("got %+v, want each call with its own arguments", got.ToolCalls)
	}
}

// MIS-4: a request begins with the bytes of the one before.
func TestRequestsBeginEqually(t *testing.T) {
	s := providertest.Serve(t, said("one", "end_turn"))
	w := load(t, s.URL+"/v1", nil)
	tools := []event.ToolSchema{{Name: "a", Parameters: []byte(`{"type":"object","properties":{"z":{"type":"string"},"b":{"type":"string"}}}`)}}
	history := []event.Message{{Role: "system", Content: "be good"}, {Role: "user", Content: "hi"}}
	for range 3 {
		w.Answer(event.LLMRequest{Provider: "work", Tools: tools, Messages: history})
		history = append(history, event.Message{Role: "assistant", Content: "one"}, event.Message{Role: "user", Content: "more"})
	}
	r := s.Requests()
	if r[0].Path != "/v1/messages" {
		t.Errorf("got a request for %s, want /v1/messages: the address may end with the version", r[0].Path)
	}
	for i := range 2 {
		for _, member := range []string{"system", "tools"} {
			if a, b := providertest.JSON(t, r[i].Body[member]), providertest.JSON(t, r[i+1].Body[member]); a != b {
				t.Errorf("%s differs:\n%s\n%s", member, a, b)
			}
		}
		a, b := r[i].Body["messages"].([]any), r[i+1].Body["messages"].([]any)
		if x, y := unmarked(t, a), unmarked(t, b[:len(a)]); x != y {
			t.Errorf("the messages begin with\n%s, and then with\n%s", x, y)
		}
	}
}

// unmarked is without breakpoints, which the cache does not count.
func unmarked(t *testing.T, v any) string {
	t.Helper()
	return strings.ReplaceAll(providertest.JSON(t, v), `"cache_control":{"type":"ephemeral"},`, "")
}

// A number is a budget for reasoning, off is nothing.
func TestThinking(t *testing.T) {
	for effort, want := range map[string]string{"off": `null 8192 0.5`, "2000": `{"budget_tokens":2000,"type":"enabled"} 8192 null`, "32000": `{"budget_tokens":32000,"type":"enabled"} 33024 null`} {
		s := providertest.Serve(t, said("x", "end_turn"))
		w := load(t, s.URL, map[string]string{"thinking_effort": `"` + effort + `"`})
		w.Answer(event.LLMRequest{Provider: "work", Params: []byte(`{"temperature":0.5}`)})
		b := s.Requests()[0].Body
		if got := fmt.Sprintf("%s %v %s", providertest.JSON(t, b["thinking"]), b["max_tokens"], providertest.JSON(t, b["temperature"])); got != want || b["output_config"] != nil {
			t.Errorf("%s: got %s, want %s", effort, got, want)
		}
	}
}

// MIS-3: the output limit is that of the model, as far as it leaves room in the window, and settings
// count more.
func TestOutputLimit(t *testing.T) {
	for _, tc := range []struct {
		model    string
		settings map[string]string
		want     string
	}{
		{"claude-a", nil, "8192 <nil>"},
		{"claude-opus-4-6", nil, "128000 <nil>"},
		{"claude-haiku-4-5", nil, "33333 <nil>"},
		{"claude-haiku-4-5", map[string]string{"max_tokens": `900`, "temperature": `0`}, "900 0"},
	} {
		s := providertest.Serve(t, said("x", "end_turn"))
		load(t, s.URL, tc.settings).Answer(event.LLMRequest{Provider: "work", Model: tc.model})
		b := s.Requests()[0].Body
		if got := fmt.Sprintf("%v %v", b["max_tokens"], b["temperature"]); got != tc.want {
			t.Errorf("%s with %v: sent %s, want %s", tc.model, tc.settings, got, tc.want)
		}
	}
}

// MIS-3: why an answer ended.
func TestStopReasons(t *testing.T) {
	for reason, want := range map[string]event.StopReason{"end_turn": event.StopEnd, "stop_sequence": event.StopEnd, "max_tokens": event.StopLength, "model_context_window_exceeded": event.StopLength, "refusal": event.StopRefusal} {
		s := providertest.Serve(t, said("well", reason))
		if got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "work"}); got.StopReason != want || got.Text != "well" {
			t.Errorf("%s: got %+v, want %s", reason, got, want)
		}
	}
}

// An answer with a stop reason is whole, however the stream ends, and over with its last event.
func TestWholeAnswers(t *testing.T) {
	whole := said("all of it", "max_tokens").Raw
	before, last, _ := strings.Cut(whole, "event: message_stop")
	last = "event: message_stop" + last
	for name, step := range map[string]fakellm.Step{
		"no blank line at the end": {Raw: strings.TrimSuffix(whole, "\n")},
		"no line break at the end": {Raw: strings.TrimSuffix(whole, "\n\n")},
		"no last event":            {Raw: before},
		"open":                     {Raw: whole, Open: true},
		"cut":                      {Raw: whole, Cut: true},
		"cut before the last":      {Raw: before, Cut: true},
		"cut within the last":      {Raw: before + last[:len(last)-7], Cut: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := providertest.Serve(t, step)
			ev := load(t, s.URL, nil).Ask(event.LLMRequest{Provider: "work"})
			if got, ok := ev.Payload.(event.LLMResponse); !ok || got.Text != "all of it" || got.StopReason != event.StopLength || got.Usage.Output != 15 || len(s.Requests()) != 1 {
				t.Errorf("got %+v after %d requests, want the answer after one", ev.Payload, len(s.Requests()))
			}
		})
	}
}

// Y-151, Y-152, MIS-2: the errors of the service, before and within the stream.
func TestErrors(t *testing.T) {
	refused := func(status int, kind, message string) fakellm.Step {
		return fakellm.Step{Status: status, Body: fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q},"request_id":"req_1"}`, kind, message)}
	}
	within := func(kind, message string) fakellm.Step {
		return fakellm.Step{Raw: sse(start) + fmt.Sprintf("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":%q,\"message\":%q}}\n\n", kind, message)}
	}
	for name, c := range map[string]struct {
		step fakellm.Step
		want event.LLMError
	}{
		"key":        {refused(401, "authentication_error", "invalid x-api-key sk-ant-instance"), event.LLMError{Kind: event.LLMStatus, StatusCode: 401, Error: "invalid x-api-key ****"}},
		"too long":   {refused(400, "invalid_request_error", "prompt is too long: 213462 tokens > 200000 maximum"), event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "too long", Overflow: true, ContextWindow: 200000}},
		"rate":       {fakellm.Step{Status: 429, RetryAfter: "3600", Body: `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`}, event.LLMError{Kind: event.LLMStatus, StatusCode: 429, RetryAfterS: 3600, Error: "slow down"}},
		"no JSON":    {fakellm.Step{Status: 400, Body: "<html>no</html>"}, event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "400 Bad Request"}},
		"within":     {within("invalid_request_error", "odd"), event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "odd"}},
		"at the end": {fakellm.Step{Raw: strings.TrimSuffix(said("well", "end_turn").Raw, sse(end)) + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"odd\"}}\n\n"}, event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "odd"}},
		"strange":    {within("new_error", "strange"), event.LLMError{Kind: event.LLMOther, Error: "strange"}},
		"broken off": {fakellm.Step{Raw: sse(start, begin(0, `{"type":"text","text":""}`), delta(0, `{"type":"text_delta","text":"half of"}`))}, event.LLMError{Kind: event.LLMConnection, Error: "ended the answer early"}},
		"no events":  {fakellm.Step{Raw: sse(start) + "event: content_block_delta\ndata: {\"type\n\n"}, event.LLMError{Kind: event.LLMOther, Error: "string literal"}},
	} {
		t.Run(name, func(t *testing.T) {
			ev := load(t, providertest.Serve(t, c.step).URL, nil).Ask(event.LLMRequest{Provider: "work"})
			e, ok := ev.Payload.(event.LLMError)
			if !ok || e.Kind != c.want.Kind || e.StatusCode != c.want.StatusCode || e.RetryAfterS != c.want.RetryAfterS || e.Overflow != c.want.Overflow || e.ContextWindow != c.want.ContextWindow || !strings.Contains(e.Error, c.want.Error) {
				t.Errorf("got %+v, want %+v", ev.Payload, c.want)
			}
		})
	}
}

// Y-153, MIS-3: an overloaded service is asked again, whether it says so before the stream or in it.
func TestOverloaded(t *testing.T) {
	s := providertest.Serve(t,
		fakellm.Step{Status: 529, RetryAfter: "0.1", Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`},
		fakellm.Step{Raw: sse(start) + "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n"},
		said("at last", "end_turn"))
	if got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "work"}); got.Text != "at last" || len(s.Requests()) != 3 {
		t.Errorf("got %q after %d requests, want the answer after 3", got.Text, len(s.Requests()))
	}
}

// Y-149: the environment is for instances without an address of their own, and the SDK's own
// variables are for none.
func TestEnvironment(t *testing.T) {
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "sk-of-the-process")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-Odd: 1")
	s := providertest.Serve(t, said("x", "end_turn"))
	env := map[string]string{"ANTHROPIC_BASE_URL": s.URL, "ANTHROPIC_API_KEY": "sk-ant-env"}
	w := providertest.New(t, llm_anthropic.New(provider.Env{Getenv: func(k string) string { return env[k] }}), map[string]string{
		"providers.env-one.plugin": `"llm-anthropic"`, "providers.own.plugin": `"llm-anthropic"`, "providers.own.base_url": `"` + s.URL + `"`,
	})
	for _, c := range []struct{ id, want string }{{"env-one", "sk-ant-env"}, {"own", ""}} {
		w.Answer(event.LLMRequest{Provider: c.id})
		r := s.Requests()
		if h := r[len(r)-1].Header; h.Get("X-Api-Key") != c.want || h.Get("Authorization") != "" || h.Get("X-Odd") != "" || r[len(r)-1].Body["model"] != llm_anthropic.DefaultModel {
			t.Errorf("%s: sent %v, want the key %q", c.id, h, c.want)
		}
	}
}

// A service that redirects does not get the key elsewhere.
func TestRedirect(t *testing.T) {
	other := providertest.Serve(t, said("x", "end_turn"))
	s := providertest.Serve(t, fakellm.Step{Status: http.StatusTeapot})
	s.Config.Handler = http.RedirectHandler(other.URL+"/v1/messages", http.StatusTemporaryRedirect)
	ev := load(t, s.URL, nil).Ask(event.LLMRequest{Provider: "work"})
	if e, ok := ev.Payload.(event.LLMError); !ok || !strings.Contains(e.Error, "redirected") || len(other.Requests()) != 0 {
		t.Errorf("got %+v and %d requests elsewhere, want an error and none", ev.Payload, len(other.Requests()))
	}
}
