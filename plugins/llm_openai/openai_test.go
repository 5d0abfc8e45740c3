package llm_openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/plugins/llm_openai"
	"github.com/yaya-ai/yaya/plugins/provider"
	"github.com/yaya-ai/yaya/plugins/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the plugin, loaded with settings.
type world struct{ *providertest.World }

func newWorld(t *testing.T, settings, env map[string]string) *world {
	t.Helper()
	return &world{providertest.New(t, llm_openai.New(provider.Env{Getenv: func(k string) string { return env[k] }}), settings)}
}

func (w *world) text(r event.LLMRequest) string { return w.Answer(r).Text }

func instance(id, url string) map[string]string {
	return map[string]string{
		"providers." + id + ".plugin":   `"llm-openai"`,
		"providers." + id + ".base_url": `"` + url + `/v1/"`,
		"providers." + id + ".api_key":  `"sk-instance"`,
		"providers." + id + ".model":    `"m1"`,
	}
}

// Y-145, Y-146, Y-147, Y-150: a stream with text and parallel tool calls, what
// is sent for it, and what is counted.
func TestStream(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Text: "let me see", ToolCalls: []fakellm.Call{{Name: "ls", Args: `{"path":"/tmp"}`}, {Name: "cat", Args: `{"n":12345678901234567890}`}}})
	settings := instance("prod", s.URL)
	settings["providers.prod.thinking_effort"] = `"high"`
	w := newWorld(t, settings, nil)
	var deltas strings.Builder
	sub, err := bus.On(w.Bus, bus.SubscribeOptions{Name: "t"}, event.LLMCallDelta, func(_ context.Context, _ event.Event, d event.LLMDelta) error {
		deltas.WriteString(d.Content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ev := w.Ask(event.LLMRequest{Provider: "prod", Params: []byte(`{"temperature":0.5,"max_tokens":99}`), Tools: []event.ToolSchema{{Name: "ls", Description: "lists", Parameters: []byte(`{"type":"object"}`)}}, Messages: []event.Message{
		{Role: "system", Content: "be good"}, {Role: "user", Content: "hi"},
		{Role: "assistant", ToolCalls: []event.ToolCall{{ID: "c0", Name: "ls", Args: []byte(`{"a":1}`)}}}, {Role: "tool", ToolCallID: "c0", Content: "files"},
	}})
	res := ev.Payload.(event.LLMResponse)
	if res.Text != "let me see" || len(res.ToolCalls) != 2 || res.ToolCalls[0].Name != "ls" || string(res.ToolCalls[1].Args) != `{"n":12345678901234567890}` {
		t.Errorf(`got %+v; want "let me see" and 2 calls, with the arguments as they came`, res)
	}
	if u := res.Usage; u.InputOther != 60 || u.InputCacheRead != 40 || u.Output != 7 || u.Total != 107 {
		t.Errorf("usage %+v", u)
	}
	sub.Drain(t.Context())
	if deltas.String() != "let me see" {
		t.Errorf("streamed %q", deltas.String())
	}
	r := s.Requests()[0]
	if r.Path != "/v1/chat/completions" || r.Authorization != "Bearer sk-instance" || r.Body["model"] != "m1" || r.Body["reasoning_effort"] != "high" || r.Body["temperature"] != 0.5 || r.Body["max_tokens"] != 99.0 {
		t.Errorf("sent %+v", r)
	}
	raw, _ := json.Marshal(r.Body["messages"])
	if want := `[{"content":"be good","role":"system"},{"content":"hi","role":"user"},{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"a\":1}","name":"ls"},"id":"c0","type":"function"}]},{"content":"files","role":"tool","tool_call_id":"c0"}]`; string(raw) != want {
		t.Errorf("messages %s", raw)
	}
	raw, _ = json.Marshal(r.Body["tools"])
	if want := `[{"function":{"description":"lists","name":"ls","parameters":{"type":"object"}},"type":"function"}]`; string(raw) != want {
		t.Errorf("tools %s", raw)
	}
}

// MIS-3: the settings of an instance are sent, unless a request says otherwise, and a wrong one is named.
func TestParams(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Text: "x"})
	settings := instance("prod", s.URL)
	settings["plugin.llm_openai.temperature"], settings["providers.prod.temperature"], settings["providers.prod.max_tokens"] = `1.5`, `0`, `77`
	w := newWorld(t, settings, nil)
	for params, want := range map[string]string{
		``: `1e-45 77`, `{"temperature":0.5}`: `0.5 77`, `{"max_tokens":5}`: `1e-45 5`, `null`: `1e-45 77`,
	} {
		w.text(event.LLMRequest{Provider: "prod", Params: []byte(params)})
		r := s.Requests()
		b := r[len(r)-1].Body
		if got := fmt.Sprint(b["temperature"], " ", b["max_tokens"]); got != want {
			t.Errorf("with params %s, sent %s, want %s", params, got, want)
		}
	}
	for setting, v := range map[string]string{"temperature": `3`, "max_tokens": `1.5`} {
		settings := instance("prod", s.URL)
		settings["providers.prod."+setting] = v
		w := newWorld(t, settings, nil)
		if e, ok := w.Ask(event.LLMRequest{Provider: "prod"}).Payload.(event.LLMError); !ok || !strings.Contains(e.Error, "providers.prod."+setting+" must be") {
			t.Errorf("%s = %s: got %+v, want an error that names the setting", setting, v, e)
		}
	}
}

// MIS-3: an answer says which model has answered, and what it cost by the prices of its provider. The
// catalogue has none for another's address.
func TestCost(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Text: "x"})
	settings := instance("prod", s.URL)
	settings["providers.prod.input_price"], settings["providers.prod.output_price"], settings["providers.prod.cache_read_price"] = `10`, `1000`, `1`
	w := newWorld(t, settings, nil)
	if got := w.Answer(event.LLMRequest{Provider: "prod"}); got.Model != "m1" || got.CostUSD != (10*60+1*40+1000*7)/1e6 {
		t.Errorf("got the model %q and %v dollars, want m1 and %v", got.Model, got.CostUSD, (10*60+1*40+1000*7)/1e6)
	}
	w = newWorld(t, instance("prod", s.URL), nil)
	if got := w.Answer(event.LLMRequest{Provider: "prod", Model: "gpt-5"}); got.Model != "gpt-5" || got.CostUSD != 0 {
		t.Errorf("got the model %q and %v dollars, want gpt-5 and none", got.Model, got.CostUSD)
	}
}

// S-56: a picture goes as a picture.
func TestImages(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Text: "a dot"})
	w := newWorld(t, instance("prod", s.URL), nil)
	if got := w.text(event.LLMRequest{Provider: "prod", Messages: []event.Message{{Role: "user", Content: "look", Images: []event.Image{{MimeType: "image/png", Data: []byte("PNG")}}}}}); got != "a dot" {
		t.Errorf(`got %q, want "a dot"`, got)
	}
	raw, _ := json.Marshal(s.Requests()[0].Body["messages"])
	if want := `[{"content":[{"text":"look","type":"text"},{"image_url":{"url":"data:image/png;base64,UE5H"},"type":"image_url"}],"role":"user"}]`; string(raw) != want {
		t.Errorf("messages %s", raw)
	}
}

// MIS-5: pictures of tools follow the results, and a model that refuses them gets no more of them.
func TestPicturesOfTools(t *testing.T) {
	shown := []event.Message{
		{Role: "user", Content: "look"}, {Role: "assistant", ToolCalls: []event.ToolCall{{ID: "a", Name: "x", Args: []byte(`{}`)}, {ID: "b", Name: "x", Args: []byte(`{}`)}}},
		{Role: "tool", ToolCallID: "a", Content: "one", Images: []event.Image{{MimeType: "image/png", Data: []byte("PNG")}}}, {Role: "tool", ToolCallID: "b", Content: "two"},
	}
	s := providertest.Serve(t, fakellm.Step{Text: "a dot"})
	w := newWorld(t, instance("prod", s.URL), nil)
	w.text(event.LLMRequest{Provider: "prod", Messages: shown})
	raw, err := json.Marshal(s.Requests()[0].Body["messages"].([]any)[2:])
	if err != nil {
		t.Fatal(err)
	}
	if want := `[{"content":"one","role":"tool","tool_call_id":"a"},{"content":"two","role":"tool","tool_call_id":"b"},{"content":[{"text":"The pictures of these results:","type":"text"},{"image_url":{"url":"data:image/png;base64,UE5H"},"type":"image_url"}],"role":"user"}]`; string(raw) != want {
		t.Errorf("messages end with %s, want %s", raw, want)
	}

	s = providertest.Serve(t, fakellm.Step{Status: 400, Text: "this model does not support image input"}, fakellm.Step{Text: "I see nothing"})
	w = newWorld(t, instance("prod", s.URL), nil)
	for range 2 {
		if got := w.text(event.LLMRequest{Provider: "prod", Messages: shown}); got != "I see nothing" {
			t.Errorf("got %q, want the answer without pictures", got)
		}
	}
	if r := s.Requests(); len(r) != 3 || len(r[1].Body["messages"].([]any)) != 4 || len(r[2].Body["messages"].([]any)) != 4 {
		t.Errorf("got %d requests, want one with pictures and two without", len(r))
	}

	s = providertest.Serve(t, fakellm.Step{Status: 400, Text: "no such parameter"})
	w = newWorld(t, instance("prod", s.URL), nil)
	if e, ok := w.Ask(event.LLMRequest{Provider: "prod", Messages: shown}).Payload.(event.LLMError); !ok || e.Error != "no such parameter" || len(s.Requests()) != 2 {
		t.Errorf("got %+v after %d requests, want the first error after two", e, len(s.Requests()))
	}
}

// Y-150: off, the default, sends nothing about thinking.
func TestThinkingOff(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Text: "x"})
	w := newWorld(t, instance("prod", s.URL), nil)
	w.text(event.LLMRequest{Provider: "prod", Model: "gpt-5-x", Params: []byte(`{"max_tokens":5}`)})
	b := s.Requests()[0].Body
	if _, there := b["reasoning_effort"]; there || b["max_completion_tokens"] != 5.0 || b["max_tokens"] != nil {
		t.Errorf("sent %+v", b)
	}
}

// Y-149: address and key from the environment, and a key that stays where it
// belongs.
func TestEnvironment(t *testing.T) {
	s, other := providertest.Serve(t, fakellm.Step{Text: "env"}), providertest.Serve(t, fakellm.Step{Text: "other"})
	w := newWorld(t, map[string]string{
		"providers.env-one.plugin": `"llm-openai"`,
		"providers.own.plugin":     `"llm-openai"`,
		"providers.own.base_url":   `"` + other.URL + `"`,
	}, map[string]string{"OPENAI_BASE_URL": s.URL + "/v1", "OPENAI_API_KEY": "sk-env"})
	if got := w.text(event.LLMRequest{Provider: "env-one"}); got != "env" || s.Requests()[0].Authorization != "Bearer sk-env" || s.Requests()[0].Body["model"] != llm_openai.DefaultModel {
		t.Errorf(`got %q, %+v; want "env" from the model %s, with the key sk-env`, got, s.Requests(), llm_openai.DefaultModel)
	}
	w.Set("plugin.llm_openai.base_url", `"`+other.URL+`"`) // an address for all that have none: not the environment's either
	eventually.True(t, "it is known", func() bool { return w.text(event.LLMRequest{Provider: "env-one"}) == "other" })
	for _, r := range other.Requests() {
		if r.Authorization != "" {
			t.Errorf("the key went elsewhere: %+v", r)
		}
	}
	if got := w.text(event.LLMRequest{Provider: "own"}); got != "other" || other.Requests()[0].Authorization != "" {
		t.Errorf("the key went elsewhere: %+v", other.Requests())
	}
}

// Y-151, Y-152, Y-28: errors of the service, the connection and the SDK.
func TestErrors(t *testing.T) {
	gone := fakellm.New(fakellm.Step{})
	gone.Close()
	for name, c := range map[string]struct {
		step fakellm.Step
		url  string
		want event.LLMError
	}{
		"status":     {step: fakellm.Step{Status: 401, Text: "bad key sk-instance"}, want: event.LLMError{Kind: event.LLMStatus, StatusCode: 401, Error: "bad key ****"}},
		"no credit":  {step: fakellm.Step{Status: 429, Body: `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`}, want: event.LLMError{Kind: event.LLMStatus, StatusCode: 402, Error: "You exceeded your current quota"}},
		"too slow":   {step: fakellm.Step{Status: 429, Text: "quota", RetryAfter: "3600"}, want: event.LLMError{Kind: event.LLMStatus, StatusCode: 429, RetryAfterS: 3600, Error: "quota"}},
		"odd body":   {step: fakellm.Step{Status: 400, Body: "<html>no</html>"}, want: event.LLMError{Kind: event.LLMStatus, StatusCode: 400, Error: "400 Bad Request"}},
		"connection": {url: gone.URL, want: event.LLMError{Kind: event.LLMConnection, Error: "refused"}},
		"in stream":  {step: fakellm.Step{Raw: "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"x\"}}\n\n"}, want: event.LLMError{Kind: event.LLMOther, Error: "overloaded"}},
		"cut":        {step: fakellm.Step{Text: "half of it", Cut: true}, want: event.LLMError{Kind: event.LLMConnection, Error: "EOF"}},
		"broken off": {step: fakellm.Step{Raw: "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n"}, want: event.LLMError{Kind: event.LLMConnection, Error: "ended the answer early"}},
		"redirect":   {step: fakellm.Step{Status: http.StatusTeapot, Text: "t"}, want: event.LLMError{Kind: event.LLMStatus, StatusCode: 418, Error: "t"}},
	} {
		t.Run(name, func(t *testing.T) {
			url := c.url
			if url == "" {
				url = providertest.Serve(t, c.step).URL
			}
			w := newWorld(t, instance("prod", url), nil)
			ev := w.Ask(event.LLMRequest{Provider: "prod"})
			e, ok := ev.Payload.(event.LLMError)
			if !ok || e.Kind != c.want.Kind || e.StatusCode != c.want.StatusCode || e.RetryAfterS != c.want.RetryAfterS || !strings.Contains(e.Error, c.want.Error) {
				t.Errorf("got %+v, want %+v", ev.Payload, c.want)
			}
		})
	}
}

// Y-153: a 429 with Retry-After is tried again, then works.
func TestRetry(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Status: 429, RetryAfter: "0.2", Text: "slow"}, fakellm.Step{Status: 503, RetryAfter: "0.1"}, fakellm.Step{Text: "at last"})
	w := newWorld(t, instance("prod", s.URL), nil)
	if got := w.text(event.LLMRequest{Provider: "prod"}); got != "at last" || len(s.Requests()) != 3 {
		t.Errorf("got %q after %d requests", got, len(s.Requests()))
	}
}

// Y-74, Y-86, Y-87, Y-85: only what has changed is rebuilt; a call that runs
// keeps its client; what is not ours is left alone.
func TestHotReload(t *testing.T) {
	one, two := providertest.Serve(t, fakellm.Step{Text: "one of two", Delay: 150 * time.Millisecond}), providertest.Serve(t, fakellm.Step{Text: "two"})
	settings := instance("prod", one.URL)
	settings["providers.side.plugin"], settings["providers.side.base_url"] = `"llm-openai"`, `"`+two.URL+`"`
	settings["providers.echo.plugin"] = `"llm-echo"`
	w := newWorld(t, settings, nil)
	running := make(chan string)
	go func() { running <- w.text(event.LLMRequest{Provider: "prod"}) }()
	eventually.True(t, "it is known", func() bool { return len(one.Requests()) == 1 })
	w.Set("providers.prod.base_url", `"`+two.URL+`"`)
	w.Set("providers.prod.api_key", `"sk-new"`)
	w.Set("plugin.other.api_key", `"sk-foreign"`)
	eventually.True(t, "it is known", func() bool { return w.text(event.LLMRequest{Provider: "prod"}) == "two" })
	if got := <-running; got != "one of two" {
		t.Errorf("the call that ran got %q", got)
	}
	eventually.True(t, "it is known", func() bool {
		w.text(event.LLMRequest{Provider: "prod"})
		r := two.Requests()
		return r[len(r)-1].Authorization == "Bearer sk-new"
	})
	w.Set("providers.prod.plugin", `"llm-echo"`) // now somebody else's
	ev := w.Ask(event.LLMRequest{Provider: "prod"})
	if e, ok := ev.Payload.(event.LLMError); !ok || !strings.Contains(e.Error, "llm-echo, which is not loaded") {
		t.Errorf("got %+v; want an error: llm-echo is not loaded", ev.Payload)
	}
	if got := w.text(event.LLMRequest{Provider: "side"}); got != "two" {
		t.Errorf("a sibling got %q", got)
	}
	// plugin.llm_openai.* stands behind every instance (Y-74).
	w.Set("plugin.llm_openai.model", `"shared"`)
	eventually.True(t, "it is known", func() bool {
		w.text(event.LLMRequest{Provider: "side"})
		r := two.Requests()
		return r[len(r)-1].Body["model"] == "shared"
	})
}

// An interrupt closes the connection to the service.
func TestInterrupt(t *testing.T) {
	s := providertest.Serve(t, fakellm.Step{Text: strings.Repeat("word ", 1000), Delay: 20 * time.Millisecond})
	w := newWorld(t, instance("prod", s.URL), nil)
	done := make(chan event.Event)
	go func() { done <- w.Ask(event.LLMRequest{Provider: "prod"}) }()
	eventually.True(t, "it is known", func() bool { return len(s.Requests()) == 1 })
	if _, err := bus.Publish(w.Bus.Kernel(), event.UserInterrupt, "s1", event.Empty{}); err != nil {
		t.Fatal(err)
	}
	if e, ok := (<-done).Payload.(event.LLMError); !ok || e.Error != "interrupted" {
		t.Errorf(`got %+v, want the error "interrupted"`, e)
	}
}

// Services differ in how they number tool calls.
func TestToolCallNumbers(t *testing.T) {
	chunk := func(s string) string {
		return `data: {"choices":[{"index":0,"delta":{"tool_calls":[` + s + `]}}]}` + "\n\n"
	}
	end := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	for name, raw := range map[string]string{
		"no index":       chunk(`{"id":"a","function":{"name":"x","arguments":"{}"}}`) + chunk(`{"id":"b","function":{"name":"y","arguments":"{\"k\""}}`) + chunk(`{"function":{"arguments":":1}"}}`),
		"always zero":    chunk(`{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}`) + chunk(`{"index":0,"id":"b","function":{"name":"y","arguments":"{\"k\":1}"}}`),
		"id every time":  chunk(`{"index":0,"id":"a","function":{"name":"x","arguments":"{"}}`) + chunk(`{"index":1,"id":"b","function":{"name":"y","arguments":"{\"k\":"}}`) + chunk(`{"index":0,"id":"a","function":{"arguments":"}"}}`) + chunk(`{"index":1,"id":"b","function":{"arguments":"1}"}}`),
		"one id":         chunk(`{"index":0,"id":"a","function":{"name":"x","arguments":"{"}},{"index":0,"id":"a","function":{"arguments":"}"}}`) + chunk(`{"index":1,"id":"a","function":{"name":"y","arguments":"{\"k\""}}`) + chunk(`{"index":1,"function":{"arguments":":1}"}}`),
		"objects":        chunk(`{"index":0,"id":"a","function":{"name":"x","arguments":{}}}`) + chunk(`{"index":1,"id":"b","function":{"name":"y","arguments":{"k":1}}}`),
		"one object":     chunk(`{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}},{"index":1,"id":"b","function":{"name":"y","arguments":{"k":1}}}`),
		"index from one": chunk(`{"index":1,"id":"a","function":{"name":"x","arguments":"{}"}}`) + chunk(`{"index":2,"id":"b","function":{"name":"y","arguments":"{\"k\":1}"}}`),
	} {
		s := providertest.Serve(t, fakellm.Step{Raw: raw + end})
		w := newWorld(t, instance("prod", s.URL), nil)
		res, ok := w.Ask(event.LLMRequest{Provider: "prod"}).Payload.(event.LLMResponse)
		if !ok || len(res.ToolCalls) != 2 || res.ToolCalls[0].Name != "x" || string(res.ToolCalls[0].Args) != "{}" || res.ToolCalls[1].Name != "y" || string(res.ToolCalls[1].Args) != `{"k":1}` {
			t.Errorf(`%s: got %+v, want the calls x {} and y {"k":1}`, name, res)
		}
	}
}

// MIS-3: an answer of a model that refuses, or that a content filter ends, is known as such.
func TestRefusals(t *testing.T) {
	for name, raw := range map[string]string{
		"refusal":        `{"delta":{"refusal":"No."}},{"delta":{},"finish_reason":"stop"}`,
		"content filter": `{"delta":{"content":"No."}},{"delta":{},"finish_reason":"content_filter"}`,
	} {
		s := providertest.Serve(t, fakellm.Step{Raw: "data: {\"choices\":[" + strings.ReplaceAll(raw, "},{\"delta", "}]}\n\ndata: {\"choices\":[{\"delta") + "]}\n\ndata: [DONE]\n\n"})
		res, ok := newWorld(t, instance("prod", s.URL), nil).Ask(event.LLMRequest{Provider: "prod"}).Payload.(event.LLMResponse)
		if !ok || res.Text != "No." || res.StopReason != event.StopRefusal {
			t.Errorf("%s: got %+v, want a refusal with its words", name, res)
		}
	}
}

// Y-113, Y-114: without a key it is degraded, and no check goes anywhere.
func TestHealth(t *testing.T) {
	w := newWorld(t, map[string]string{"providers.prod.plugin": `"llm-openai"`}, nil)
	if d := w.Registry.Doctor(t.Context(), time.Second)[0]; d.Status != plugin.Degraded || !strings.Contains(d.Summary, "providers.prod.api_key") {
		t.Errorf("got %+v; want it degraded, with the name of the missing setting", d)
	}
	s := providertest.Serve(t, fakellm.Step{})
	w = newWorld(t, instance("prod", s.URL), nil)
	if d := w.Registry.Doctor(t.Context(), time.Second)[0]; d.Status != plugin.Healthy || len(s.Requests()) != 0 {
		t.Errorf("got %+v after %d requests", d, len(s.Requests()))
	}
	// REL-9, OP-55: how its last call ended is known, without another one.
	s = providertest.Serve(t, fakellm.Step{Status: 401}, fakellm.Step{Text: "fine"})
	w = newWorld(t, instance("prod", s.URL), nil)
	for _, tc := range []struct {
		want plugin.Health
		says string
	}{{plugin.Degraded, "failed: "}, {plugin.Healthy, "succeeded"}} {
		w.Ask(event.LLMRequest{Provider: "prod"})
		requests := len(s.Requests())
		d := w.Registry.Doctor(t.Context(), time.Second)[0]
		if d.Status != tc.want || len(d.Details) != 1 || !strings.Contains(d.Details[0].Message, "its last call") || !strings.Contains(d.Details[0].Message, tc.says) {
			t.Errorf("got %+v, want %s with %q", d, tc.want, tc.says)
		}
		if n := len(s.Requests()); n != requests {
			t.Errorf("the check made %d requests, want none", n-requests)
		}
	}
}
