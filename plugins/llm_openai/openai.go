// Package llm_openai connects to any service with OpenAI's chat completions API, through
// sashabaranov/go-openai.
//
// An instance has the fields base_url, api_key, model and thinking_effort, and context_window,
// which the loop reads. Missing fields come
// from plugin.llm_openai.*; an instance without its own base_url also uses OPENAI_API_KEY and
// OPENAI_BASE_URL from the environment. A key from the environment is never sent to an
// instance's own address.
package llm_openai //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/llmhttp"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// Name is the plugin's name, and that of its first instance.
const Name = "llm-openai"

// DefaultModel is the model of an instance that names none.
const DefaultModel = "gpt-4o-mini"

// Plugin is the provider.
type Plugin struct {
	getenv  func(string) string
	http    *llmhttp.Client
	runner  *llm.Runner
	clients *plugin.Instances[*client]
}

// New returns the plugin. getenv looks an environment variable up.
func New(getenv func(string) string) *Plugin {
	p := &Plugin{getenv: getenv, http: llmhttp.New()}
	p.clients = plugin.NewInstances(Name, p.build)
	return p
}

// Manifest implements [plugin.Plugin].
func (*Plugin) Manifest() plugin.Manifest {
	return plugin.Manifest{
		Name: Name, Version: "0.1.0", Category: plugin.LLMProvider, ProviderID: "openai",
		ConfigSchema: json.RawMessage(`{"type":"object","properties":{"base_url":{"type":"string"},"api_key":{"type":"string"},"model":{"type":"string"},"thinking_effort":{"type":"string","default":"off"},"context_window":{"type":"integer"}}}`),
	}
}

// Subscriptions implements [plugin.Plugin].
func (*Plugin) Subscriptions() []string {
	return []string{event.LLMCallRequest.Name(), event.ConfigWasUpdated.Name(), event.UserInterrupt.Name()}
}

// OnLoad implements [plugin.Plugin].
func (p *Plugin) OnLoad(_ context.Context, c plugin.Context) error {
	p.runner = llm.NewRunner(llm.RunnerConfig{
		Emit:    c.Emit,
		Secrets: c.Secrets(),
		Report:  func(err error) { c.Log().Error().Err(err).Msg("cannot publish an answer") },
	})
	p.clients.Load(c)
	return nil
}

// client is one instance. It is immutable: running calls keep the one that they started with.
type client struct {
	id, model, effort string
	hasKey            bool
	missing           error // why its key cannot be read
	api               *openai.Client
}

func (p *Plugin) build(c plugin.Context, i config.Instance) *client {
	own := func(field string) string { return i.Text(field) }
	shared := func(field string) string {
		var s string
		if v := c.Config(field); v != nil && json.Unmarshal(v, &s) != nil {
			return ""
		}
		return s
	}
	base, key := own("base_url"), own("api_key")
	if base == "" {
		base = shared("base_url")
		key = cmp.Or(key, shared("api_key"))
		if base == "" {
			base = p.getenv("OPENAI_BASE_URL")
			key = cmp.Or(key, p.getenv("OPENAI_API_KEY"))
		}
	}
	if !masked.Common(key) {
		c.Secrets().Declare(key)
	}
	cfg := openai.DefaultConfig(key)
	cfg.HTTPClient = p.http
	if base != "" {
		cfg.BaseURL = strings.TrimSuffix(base, "/")
	}
	return &client{
		id: i.ID, missing: i.Missing, hasKey: key != "" || base != "", api: openai.NewClientWithConfig(cfg),
		model:  cmp.Or(own("model"), shared("model"), DefaultModel),
		effort: cmp.Or(own("thinking_effort"), shared("thinking_effort"), "off"),
	}
}

// OnEvent implements [plugin.Plugin].
func (p *Plugin) OnEvent(_ context.Context, ev event.Event, c plugin.Context) error {
	switch e := ev.Payload.(type) {
	case event.ConfigUpdated:
		p.clients.Changed(c, e.Key)
	case event.Empty:
		p.runner.Interrupt(ev.SessionID)
	case event.LLMRequest:
		if cl, ok := p.clients.Get(c, e.Provider); ok { // otherwise a sibling's
			p.runner.Start(ev, cl)
		}
	}
	return nil
}

// OnUnload implements [plugin.Plugin].
func (p *Plugin) OnUnload(ctx context.Context, _ plugin.Context) error {
	if p.runner == nil {
		return nil
	}
	err := p.runner.Close(ctx)
	p.http.Close()
	return err
}

// HealthCheck implements [plugin.HealthChecker]. It makes no requests.
func (p *Plugin) HealthCheck(_ context.Context, c plugin.Context) plugin.HealthReport {
	all := p.clients.All()
	h := plugin.HealthReport{Status: plugin.Healthy, Summary: worded.Count(len(all), "instance", "instances")}
	for id, cl := range all {
		check := plugin.HealthCheck{Name: id, Status: plugin.Healthy}
		if cl.missing != nil {
			check.Status, check.Message = plugin.Degraded, cl.missing.Error()
			h.Status, h.Summary = plugin.Degraded, check.Message
		} else if !cl.hasKey {
			check.Status, check.Message = plugin.Degraded, "no api_key; set providers."+id+".api_key or OPENAI_API_KEY"
			h.Status, h.Summary = plugin.Degraded, check.Message
		} else if last, ok := p.runner.Last(id); ok && last.Err != nil {
			check.Status, check.Message = plugin.Degraded, fmt.Sprintf("its last call, at %s, failed: %s", last.At.UTC().Format(time.RFC3339), cut.Text(c.Secrets().ConcealString(last.Err.Error()), 300))
			h.Status, h.Summary = plugin.Degraded, id+": "+check.Message
		} else if ok {
			check.Message = "its last call succeeded, at " + last.At.UTC().Format(time.RFC3339)
		}
		h.Details = append(h.Details, check)
	}
	return h
}

// Name implements [llm.Provider].
func (c *client) Name() string { return c.id }

// ModelName implements [llm.Provider].
func (c *client) ModelName() string { return c.model }

// ThinkingEffort implements [llm.Provider].
func (c *client) ThinkingEffort() string { return c.effort }

// Generate implements [llm.Provider]. Params are members of the request, such as
// temperature and max_tokens.
func (c *client) Generate(ctx context.Context, req llm.Request) (llm.Stream, error) {
	if c.missing != nil { // without the key, the service would refuse without a clear reason
		return nil, c.missing
	}
	var r openai.ChatCompletionRequest
	if len(req.Params) > 0 {
		if err := json.Unmarshal(req.Params, &r); err != nil {
			return nil, fmt.Errorf("params: %w", err)
		}
	}
	r.Model = cmp.Or(req.Model, c.model)
	r.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	if c.effort != "off" {
		r.ReasoningEffort = c.effort // unchanged: the service knows its own levels
	}
	if reasons(r.Model) && r.MaxTokens > 0 { //nolint:staticcheck // other services still use it
		r.MaxCompletionTokens, r.MaxTokens = r.MaxTokens, 0 //nolint:staticcheck // see above
	}
	r.Messages = messages(req)
	r.Tools = nil
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: t.Parameters}})
	}
	s, err := c.api.CreateChatCompletionStream(ctx, r)
	if err != nil {
		return nil, translate(err)
	}
	return &stream{s: s, index: -1}, nil
}

// reasons reports whether a model accepts only max_completion_tokens.
func reasons(model string) bool {
	for _, p := range []string{"o1", "o3", "o4", "gpt-5"} {
		if strings.HasPrefix(model, p) {
			return true
		}
	}
	return false
}

func messages(req llm.Request) []openai.ChatCompletionMessage {
	var out []openai.ChatCompletionMessage
	if req.System != "" {
		out = append(out, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: req.System})
	}
	for _, m := range req.History {
		om := openai.ChatCompletionMessage{Role: m.Role, Content: m.Content, ToolCallID: m.ToolCallID}
		if len(m.Images) > 0 { // content is either a text or parts
			om.Content, om.MultiContent = "", []openai.ChatMessagePart{{Type: openai.ChatMessagePartTypeText, Text: m.Content}}
			for _, i := range m.Images {
				url := "data:" + i.MimeType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
				om.MultiContent = append(om.MultiContent, openai.ChatMessagePart{Type: openai.ChatMessagePartTypeImageURL, ImageURL: &openai.ChatMessageImageURL{URL: url}})
			}
		}
		for _, tc := range m.ToolCalls {
			om.ToolCalls = append(om.ToolCalls, openai.ToolCall{ID: tc.ID, Type: openai.ToolTypeFunction, Function: openai.FunctionCall{Name: tc.Name, Arguments: string(tc.Args)}})
		}
		out = append(out, om)
	}
	return out
}

// translate converts the SDK's errors to those of the contract.
func translate(err error) error {
	if e, ok := errors.AsType[*llmhttp.StatusError](err); ok {
		return llm.Explain(&llm.Error{Kind: event.LLMStatus, StatusCode: e.StatusCode, RetryAfter: e.RetryAfter, Err: errors.New(e.Message)}, e.Body)
	}
	if e, ok := errors.AsType[*openai.APIError](err); ok {
		if e.HTTPStatusCode >= 400 {
			return llm.Explain(&llm.Error{Kind: event.LLMStatus, StatusCode: e.HTTPStatusCode, Err: errors.New(e.Message)}, e.Type, fmt.Sprint(e.Code))
		}
		// Some services report errors within a stream, with status 200.
		return llm.Explain(&llm.Error{Kind: event.LLMOther, Err: errors.New(cmp.Or(e.Message, "the service reports an error without a message"))}, e.Type, fmt.Sprint(e.Code))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, openai.ErrTooManyEmptyStreamMessages) {
		return &llm.Error{Kind: event.LLMConnection, Err: err}
	}
	return llm.AsError(err)
}

// stops are the reasons that have a name in the contract.
var stops = map[openai.FinishReason]event.StopReason{
	openai.FinishReasonStop: event.StopEnd, openai.FinishReasonToolCalls: event.StopToolCalls, openai.FinishReasonFunctionCall: event.StopToolCalls,
	openai.FinishReasonLength: event.StopLength, openai.FinishReasonContentFilter: event.StopRefusal,
}

// stream is an answer in progress.
type stream struct {
	s     *openai.ChatCompletionStream
	usage event.Usage
	ended bool             // a finish reason has arrived
	stop  event.StopReason // that reason, until it is passed on
	index int              // of the tool call in progress
	calls map[string]int   // indexes by id
	parts []llm.Part
}

// Next implements [llm.Stream].
func (s *stream) Next() (llm.Part, error) {
	for len(s.parts) == 0 {
		r, err := s.s.Recv()
		if errors.Is(err, io.EOF) {
			if !s.ended {
				return llm.Part{}, &llm.Error{Kind: event.LLMConnection, Err: errors.New("the answer broke off")}
			}
			if stop := s.stop; stop != "" {
				s.stop = ""
				return llm.Part{Stop: stop}, nil
			}
			return llm.Part{}, io.EOF
		}
		if err != nil {
			return llm.Part{}, translate(err)
		}
		if u := r.Usage; u != nil {
			cached := 0
			if u.PromptTokensDetails != nil {
				cached = u.PromptTokensDetails.CachedTokens
			}
			s.usage = llm.NewUsage(u.PromptTokens-cached, cached, 0, u.CompletionTokens)
		}
		for _, ch := range r.Choices {
			if ch.Index != 0 {
				continue
			}
			if ch.FinishReason != "" {
				s.ended = true
				s.stop = stops[ch.FinishReason]
			}
			if text := ch.Delta.Content + ch.Delta.Refusal; text != "" {
				s.parts = append(s.parts, llm.Part{Content: text})
			}
			for _, tc := range ch.Delta.ToolCalls {
				s.parts = append(s.parts, llm.Part{ToolCall: &llm.ToolCallPart{Index: s.count(tc), ID: tc.ID, Name: tc.Function.Name, Args: tc.Function.Arguments}})
			}
		}
	}
	part := s.parts[0]
	s.parts = s.parts[1:]
	return part, nil
}

// count returns the index of the call that a fragment belongs to. Some services omit it, or
// send each whole call with index 0: a new id means a new call.
func (s *stream) count(tc openai.ToolCall) int {
	if i, known := s.calls[tc.ID]; known && tc.ID != "" {
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
func (s *stream) Close() error { return s.s.Close() }
