package models

import (
	"slices"
	"strings"
)

// Preset says how to reach a well-known service, or a program of this machine that runs models. yaya
// provider add, the page (a test compares its copy), the look for programs of this machine, and [ServiceAt]
// go by the presets; beside them, a plugin knows the address of its own service alone.
type Preset struct {
	Name    string   // the ID of a provider that means it
	Others  []string // further IDs that mean it
	Title   string
	Service string // in the catalogue, "" if its models have no prices there
	Plugin  string
	URL     string
	// Own reports whether the plugin leads to URL by itself: a provider without an address can use the
	// key of the environment.
	Own    bool
	KeyVar string // the usual variable of the environment for its key
	Local  bool   // a program of this machine, which needs no key
}

const openAI = "llm-openai"

var presets = []Preset{
	{Name: "openai", Title: "OpenAI", Service: "openai", Plugin: openAI, URL: "https://api.openai.com/v1", Own: true, KeyVar: "OPENAI_API_KEY"},
	{Name: "openai-responses", Others: []string{"responses"}, Title: "OpenAI Responses", Service: "openai", Plugin: "llm-responses", URL: "https://api.openai.com/v1", Own: true, KeyVar: "OPENAI_API_KEY"},
	{Name: "anthropic", Others: []string{"claude"}, Title: "Anthropic", Service: "anthropic", Plugin: "llm-anthropic", URL: "https://api.anthropic.com", Own: true, KeyVar: "ANTHROPIC_API_KEY"},
	{Name: "gemini", Others: []string{"google"}, Title: "Google", Service: "google", Plugin: "llm-gemini", URL: "https://generativelanguage.googleapis.com", Own: true, KeyVar: "GEMINI_API_KEY"},
	{Name: "mistral", Title: "Mistral", Service: "mistral", Plugin: openAI, URL: "https://api.mistral.ai/v1", KeyVar: "MISTRAL_API_KEY"},
	{Name: "openrouter", Title: "OpenRouter", Plugin: openAI, URL: "https://openrouter.ai/api/v1", KeyVar: "OPENROUTER_API_KEY"},
	{Name: "deepseek", Title: "DeepSeek", Service: "deepseek", Plugin: openAI, URL: "https://api.deepseek.com/v1", KeyVar: "DEEPSEEK_API_KEY"},
	{Name: "groq", Title: "Groq", Plugin: openAI, URL: "https://api.groq.com/openai/v1", KeyVar: "GROQ_API_KEY"},
	{Name: "xai", Others: []string{"grok"}, Title: "xAI", Service: "xai", Plugin: openAI, URL: "https://api.x.ai/v1", KeyVar: "XAI_API_KEY"},
	{Name: "together", Title: "Together", Plugin: openAI, URL: "https://api.together.xyz/v1", KeyVar: "TOGETHER_API_KEY"},
	{Name: "fireworks", Title: "Fireworks", Plugin: openAI, URL: "https://api.fireworks.ai/inference/v1", KeyVar: "FIREWORKS_API_KEY"},
	{Name: "ollama", Title: "Ollama", Plugin: "llm-ollama", URL: "http://127.0.0.1:11434", Own: true, Local: true},
	{Name: "lmstudio", Others: []string{"lm-studio"}, Title: "LM Studio", Plugin: openAI, URL: "http://127.0.0.1:1234/v1", Local: true},
	{Name: "vllm", Title: "vLLM", Plugin: openAI, URL: "http://127.0.0.1:8000/v1", Local: true},
	{Name: "llama-cpp", Others: []string{"llamacpp"}, Title: "llama.cpp", Plugin: openAI, URL: "http://127.0.0.1:8080/v1", Local: true},
}

// Presets are those of well-known services, then those of programs of this machine.
func Presets() []Preset { return slices.Clone(presets) }

// PresetOf returns the preset that the ID of a provider means. An ID that only contains its name means
// none.
func PresetOf(id string) (Preset, bool) {
	i := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == id || slices.Contains(p.Others, id) })
	if i < 0 {
		return Preset{}, false
	}
	return presets[i], true
}

// LocalServices are the programs of this machine by their titles: where they list their models, with
// /models after it.
func LocalServices() map[string]string {
	out := map[string]string{}
	for _, p := range presets {
		if p.Local {
			out[p.Title] = strings.TrimSuffix(p.URL, "/v1") + "/v1" // Ollama's own API is beside it
		}
	}
	return out
}

// Elsewhere returns the preset of the service that alone has a model; false if that service has it, too,
// if its weights are open, and if nobody knows it.
func (l List) Elsewhere(service, model string) (Preset, bool) {
	found := indexed(l).find(model)
	if len(found) == 0 || slices.ContainsFunc(found, func(m Model) bool { return m.Service == service || m.Service != found[0].Service }) {
		return Preset{}, false
	}
	i := slices.IndexFunc(presets, func(p Preset) bool { return p.Service == found[0].Service })
	if i < 0 {
		return Preset{}, false
	}
	return presets[i], true
}
