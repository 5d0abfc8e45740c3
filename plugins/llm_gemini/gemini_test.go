package llm_gemini_test

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/fakellm"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/models"
	"github.com/yaya-ai/yaya/plugins/llm_gemini"
	"github.com/yaya-ai/yaya/plugins/provider"
	"github.com/yaya-ai/yaya/plugins/provider/providertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func load(t *testing.T, url string, fields map[string]string) *providertest.World {
	t.Helper()
	settings := map[string]string{"providers.work.plugin": `"llm-gemini"`, "providers.work.base_url": `"` + url + `/v1beta/"`, "providers.work.model": `"gemini-3.5-flash"`, "providers.work.api_key": `"AIza-instance"`}
	for k, v := range fields {
		settings["providers.work."+k] = v
	}
	return providertest.New(t, llm_gemini.New(provider.Env{Getenv: func(string) string { return "" }}), settings)
}

// chunks are the events of a stream, which end as the service ends them.
func chunks(data ...string) fakellm.Step {
	var b strings.Builder
	for _, d := range data {
		fmt.Fprintf(&b, "data: %s\r\n\r\n", d)
	}
	return fakellm.Step{Raw: b.String()}
}

// said is a chunk with parts, and finish, if it is the last.
func said(finish string, parts ...string) string {
	if finish != "" {
		finish = `,"finishReason":"` + finish + `"`
	}
	content := ""
	if len(parts) > 0 {
		content = `"content":{"parts":[` + strings.Join(parts, ",") + `],"role":"model"},`
	}
	return `{"candidates":[{` + content + `"index":0` + finish + `}],"usageMetadata":{"promptTokenCount":1037,"cachedContentTokenCount":1000,"candidatesTokenCount":25,"thoughtsTokenCount":64,"totalTokenCount":1126,"promptTokensDetails":[{"modality":"TEXT","tokenCount":1037}]},"modelVersion":"gemini-3.5-flash","responseId":"r1"}`
}

func text(s string) string { return fmt.Sprintf(`{"text":%q}`, s) }

// failure is an error in the service's shape.
func failure(code int, status, message, details string) string {
	return fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q,"details":[%s]}}`, code, message, status, details)
}

const retryInfo = `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"m","quotaId":"PerDay"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"%s"}`

// MIS-3: thoughts, text, parallel calls with and without ids, and signatures of each.
func TestStream(t *testing.T) {
	s := providertest.Serve(t, chunks(
		said("", `{"text":"I should ","thought":true}`), said("", `{"text":"look.","thought":true}`),
		said("", text("Let me ")), said("", text("see."), `{"text":"","thoughtSignature":"dGV4dA=="}`),
		said("", `{"functionCall":{"id":"fc_1","name":"ls","args":{"path":"a b","n":5,"deep":{"x":[1.5,null]}}},"thoughtSignature":"Y2FsbA=="}`, `{"functionCall":{"name":"now"}}`, `{"executableCode":{"code":"1"}}`),
		said("STOP", text("")), `{"usageMetadata":{"promptTokenCount":1040,"cachedContentTokenCount":1000,"candidatesTokenCount":26,"thoughtsTokenCount":64,"toolUsePromptTokenCount":3}}`))
	got := load(t, s.URL, nil).Answer(event.LLMRequest{Provider: "work", Tools: []event.ToolSchema{{Name: "ls"}}})
	if got.Text != "Let me see." || got.StopReason != event.StopToolCalls || len(got.ToolCalls) != 2 || got.ToolCalls[0].ID != "fc_1" || string(got.ToolCalls[0].Args) != `{"deep":{"x":[1.5,null]},"n":5,"path":"a b"}` || got.ToolCalls[1].Name != "now" || got.ToolCalls[1].ID == "" || string(got.ToolCalls[1].Args) != `{}` {
		t.Errorf("got %+v, want the text and two calls", got)
	}
	if want := `[{"text":"I should look."},{"data":{"signature":"dGV4dA==","of":"text"},"by":"work/gemini-3.5-flash"},{"data":{"signature":"Y2FsbA==","of":"call"},"by":"work/gemini-3.5-flash"}]`; providertest.JSON(t, got.Reasoning) != want {
		t.Errorf("got the reasoning %s, want %s", providertest.JSON(t, got.Reasoning), want)
	}
	if u := got.Usage; u.InputOther != 43 || u.InputCacheRead != 1000 || u.Output != 90 {
		t.Errorf("got the usage %+v, want 43 and 1000 in, 90 out", u)
	}
}

// MIS-3, MIS-5: a request has signatures with the parts that they came with, pictures in results, and
// names that the service takes.
func TestRequest(t *testing.T) {
	s := providertest.Serve(t, chunks(said("STOP", `{"functionCall":{"name":"__9p__cat","args":{"f":1}}}`)))
	w := load(t, s.URL, map[string]string{"thinking_effort": `"high"`, "max_tokens": `4000`, "temperature": `0`})
	got := w.Answer(event.LLMRequest{Provider: "work", Tools: []event.ToolSchema{{Name: "ls", Description: "lists", Parameters: []byte(`{"type":"object","additionalProperties":false}`)}, {Name: "9p__cat"}, {Name: "_9p__cat"}}, Messages: []event.Message{
		{Role: "system", Content: "be good"}, {Role: "user", Content: "look", Images: []event.Image{{MimeType: "image/png", Data: []byte("PNG")}}},
		{Role: "assistant", Content: "so:", ToolCalls: []event.ToolCall{{ID: "c0", Name: "ls", Args: []byte(`{"n":1}`)}, {ID: "functions.ls:0", Name: "a b", Args: []byte(`"broken {"`)}}, Reasoning: []event.Reasoning{
			{Text: "shown"}, {Data: []byte(`{"signature":"dGV4dA==","of":"text"}`), By: "work/gemini-3.5-flash"}, {Data: []byte(`{"signature":"Y2FsbA==","of":"call"}`), By: "work/gemini-3.5-flash"},
		}},
		{Role: "tool", ToolCallID: "c0", Content: "files", Images: []event.Image{{MimeType: "image/jpeg", Data: []byte("JPG")}}}, {Role: "tool", ToolCallID: "functions.ls:0", Content: "refused"},
		{Role: "user", Content: "go on"}, {Role: "user", Content: " "},
		{Role: "assistant", ToolCalls: []event.ToolCall{{ID: "c9", Name: "9p__cat", Args: []byte(`{}`)}}, Reasoning: []event.Reasoning{{Text: "another's", Data: []byte(`{"signature":"eA==","of":"call"}`), By: "work/claude"}}},
		{Role: "tool", ToolCallID: "c9", Content: "meow"},
	}})
	if len(got.ToolCalls) != 1 || got.ToolCalls[0].Name != "9p__cat" {
		t.Errorf("got the calls %+v, want one of 9p__cat", got.ToolCalls)
	}
	r := s.Requests()[0]
	if r.Path != "/v1beta/models/gemini-3.5-flash:streamGenerateContent" || r.Header.Get("X-Goog-Api-Key") != "AIza-instance" || r.Authorization != "" {
		t.Errorf("got %s with %q, want the stream of the model with the key", r.Path, r.Header.Get("X-Goog-Api-Key"))
	}
	for member, want := range map[string]string{
		"systemInstruction": `{"parts":[{"text":"be good"}],"role":"user"}`,
		"generationConfig":  `{"maxOutputTokens":4000,"temperature":0,"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"HIGH"}}`,
		"tools":             `[{"functionDeclarations":[{"description":"lists","name":"ls","parametersJsonSchema":{"additionalProperties":false,"type":"object"}},{"name":"__9p__cat"},{"name":"_9p__cat"}]}]`,
		"contents": `[{"parts":[{"inlineData":{"data":"UE5H","mimeType":"image/png"}},{"text":"look"}],"role":"user"},` +
			`{"parts":[{"text":"so:","thoughtSignature":"dGV4dA=="},{"functionCall":{"args":{"n":1},"id":"c0","name":"ls"},"thoughtSignature":"Y2FsbA=="},{"functionCall":{"args":{"arguments":"broken {"},"id":"call_1","name":"invalid_tool"}}],"role":"model"},` +
			`{"parts":[{"functionResponse":{"id":"c0","name":"ls","parts":[{"inlineData":{"data":"SlBH","mimeType":"image/jpeg"}}],"response":{"output":"files"}}},{"functionResponse":{"id":"call_1","name":"invalid_tool","response":{"output":"refused"}}}],"role":"user"},` +
			`{"parts":[{"text":"go on"}],"role":"user"},` +
			`{"parts":[{"functionCall":{"id":"c9","name":"__9p__cat"},"thoughtSignature":"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="}],"role":"model"},` +
			`{"parts":[{"functionResponse":{"id":"c9","name":"__9p__cat","response":{"output":"meow"}}}],"role":"user"}]`,
	} {
		if got := providertest.JSON(t, r.Body[member]); got != want {
			t.Errorf("%s is\n%s, want\n%s", member, got, want)
		}
	}
}

// MIS-3, MIS-5: models of the second generation get no signature that they did not give, and pictures
// of tools after the results. A conversation begins with the user.
func TestSecondGeneration(t *testing.T) {
	s := providertest.Serve(t, chunks(said("STOP", text("fine"))))
	load(t, s.URL, map[string]string{"thinking_effort": `"0"`, "api_key": `""`}).Answer(event.LLMRequest{Provider: "work", Model: "gemini-2.5-pro", Messages: []event.Message{
		{Role: "assistant", ToolCalls: []event.ToolCall{{ID: "a", Name: "see", Args: []byte(`{}`)}, {ID: "b", Name: "see", Args: []byte(`{}`)}}},
		{Role: "tool", ToolCallID: "a", Images: []event.Image{{MimeType: "image/png", Data: []byte("PNG")}}}, {Role: "tool", ToolCallID: "b", Content: "none"},
	}})
	r := s.Requests()[0]
	want := `[{"parts":[{"text":"(The beginning of the conversation is not shown.)"}],"role":"user"},` +
		`{"parts":[{"functionCall":{"id":"a","name":"see"}},{"functionCall":{"id":"b","name":"see"}}],"role":"model"},` +
		`{"parts":[{"functionResponse":{"id":"a","name":"see","response":{"output":""}}},{"functionResponse":{"id":"b","name":"see","response":{"output":"none"}}}],"role":"user"},` +
		`{"parts":[{"text":"The pictures of these results:"},{"inlineData":{"data":"UE5H","mimeType":"image/png"}}],"role":"user"}]`
	if got := providertest.JSON(t, r.Body["contents"]); got != want {
		t.Errorf("contents are\n%s, want\n%s", got, want)
	}
	if got := providertest.JSON(t, r.Body["generationConfig"]); got != `{"thinkingConfig":{"thinkingBudget":0}}` || r.Body["tools"] != nil {
		t.Errorf("got the settings %s and the tools %v, want a budget of 0 and none", got, r.Body["tools"])
	}
}

// The list of models that comes with yaya has the default, at the service's own address.
func TestDefaultModel(t *testing.T) {
	var c *models.Catalogue
	if m, ok := c.Find(models.ServiceAt("https://generativelanguage.googleapis.com"), llm_gemini.DefaultModel); !ok || m.Service != "google" || !m.Tools || m.Prices == nil {
		t.Errorf("Find(%q) = %+v, %v, want a model of Google with tools and prices", llm_gemini.DefaultModel, m, ok)
	}
}

// Y-149: a key of the environment, which the SDK reads by itself, never goes to an instance's own
// address.
func TestEnvironment(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "AIza-environment")
	t.Setenv("GOOGLE_CLOUD_PROJECT", "p")
	s := providertest.Serve(t, chunks(said("STOP", text("fine"))))
	load(t, s.URL, map[string]string{"api_key": `""`}).Answer(event.LLMRequest{Provider: "work"})
	if got := s.Requests()[0].Header.Get("X-Goog-Api-Key"); strings.Contains(got, "AIza") {
		t.Errorf("sent the key %q to another's address, want none", got)
	}
	w := providertest.New(t, llm_gemini.New(provider.Env{Getenv: func(k string) string {
		return map[string]string{"GOOGLE_GEMINI_BASE_URL": s.URL, "GEMINI_API_KEY": "AIza-own"}[k]
	}}), map[string]string{"providers.gem.plugin": `"llm-gemini"`})
	w.Answer(event.LLMRequest{Provider: "gem"})
	if r := s.Requests()[1]; r.Header.Get("X-Goog-Api-Key") != "AIza-own" || r.Path != "/v1beta/models/"+llm_gemini.DefaultModel+":streamGenerateContent" {
		t.Errorf("got %s with %q, want the default model with the key of the environment", r.Path, r.Header.Get("X-Goog-Api-Key"))
	}
}
