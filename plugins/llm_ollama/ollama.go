// Package llm_ollama connects to Ollama's own API. Its copy of OpenAI's has no way to ask for a
// context window, and silently drops the beginning of a longer request; here the window is asked for
// (num_ctx), and a longer request is an error.
//
// The field context_window of an instance is that window; the server takes memory for it.
// thinking_effort is "off", "on", or a level that the model knows.
package llm_ollama //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/yaya-ai/yaya/internal/llmhttp"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/kernel/models"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// Name is the plugin's name, and that of its first instance.
const Name = "llm-ollama"

// DefaultModel is the model of an instance that names none.
const DefaultModel = "gpt-oss:20b"

// DefaultWindow is the window that is asked for, in tokens, if the settings do not say. The server's
// own is 4096 on many machines, which the prompt of an agent fills.
const DefaultWindow = 32_768

// address is where Ollama listens by itself.
const address = "http://127.0.0.1:11434"

// New returns the plugin.
func New(env provider.Env) *provider.Plugin {
	return provider.New(provider.Service{
		Name: Name, ID: "ollama", Model: DefaultModel, AddressVar: "OLLAMA_HOST", KeyVars: []string{"OLLAMA_API_KEY"}, Address: address, Keyless: true,
		Fields: map[string]string{config.WindowField: `{"type":"integer","default":` + strconv.Itoa(DefaultWindow) + `}`},
		Client: func(s provider.Settings) llm.Provider {
			return &client{id: s.ID, model: s.Model, effort: s.Effort, window: s.Int(config.WindowField), facts: s.Facts, http: s.HTTP, key: s.Key, base: base(s.BaseURL)}
		},
	}, env)
}

// base returns the address of the API. OLLAMA_HOST may be the address that the server listens on,
// without a scheme; other clients have the address of the copy of OpenAI's.
func base(url string) string {
	url = strings.TrimSuffix(cmp.Or(url, address), "/v1")
	if !strings.Contains(url, "://") {
		url = "http://" + strings.Replace(url, "0.0.0.0", "127.0.0.1", 1)
		if !strings.Contains(url[len("http://"):], ":") {
			url += ":11434"
		}
	}
	return url
}

// client is one instance.
type client struct {
	id, model, effort, key, base string
	window                       int
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
		Model    string    `json:"model"`
		Messages []message `json:"messages"`
		Tools    []tool    `json:"tools,omitempty"`
		Think    any       `json:"think"`
		Options  options   `json:"options"`
		Stream   bool      `json:"stream"`
		// Without these the server drops what does not fit.
		Truncate bool `json:"truncate"`
		Shift    bool `json:"shift"`
	}
	options struct {
		Window      int      `json:"num_ctx"`
		Most        int64    `json:"num_predict,omitempty"`
		Temperature *float64 `json:"temperature,omitempty"`
		Stop        []string `json:"stop,omitempty"`
	}
	message struct {
		Role     string   `json:"role"`
		Content  string   `json:"content"`
		Thinking string   `json:"thinking,omitempty"`
		Images   [][]byte `json:"images,omitempty"`
		Calls    []call   `json:"tool_calls,omitempty"`
		Tool     string   `json:"tool_name,omitempty"`
		CallID   string   `json:"tool_call_id,omitempty"`
	}
	call struct {
		ID       string   `json:"id,omitempty"`
		Function function `json:"function"`
	}
	function struct {
		Name string `json:"name"`
		Args any    `json:"arguments"`
	}
	tool struct {
		Type     string           `json:"type"`
		Function event.ToolSchema `json:"function"`
	}
)

// Generate implements [llm.Provider].
func (c *client) Generate(ctx context.Context, req llm.Request) (llm.Stream, error) {
	p, err := provider.ParamsOf(req)
	if err != nil {
		return nil, err
	}
	model := cmp.Or(req.Model, c.model)
	r := request{Model: model, Stream: true, Think: think(c.effort), Options: options{c.windowOf(model), p.MaxTokens, p.Temperature, p.StopSequences}}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, tool{"function", t})
	}
	r.Messages = messages(req, c.id+"/"+model)
	body, err := c.http.Post(ctx, c.base+"/api/chat", map[string]string{"Authorization": llmhttp.Bearer(c.key)}, r)
	if err != nil {
		return nil, provider.Failed(err)
	}
	return newStream(body, c.id+"/"+model), nil
}

// windowOf returns the window to ask for.
func (c *client) windowOf(model string) int {
	if c.window > 0 {
		return c.window
	}
	if f := c.facts(model); f.Known {
		return min(f.Room(), DefaultWindow)
	}
	return DefaultWindow
}

// think returns what the API takes for an effort.
func think(effort string) any {
	switch effort {
	case "off":
		return false
	case "on":
		return true
	}
	return effort
}

// messages writes a request's messages.
func messages(req llm.Request, by string) []message {
	var out []message
	if req.System != "" {
		out = append(out, message{Role: "system", Content: req.System})
	}
	names := map[string]string{} // of the tools of the calls, by id
	for _, m := range req.History {
		om := message{Role: m.Role, Content: m.Content}
		for _, i := range m.Images {
			om.Images = append(om.Images, i.Data)
		}
		switch m.Role {
		case "tool":
			om.CallID, om.Tool = m.ToolCallID, names[m.ToolCallID]
		case "assistant":
			provider.Answer(m, by, func(r event.Reasoning) { om.Thinking += r.Text }, func() {}, func(tc event.ToolCall) {
				names[tc.ID] = tc.Name
				om.Calls = append(om.Calls, call{tc.ID, function{tc.Name, provider.Object(tc.Args)}})
			})
		}
		out = append(out, om)
	}
	return out
}
