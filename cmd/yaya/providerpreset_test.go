package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/models"
)

// A provider with the name of a known service is one of that service: neither its requests nor its key go
// to OpenAI. Flags that say where the provider is count more.
func TestPresets(t *testing.T) {
	t.Parallel()
	for kind, daemon := range map[string]bool{"alone": false, "beside a daemon": true} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.env = append(b.env, "GROQ_API_KEY=canary-of-groq-0123456789", "XAI_API_KEY=")
			if daemon {
				b.serve()
			}
			for _, tt := range []struct{ args, plugin, url, key, said string }{
				{"anthropic --model claude-sonnet-4-5", "llm-anthropic", "", "", "from the preset anthropic: the plugin llm-anthropic, with its address and its key (unless you have set others, https://api.anthropic.com and ANTHROPIC_API_KEY in yaya's environment)"},
				{"openai --model gpt-5-mini --api-key-env GROQ_API_KEY", "llm-openai", "https://api.openai.com/v1", "canary-of-groq-0123456789", "at https://api.openai.com/v1; its key is a copy of GROQ_API_KEY"},
				{"claude --model claude-sonnet-4-5", "llm-anthropic", "", "", "from the preset anthropic"},
				{"gemini", "llm-gemini", "", "", "from the preset gemini"},
				{"ollama --model qwen3", "llm-ollama", "", "", "from the preset ollama: the plugin llm-ollama, at http://127.0.0.1:11434\n"},
				{"groq --model m", "llm-openai", "https://api.groq.com/openai/v1", "canary-of-groq-0123456789", "at https://api.groq.com/openai/v1; its key is a copy of GROQ_API_KEY"},
				{"mistral --plugin llm-openai --model m", "llm-openai", "https://api.mistral.ai/v1", "", "it has no key yet: yaya config set providers.mistral.api_key -"},
				{"xai --model grok-4", "llm-openai", "https://api.x.ai/v1", "", "it has no key yet"},
				{"llama-cpp --model m", "llm-openai", "http://127.0.0.1:8080/v1", "", "from the preset llama-cpp"},
				{"vllm --base-url http://127.0.0.1:9/v1", "llm-openai", "http://127.0.0.1:9/v1", "", "!preset"},
				{"deepseek --set base_url=http://127.0.0.1:9/v1", "llm-openai", "http://127.0.0.1:9/v1", "", "!preset"},
				{"together --plugin llm-echo", "llm-echo", "", "", "!preset"},
				{"my-groq --model m", "llm-openai", "", "", "!preset"},
				{"anthropic-2 --plugin llm-openai --model claude-sonnet-4-5", "llm-openai", "", "", "!preset"},
				{"proxy --base-url http://127.0.0.1:9/v1 --model claude-sonnet-4-5", "llm-openai", "http://127.0.0.1:9/v1", "", "!preset"},
				{"open-weights --model gpt-oss:20b", "llm-openai", "", "", "!preset"},
			} {
				args := strings.Fields(tt.args)
				out := b.must(append([]string{"provider", "add"}, args...)...)
				if without, not := strings.CutPrefix(tt.said, "!"); strings.Contains(out, without) == not || strings.Contains(out, "canary") {
					t.Errorf("provider add %s says %q, want %q in it", tt.args, out, tt.said)
				}
				got := b.added(args[0], daemon)
				if got.Plugin != tt.plugin || got.Text("base_url") != tt.url || daemon && got.Text("api_key") != tt.key {
					t.Errorf("provider add %s: got the plugin %q at %q with the key %.10q, want %q at %q with %.10q", tt.args, got.Plugin, got.Text("base_url"), got.Text("api_key"), tt.plugin, tt.url, tt.key)
				}
			}
			for args, want := range map[string]string{
				"foo --model claude-sonnet-4-5":        "add --plugin llm-anthropic, or use the ID anthropic",
				"bar --model claude-sonnet-4-5":        "requests on to Anthropic needs its --base-url; with OPENAI_BASE_URL, say --plugin llm-openai)",
				"foo --model models/gemini-2.5-pro":    "add --plugin llm-gemini, or use the ID gemini",
				"foo --model deepseek-chat":            "add --base-url https://api.deepseek.com/v1, or use the ID deepseek",
				"my-anthropic --model claude-opus-4-5": "add --plugin llm-anthropic",
			} {
				if out, err := b.run(append([]string{"provider", "add"}, strings.Fields(args)...)...); exitCode(err) != 2 || !strings.Contains(out, want) {
					t.Errorf("provider add %s: got %v, %s; want exit code 2 and %q", args, err, out, want)
				}
			}
			if out := b.must("provider", "list"); strings.Contains(out, "foo") || strings.Contains(out, "my-anthropic") {
				t.Errorf("got %s, want no provider that was refused", out)
			}
			if got, want := b.completes("provider", "add", "o"), []string{"ollama", "openai", "openai-responses", "openrouter"}; !slices.Equal(got, want) {
				t.Errorf("the completion offers %q, want %q", got, want)
			}
		})
	}
	help := newBox(t).must("provider", "add", "--help")
	for _, p := range models.Presets() {
		if !strings.Contains(help, p.Name) || !config.ValidInstanceID(p.Name) {
			t.Errorf("the help does not name the preset %q, or no provider can have this name", p.Name)
		}
	}
}

// added is a provider as it is kept; its key is shown by a daemon alone.
func (b *box) added(id string, daemon bool) (found config.Instance) {
	b.t.Helper()
	var all []admin.Provider
	if daemon {
		b.admin("GET", "/llm-providers?show=1", "", 200, &all)
	} else if err := json.Unmarshal([]byte(b.must("provider", "list", "--json")), &all); err != nil {
		b.t.Fatal(err)
	}
	for _, p := range all {
		if p.ID == id {
			found = config.Instance{ID: id, Plugin: p.Plugin, Config: p.Config}
		}
	}
	return found
}

// The page offers the presets that the program has.
func TestPagePresets(t *testing.T) {
	file := filepath.Join("..", "..", "gateway", "dashboard", "page", "presets.js")
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const begin = "export const PRESETS = [\n"
	head, _, ok := strings.Cut(string(got), begin)
	if !ok {
		t.Fatalf("%s has no %q", file, begin)
	}
	want := head + begin
	for _, p := range models.Presets() {
		want += fmt.Sprintf("  { name: '%s', url: '%s'", p.Title, p.URL)
		if p.Local {
			want += ", local: true"
		}
		if p.Plugin != openAIPlugin {
			want += fmt.Sprintf(", plugin: '%s'", p.Plugin)
		}
		want += " },\n"
	}
	want += "];\n"
	if *updateDocs {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(got) != want {
		t.Errorf("%s has other presets than kernel/models: go test ./cmd/yaya -run TestPagePresets -update-docs, then make page", file)
	}
}
