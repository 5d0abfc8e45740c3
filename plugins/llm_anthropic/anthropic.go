// Package llm_anthropic connects to Anthropic's Messages API, and to services that copy it,
// through anthropics/anthropic-sdk-go.
//
// The API demands max_tokens, the output limit of one answer. thinking_effort is "off", a level of the service
// such as "low" or "high" (adaptive thinking), or a number: a budget in tokens, for models that
// do not know the levels.
package llm_anthropic //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/kernel/models"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// Name is the plugin's name, and that of its first instance.
const Name = "llm-anthropic"

// DefaultModel is the model of an instance that names none.
const DefaultModel = "claude-sonnet-4-5"

// DefaultMaxTokens is the output limit of an answer of a model that nobody knows. All models of the
// API allow it; what is longer is asked for in parts.
const DefaultMaxTokens = 8192

// New returns the plugin.
func New(env provider.Env) *provider.Plugin {
	return provider.New(provider.Service{
		Name: Name, ID: "anthropic", Model: DefaultModel, AddressVar: "ANTHROPIC_BASE_URL", KeyVars: []string{"ANTHROPIC_API_KEY"}, Address: "https://api.anthropic.com",
		Client: func(s provider.Settings) llm.Provider {
			opts := []option.RequestOption{
				option.WithoutEnvironmentDefaults(), option.WithHTTPClient(s.HTTP),
				option.WithMaxRetries(0), // the runner tries again
				option.WithAPIKey(s.Key),
			}
			if s.BaseURL != "" {
				// The SDK adds the version, which addresses of other services end with.
				opts = append(opts, option.WithBaseURL(strings.TrimSuffix(s.BaseURL, "/v1")))
			}
			c := anthropic.NewClient(opts...)
			return &client{id: s.ID, model: s.Model, effort: s.Effort, facts: s.Facts, api: &c.Messages}
		},
	}, env)
}

// client is one instance.
type client struct {
	id, model, effort string
	facts             func(model string) models.Facts
	api               *anthropic.MessageService
}

// Name implements [llm.Provider].
func (c *client) Name() string { return c.id }

// ModelName implements [llm.Provider].
func (c *client) ModelName() string { return c.model }

// ThinkingEffort implements [llm.Provider].
func (c *client) ThinkingEffort() string { return c.effort }

// Generate implements [llm.Provider]. Of the params, it reads max_tokens, temperature and
// stop_sequences; it ignores others, which may be meant for other services.
func (c *client) Generate(ctx context.Context, req llm.Request) (llm.Stream, error) {
	p, err := c.params(req)
	if err != nil {
		return nil, err
	}
	s := c.api.NewStreaming(ctx, p)
	if err := s.Err(); err != nil {
		return nil, errors.Join(translate(err), s.Close())
	}
	return &stream{s: s, by: c.id + "/" + string(p.Model)}, nil
}

func (c *client) params(req llm.Request) (anthropic.MessageNewParams, error) {
	own, err := provider.ParamsOf(req)
	if err != nil {
		return anthropic.MessageNewParams{}, err
	}
	p := anthropic.MessageNewParams{Model: anthropic.Model(cmp.Or(req.Model, c.model)), MaxTokens: cmp.Or(own.MaxTokens, c.most(cmp.Or(req.Model, c.model))), StopSequences: own.StopSequences}
	switch budget, err := strconv.ParseInt(c.effort, 10, 64); {
	case c.effort == "off":
		if own.Temperature != nil { // the API takes none beside thinking
			p.Temperature = param.NewOpt(*own.Temperature)
		}
	case err == nil:
		p.Thinking = anthropic.ThinkingConfigParamOfEnabled(budget)
		p.MaxTokens = max(p.MaxTokens, budget+1024) // the budget is part of the output
	default:
		p.Thinking.OfAdaptive = &anthropic.ThinkingConfigAdaptiveParam{Display: anthropic.ThinkingConfigAdaptiveDisplaySummarized}
		p.OutputConfig.Effort = anthropic.OutputConfigEffort(c.effort) // unchanged: the service knows its own levels
	}
	for _, t := range req.Tools {
		tool := anthropic.ToolParam{Name: t.Name, InputSchema: schema(t.Parameters)}
		if t.Description != "" {
			tool.Description = param.NewOpt(t.Description)
		}
		p.Tools = append(p.Tools, anthropic.ToolUnionParam{OfTool: &tool})
	}
	if req.System != "" {
		p.System = []anthropic.TextBlockParam{{Text: req.System}}
	}
	p.Messages = messages(req.History, c.id+"/"+string(p.Model))
	remember(&p)
	return p, nil
}

// most returns the output limit of an answer that nobody has set: that of the model, but little
// enough for a request of 80 % of the window, which the API adds to it.
func (c *client) most(model string) int64 {
	f := c.facts(model)
	if !f.Known || f.Output == 0 {
		return DefaultMaxTokens
	}
	return int64(min(f.Output, f.Window/6))
}

// schema returns the schema of a tool's arguments in the SDK's form, with all of its members.
func schema(raw json.RawMessage) anthropic.ToolInputSchemaParam {
	var members map[string]json.RawMessage // the SDK would write other numbers than it read
	if json.Unmarshal(raw, &members) != nil || len(members) == 0 {
		members = map[string]json.RawMessage{"properties": json.RawMessage(`{}`)}
	}
	out := anthropic.ToolInputSchemaParam{ExtraFields: map[string]any{}}
	for name, value := range members {
		if name != "type" { // the SDK's, always object
			out.ExtraFields[name] = value
		}
	}
	return out
}

// remember sets the breakpoints of the service's cache: after the tools, after the system prompt,
// and at the end. The next request begins with the same bytes.
func remember(p *anthropic.MessageNewParams) {
	mark := anthropic.NewCacheControlEphemeralParam()
	if n := len(p.Tools); n > 0 {
		p.Tools[n-1].OfTool.CacheControl = mark
	}
	if n := len(p.System); n > 0 {
		p.System[n-1].CacheControl = mark
	}
	if n := len(p.Messages); n > 0 {
		if blocks := p.Messages[n-1].Content; len(blocks) > 0 {
			if c := blocks[len(blocks)-1].GetCacheControl(); c != nil {
				*c = mark
			}
		}
	}
}

// translate converts the SDK's errors to those of the contract.
func translate(err error) error {
	if e, ok := errors.AsType[*anthropic.Error](err); ok { // in a stream that began with status 200
		var body struct {
			Error struct {
				Type    string `json:"type"`
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal([]byte(e.RawJSON()), &body) != nil || body.Error.Type == "" {
			body.Error.Message = "the service reports an error without a message"
		}
		out := &llm.Error{Kind: event.LLMOther, Err: errors.New(cmp.Or(body.Error.Message, body.Error.Type))}
		if status := statuses[body.Error.Type]; status != 0 {
			out.Kind, out.StatusCode = event.LLMStatus, status
		}
		return llm.Explain(out, body.Error.Type)
	}
	return provider.Failed(err)
}

// statuses are those of the service's types of errors.
var statuses = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403, "not_found_error": 404,
	"request_too_large": 413, "rate_limit_error": 429, "api_error": 500, "timeout_error": 504, "overloaded_error": 529,
}
