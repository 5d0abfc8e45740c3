package kernel_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/budget"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// notices returns what people were told.
func (w *world) notices() (out []string) {
	for _, ev := range w.events() {
		if n, ok := ev.Payload.(event.Notice); ok {
			out = append(out, n.Text)
		}
	}
	return out
}

// With a limit of costs, a session gets a notice about prices that are not known, and none about models
// that cost nothing.
func TestNoticeOfPrices(t *testing.T) {
	limit := map[string]string{budget.DayKey: "100"}
	inBubble(t, setup{script: `{"steps":[{"text":"hello"}]}`, settings: limit}, func(t *testing.T, w *world) {
		w.run("s1", "go on")
		if got := w.notices(); len(got) != 0 {
			t.Errorf("with llm-echo: %q, want no notice", got)
		}
	})
	settings := map[string]string{"providers.mine.plugin": `"llm-test"`, "provider": `"mine"`, budget.DayKey: "100"}
	answer := event.LLMResponse{Text: "hello", Usage: event.Usage{Input: 3, Output: 2, Total: 5}}
	inBubble(t, setup{plugins: []plugin.Plugin{&model{answer}}, settings: settings}, func(t *testing.T, w *world) {
		w.run("s1", "go on")
		want := "The prices of mine are not known, so its calls do not count towards budget.day_cents: set providers.mine.input_price and output_price (US dollars for a million tokens)."
		if got := w.notices(); !slices.Equal(got, []string{want}) {
			t.Errorf("without the name of a model: %q, want %q", got, want)
		}
	})
}

// Models of a network of the user's own cost nothing, and those of a service may.
func TestFreeModels(t *testing.T) {
	k := newWorld(t, setup{})
	for _, c := range []struct {
		plugin, url, model string
		want               bool
	}{
		{"llm-echo", "", "", true},
		{"llm-ollama", "", "qwen3:8b", true},
		{"llm-ollama", "http://localhost:11434", "qwen3:8b", true},
		{"llm-ollama", "http://192.168.1.2:11434", "qwen3:8b", true},
		{"llm-ollama", "http://localhost:11434", "gpt-oss:120b-cloud", false},
		{"llm-ollama", "http://localhost:11434", "glm-4.6:cloud", false},
		{"llm-ollama", "https://ollama.com", "gpt-oss:120b", false},
		{"llm-openai", "http://localhost:8080/v1", "m", false},
	} {
		i := config.Instance{ID: "x", Plugin: c.plugin, Config: map[string]json.RawMessage{}}
		if c.url != "" {
			i.Config["base_url"] = fmt.Appendf(nil, "%q", c.url)
		}
		if got := kernel.Free(k.Kernel, i, c.model); got != c.want {
			t.Errorf("%s at %q with %s is free: %v, want %v", c.plugin, c.url, c.model, got, c.want)
		}
	}
}
