package daemon

import (
	"encoding/json"
	"testing"

	"github.com/yaya-ai/yaya/kernel/models"
	"github.com/yaya-ai/yaya/plugins/llm_anthropic"
	"github.com/yaya-ai/yaya/plugins/llm_gemini"
	"github.com/yaya-ai/yaya/plugins/llm_ollama"
	"github.com/yaya-ai/yaya/plugins/llm_openai"
	"github.com/yaya-ai/yaya/plugins/llm_responses"
	"github.com/yaya-ai/yaya/plugins/provider"
)

// A preset without an address for its providers leads where its plugin does; each names a plugin that
// yaya has.
func TestPresetsLeadWhereTheirPluginsDo(t *testing.T) {
	env := provider.Env{Getenv: func(string) string { return "" }}
	leads := map[string]string{}
	for _, p := range []*provider.Plugin{llm_openai.New(env), llm_anthropic.New(env), llm_ollama.New(env), llm_responses.New(env), llm_gemini.New(env)} {
		var schema struct {
			Properties struct {
				BaseURL struct {
					Default string `json:"default"`
				} `json:"base_url"`
			} `json:"properties"`
		}
		m := p.Manifest()
		if err := json.Unmarshal(m.ConfigSchema, &schema); err != nil {
			t.Fatal(err)
		}
		leads[m.Name] = schema.Properties.BaseURL.Default
	}
	seen := map[string]bool{}
	for _, p := range models.Presets() {
		at, ok := leads[p.Plugin]
		if !ok {
			t.Errorf("the preset %s names the plugin %s, which yaya does not have", p.Name, p.Plugin)
		}
		if p.Own && !p.Local && at != p.URL {
			t.Errorf("the preset %s is at %s, and its plugin leads to %s", p.Name, p.URL, at)
		}
		for _, id := range append([]string{p.Name}, p.Others...) {
			if got, _ := models.PresetOf(id); seen[id] || got.Name != p.Name {
				t.Errorf("the ID %s means the preset %s, want %s alone", id, got.Name, p.Name)
			}
			seen[id] = true
		}
	}
}
