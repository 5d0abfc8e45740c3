// Package llm_openai connects to any service with OpenAI's chat completions API. The forms of requests
// and answers are those of sashabaranov/go-openai.
package llm_openai //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/yaya-ai/yaya/internal/llmhttp"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// Name is the plugin's name, and that of its first instance.
const Name = "llm-openai"

// DefaultModel is the model of an instance that names none.
const DefaultModel = "gpt-4o-mini"

const address = "https://api.openai.com/v1"

// New returns the plugin.
func New(env provider.Env) *provider.Plugin {
	return provider.New(provider.Service{
		Name: Name, ID: "openai", Model: DefaultModel, AddressVar: "OPENAI_BASE_URL", KeyVars: []string{"OPENAI_API_KEY"}, Address: address,
		Client: func(s provider.Settings) llm.Provider {
			return &client{id: s.ID, model: s.Model, effort: s.Effort, key: s.Key, base: cmp.Or(s.BaseURL, address), http: s.HTTP}
		},
	}, env)
}

// client is one instance.
type client struct {
	id, model, effort, key, base string
	http                         *llmhttp.Client
	blind                        sync.Map // when models have refused pictures of tools, by name
}

// blindFor is how long a model that has refused pictures of tools gets none: it may have been one
// odd picture.
const blindFor = 10 * time.Minute

// Name implements [llm.Provider].
func (c *client) Name() string { return c.id }

// ModelName implements [llm.Provider].
func (c *client) ModelName() string { return c.model }

// ThinkingEffort implements [llm.Provider].
func (c *client) ThinkingEffort() string { return c.effort }

// Generate implements [llm.Provider]. Params are members of the request, such as
// temperature and max_tokens.
//
// Models that cannot see refuse pictures, in many words: the request goes out again without those
// of tools, and if that was it, the model gets no more of them for a while.
func (c *client) Generate(ctx context.Context, req llm.Request) (llm.Stream, error) {
	blind, had := sightless(req)
	model := cmp.Or(req.Model, c.model)
	if at, known := c.blind.Load(model); known && time.Since(at.(time.Time)) < blindFor {
		req, had = blind, false
	}
	s, err := c.generate(ctx, req)
	if e, ok := errors.AsType[*llm.Error](err); !had || !ok || e.Overflow || !slices.Contains([]int{400, 404, 415, 422}, e.StatusCode) {
		return s, err
	}
	s, again := c.generate(ctx, blind)
	if again != nil {
		return nil, err
	}
	c.blind.Store(model, time.Now())
	return s, nil
}

func (c *client) generate(ctx context.Context, req llm.Request) (llm.Stream, error) {
	var r openai.ChatCompletionRequest
	if len(req.Params) > 0 {
		if err := json.Unmarshal(req.Params, &r); err != nil {
			return nil, fmt.Errorf("params: %w", err)
		}
	}
	var own struct {
		Temperature *float32 `json:"temperature"`
	}
	_ = json.Unmarshal(req.Params, &own) // was read above
	if own.Temperature != nil && *own.Temperature == 0 {
		r.Temperature = math.SmallestNonzeroFloat32 // the SDK leaves a 0 out
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
	r.Stream = true
	body, err := c.http.Post(ctx, c.base+"/chat/completions", map[string]string{"Authorization": llmhttp.Bearer(c.key)}, r)
	if err != nil {
		return nil, provider.Failed(err)
	}
	return newStream(body), nil
}

// sightless returns a request without the pictures of tools.
func sightless(req llm.Request) (out llm.Request, had bool) {
	out = req
	for i, m := range req.History {
		if m.Role != openai.ChatMessageRoleTool || len(m.Images) == 0 {
			continue
		}
		if !had {
			out.History, had = slices.Clone(req.History), true
		}
		out.History[i].Images = nil
	}
	return out, had
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

// messages writes a request's messages. Results of tools are texts in this API: their pictures
// follow the results of an answer, as a message of the user.
func messages(req llm.Request) []openai.ChatCompletionMessage {
	var out []openai.ChatCompletionMessage
	var shown []event.Image
	show := func() {
		if len(shown) > 0 {
			out = append(out, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, MultiContent: parts("The pictures of these results:", shown)})
			shown = nil
		}
	}
	if req.System != "" {
		out = append(out, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: req.System})
	}
	for _, m := range req.History {
		if m.Role == openai.ChatMessageRoleTool {
			shown, m.Images = append(shown, m.Images...), nil
		} else {
			show()
		}
		om := openai.ChatCompletionMessage{Role: m.Role, Content: m.Content, ToolCallID: m.ToolCallID}
		if len(m.Images) > 0 { // content is either a text or parts
			om.Content, om.MultiContent = "", parts(m.Content, m.Images)
		}
		for _, tc := range m.ToolCalls {
			om.ToolCalls = append(om.ToolCalls, openai.ToolCall{ID: tc.ID, Type: openai.ToolTypeFunction, Function: openai.FunctionCall{Name: provider.ToolName(tc.Name), Arguments: provider.ObjectText(tc.Args)}})
		}
		out = append(out, om)
	}
	show()
	return out
}

func parts(text string, images []event.Image) []openai.ChatMessagePart {
	out := []openai.ChatMessagePart{{Type: openai.ChatMessagePartTypeText, Text: text}}
	for _, i := range images {
		url := "data:" + i.MimeType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
		out = append(out, openai.ChatMessagePart{Type: openai.ChatMessagePartTypeImageURL, ImageURL: &openai.ChatMessageImageURL{URL: url}})
	}
	return out
}
