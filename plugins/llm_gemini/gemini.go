// Package llm_gemini connects to Google's Gemini API, through google.golang.org/genai. Signatures of
// thoughts go back to the service with the parts that they came with.
//
// The API carries the arguments of calls as a google.protobuf.Struct, whose numbers are doubles:
// whole numbers above 2^53 are rounded before they arrive here.
package llm_gemini //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"
	"sync"

	"google.golang.org/genai"

	"github.com/yaya-ai/yaya/internal/llmhttp"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// Name is the plugin's name, and that of its first instance.
const Name = "llm-gemini"

// DefaultModel is the model of an instance that names none.
const DefaultModel = "gemini-3.5-flash"

const address = "https://generativelanguage.googleapis.com"

// New returns the plugin.
func New(env provider.Env) *provider.Plugin {
	return provider.New(provider.Service{
		Name: Name, ID: "gemini", Model: DefaultModel, AddressVar: "GOOGLE_GEMINI_BASE_URL", KeyVars: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, Address: address,
		Client: func(s provider.Settings) llm.Provider {
			return &client{id: s.ID, model: s.Model, effort: s.Effort, key: s.Key, base: base(s.BaseURL), http: s.HTTP, api: sync.OnceValues(func() (*genai.Client, error) { return open(s) })}
		},
	}, env)
}

// open returns the SDK's client. Without an address or a key of ours, the SDK would take those of
// the environment, and send such a key to an instance's own address.
func open(s provider.Settings) (*genai.Client, error) {
	return genai.NewClient(context.Background(), &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: cmp.Or(s.Key, "none"), HTTPClient: s.HTTP.Standard(),
		HTTPOptions: genai.HTTPOptions{BaseURL: base(s.BaseURL)},
	})
}

// base returns the address without the version, which the SDK adds, and without the path of the
// copy of OpenAI's API.
func base(url string) string {
	return strings.TrimSuffix(strings.TrimSuffix(cmp.Or(url, address), "/openai"), "/v1beta")
}

// client is one instance.
type client struct {
	id, model, effort, key, base string
	http                         *llmhttp.Client
	api                          func() (*genai.Client, error) // made for the first request
}

// Name implements [llm.Provider].
func (c *client) Name() string { return c.id }

// ModelName implements [llm.Provider].
func (c *client) ModelName() string { return c.model }

// ThinkingEffort implements [llm.Provider].
func (c *client) ThinkingEffort() string { return c.effort }

// Generate implements [llm.Provider]. The SDK sends the request when the first part is asked for.
func (c *client) Generate(ctx context.Context, req llm.Request) (llm.Stream, error) {
	own, err := provider.ParamsOf(req)
	if err != nil {
		return nil, err
	}
	api, err := c.api()
	if err != nil {
		return nil, err
	}
	model := cmp.Or(req.Model, c.model)
	n := namesOf(req.Tools)
	cfg := &genai.GenerateContentConfig{
		StopSequences: own.StopSequences, MaxOutputTokens: int32(min(max(own.MaxTokens, 0), math.MaxInt32)), //nolint:gosec // bounded
		ThinkingConfig: c.thinking(), Tools: tools(req.Tools, n),
		AutomaticContinuation: new(bool), // the runner tries again
	}
	if own.Temperature != nil {
		cfg.Temperature = new(float32(*own.Temperature))
	}
	if req.System != "" {
		cfg.SystemInstruction = &genai.Content{Parts: []*genai.Part{{Text: req.System}}}
	}
	s := &stream{by: c.id + "/" + model, names: n}
	h := history{by: s.by, names: n, third: third(model)}
	s.next, s.stop = iter.Pull2(api.Models.GenerateContentStream(llmhttp.WithFailure(ctx, &s.failure), model, h.write(req.History), cfg))
	return s, nil
}

// thinking returns what to ask for: nothing, a budget in tokens, or a level that the model knows.
func (c *client) thinking() *genai.ThinkingConfig {
	if c.effort == "off" {
		return nil
	}
	if n, err := strconv.ParseInt(c.effort, 10, 32); err == nil {
		return &genai.ThinkingConfig{IncludeThoughts: n != 0, ThinkingBudget: new(int32(n))}
	}
	return &genai.ThinkingConfig{IncludeThoughts: true, ThinkingLevel: genai.ThinkingLevel(strings.ToUpper(c.effort))}
}

// third reports whether a model is of the third generation or later: it wants signatures with calls,
// and takes pictures in results.
func third(model string) bool {
	model = strings.TrimPrefix(model, "models/")
	return !strings.HasPrefix(model, "gemini-1") && !strings.HasPrefix(model, "gemini-2") && !strings.HasPrefix(model, "gemma")
}

func tools(all []event.ToolSchema, n names) []*genai.Tool {
	if len(all) == 0 {
		return nil
	}
	t := &genai.Tool{}
	for _, s := range all {
		f := &genai.FunctionDeclaration{Name: n.as(s.Name), Description: s.Description}
		var schema map[string]any // the SDK would send nothing at all with one that is not JSON
		if json.Unmarshal(s.Parameters, &schema) == nil && len(schema) > 0 {
			f.ParametersJsonSchema = schema
		}
		t.FunctionDeclarations = append(t.FunctionDeclarations, f)
	}
	return []*genai.Tool{t}
}

// names are those of tools by what the service calls them: its names begin with a letter or _.
type names struct{ there, here map[string]string }

func namesOf(tools []event.ToolSchema) names {
	n := names{map[string]string{}, map[string]string{}}
	for _, t := range tools {
		if fits(t.Name) {
			n.there[t.Name], n.here[t.Name] = t.Name, t.Name
		}
	}
	for _, t := range tools {
		if fits(t.Name) {
			continue
		}
		as := "_" + t.Name
		for n.here[as] != "" {
			as = "_" + as
		}
		n.there[t.Name], n.here[as] = as, t.Name
	}
	return n
}

func fits(name string) bool {
	c := name[:min(len(name), 1)]
	return c == "_" || c >= "a" && c <= "z" || c >= "A" && c <= "Z"
}

// as returns the name of a tool for the service. A history may have calls of tools that are gone.
func (n names) as(name string) string {
	if as := n.there[name]; as != "" {
		return as
	}
	if name = provider.ToolName(name); !fits(name) {
		name = "_" + name
	}
	return name
}

// of returns the tool that the service calls so.
func (n names) of(name string) string { return cmp.Or(n.here[name], name) }
