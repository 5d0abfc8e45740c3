// Package llm_responses connects to OpenAI's Responses API, which keeps the reasoning of a model
// between the calls of a task. The service stores nothing: reasoning comes encrypted and goes back
// unchanged, before the calls that it led to.
package llm_responses //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/yaya-ai/yaya/internal/llmhttp"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/kernel/models"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// Name is the plugin's name, and that of its first instance.
const Name = "llm-responses"

// DefaultModel is the model of an instance that names none.
const DefaultModel = "gpt-5-mini"

const address = "https://api.openai.com/v1"

// New returns the plugin.
func New(env provider.Env) *provider.Plugin {
	return provider.New(provider.Service{
		Name: Name, ID: "openai-responses", Model: DefaultModel, AddressVar: "OPENAI_BASE_URL", KeyVars: []string{"OPENAI_API_KEY"}, Address: address,
		Client: func(s provider.Settings) llm.Provider {
			return &client{id: s.ID, model: s.Model, effort: s.Effort, facts: s.Facts, http: s.HTTP, key: s.Key, base: cmp.Or(s.BaseURL, address)}
		},
	}, env)
}

// client is one instance.
type client struct {
	id, model, effort, key, base string
	facts                        func(model string) models.Facts
	http                         *llmhttp.Client
}

// Name implements [llm.Provider].
func (c *client) Name() string { return c.id }

// ModelName implements [llm.Provider].
func (c *client) ModelName() string { return c.model }

// ThinkingEffort implements [llm.Provider].
func (c *client) ThinkingEffort() string { return c.effort }

type (
	request struct {
		Model        string     `json:"model"`
		Instructions string     `json:"instructions,omitempty"`
		Input        []any      `json:"input"`
		Tools        []tool     `json:"tools,omitempty"`
		Reasoning    *reasoning `json:"reasoning,omitempty"`
		Include      []string   `json:"include,omitempty"`
		Most         int64      `json:"max_output_tokens,omitempty"`
		Temperature  *float64   `json:"temperature,omitempty"`
		Stream       bool       `json:"stream"`
		Store        bool       `json:"store"`
	}
	reasoning struct {
		Effort  string `json:"effort"`
		Summary string `json:"summary"`
	}
	tool struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"` // the service would refuse most schemas of tools
	}
	// The items of a conversation.
	message struct {
		Type    string `json:"type"`
		Role    string `json:"role"`
		Content []part `json:"content"`
	}
	part struct {
		Type  string `json:"type"`
		Text  string `json:"text,omitempty"`
		Image string `json:"image_url,omitempty"`
	}
	call struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Name   string `json:"name"`
		Args   string `json:"arguments"`
	}
	output struct {
		Type   string `json:"type"`
		CallID string `json:"call_id"`
		Output any    `json:"output"`
	}
	thought struct {
		Type      string          `json:"type,omitempty"`
		ID        string          `json:"id,omitempty"`
		Summary   json.RawMessage `json:"summary"`
		Encrypted string          `json:"encrypted_content"`
	}
)

// Generate implements [llm.Provider].
func (c *client) Generate(ctx context.Context, req llm.Request) (llm.Stream, error) {
	p, err := provider.ParamsOf(req)
	if err != nil {
		return nil, err
	}
	model := cmp.Or(req.Model, c.model)
	by := c.id + "/" + model
	r := request{Model: model, Instructions: req.System, Input: input(req.History, by), Stream: true, Most: p.MaxTokens, Temperature: p.Temperature}
	if c.effort != "off" {
		r.Reasoning = &reasoning{c.effort, "auto"} // unchanged: the service knows its own levels
	}
	if c.effort != "off" || c.facts(model).Reasoning { // the service refuses it for other models
		r.Include = []string{"reasoning.encrypted_content"}
	}
	for _, t := range req.Tools {
		parameters := t.Parameters
		if len(parameters) == 0 {
			parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		r.Tools = append(r.Tools, tool{"function", t.Name, t.Description, parameters, false})
	}
	body, err := c.http.Post(ctx, c.base+"/responses", map[string]string{"Authorization": llmhttp.Bearer(c.key)}, r)
	if err != nil {
		return nil, provider.Failed(err)
	}
	return newStream(body, by), nil
}

// input writes a history as the items of a conversation. Each has a result for each call.
func input(history []event.Message, by string) []any {
	out := []any{}
	var known provider.CallIDs
	for _, m := range history {
		switch m.Role {
		case "assistant":
			provider.Answer(m, by, func(r event.Reasoning) {
				var t thought
				if json.Unmarshal(r.Data, &t) == nil && t.Encrypted != "" {
					t.Type = "reasoning"
					out = append(out, t)
				}
			}, func() {
				if strings.TrimSpace(m.Content) != "" {
					out = append(out, message{"message", m.Role, []part{{Type: "output_text", Text: m.Content}}})
				}
			}, func(tc event.ToolCall) {
				out = append(out, call{"function_call", known.Add(tc.ID), provider.ToolName(tc.Name), provider.ObjectText(tc.Args)})
			})
		case "tool":
			o := output{"function_call_output", known.Of(m.ToolCallID), m.Content}
			if len(m.Images) > 0 {
				o.Output = parts(m)
			}
			out = append(out, o)
		default:
			if p := parts(m); len(p) > 0 {
				out = append(out, message{"message", m.Role, p})
			}
		}
	}
	return out
}

func parts(m event.Message) []part {
	var out []part
	if strings.TrimSpace(m.Content) != "" {
		out = append(out, part{Type: "input_text", Text: m.Content})
	}
	for _, i := range m.Images {
		out = append(out, part{Type: "input_image", Image: "data:" + i.MimeType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)})
	}
	return out
}
