package conform

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/plugins/scaffold"
)

// begun makes a new plugin hello, and builds it if it has to be.
func begun(t *testing.T, lang, category string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("-short starts no other programs")
	}
	switch lang {
	case "python":
		python.need(t)
	case "typescript":
		javaScript.need(t)
	}
	files, err := scaffold.Files("hello", lang, category)
	if err != nil {
		t.Fatal(err)
	}
	above, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(above, "hello")
	if err := scaffold.Write(folder, files); err != nil {
		t.Fatal(err)
	}
	if lang == "go" {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", "hello", ".")
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go build = %v, want no error:\n%s", err, out)
		}
	}
	return folder
}

// Y-101: each new plugin passes the suite of the protocol as it is, and does what its category is for.
func TestNewPlugins(t *testing.T) {
	for category, works := range map[string]func(t *testing.T, h *house){
		"tool": func(t *testing.T, h *house) {
			t.Helper()
			if got := h.says("s1", `/tool hello_greet {"who":"Ada"}`); !strings.Contains(got, "Hello, Ada!") {
				t.Errorf("the tool says %q, want its greeting", got)
			}
		},
		"llm-provider": func(t *testing.T, h *house) {
			t.Helper()
			for key, value := range map[string]string{"providers.mine.plugin": `"hello"`, "provider": `"mine"`} {
				if err := h.Settings.Set(key, json.RawMessage(value)); err != nil {
					t.Fatal(err)
				}
			}
			eventually.True(t, "the provider answers", func() bool { return strings.Contains(h.says("s1", "good morning"), "You said: good morning") })
		},
		"memory": func(t *testing.T, h *house) {
			t.Helper()
			if err := h.Settings.Set("plugin.strategy_react.memory", json.RawMessage(`"full"`)); err != nil {
				t.Fatal(err)
			}
			h.says("s1", "my favourite colour is ultramarine")
			eventually.True(t, "a later conversation is sent the memory", func() bool {
				h.says("s2", "which favourite do I have?")
				return h.heard("ultramarine")
			})
		},
		"strategy": func(t *testing.T, h *house) {
			t.Helper()
			h.Loop.SetStrategy("s1", "hello")
			if got := h.says("s1", "good morning"); !strings.Contains(got, "echo: good morning") {
				t.Errorf("the turn says %q, want the model's answer", got)
			}
			if got := h.says("s1", `/tool nothing {}`); strings.HasPrefix(got, "failed") || !strings.Contains(got, "nothing") {
				t.Errorf("a turn with a call says %q, want an answer after it", got)
			}
		},
		"adapter": func(t *testing.T, h *house) {
			t.Helper()
			state := filepath.Join(h.data, "plugins", "hello", "state")
			if err := os.WriteFile(filepath.Join(state, "ask.part"), []byte("good morning"), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(state, "ask.part"), filepath.Join(state, "ask.txt")); err != nil {
				t.Fatal(err)
			}
			eventually.True(t, "there is an answer", func() bool {
				got, err := os.ReadFile(filepath.Join(state, "answer.txt"))
				return err == nil && strings.Contains(string(got), "echo: good morning")
			})
		},
		"skill": func(t *testing.T, h *house) {
			t.Helper()
			var heard atomic.Bool
			if _, err := h.Bus.Subscribe(bus.SubscribeOptions{Name: "heard"}, []string{"x.hello.heard"}, func(_ context.Context, ev event.Event) error {
				raw, err := json.Marshal(ev.Payload)
				heard.Store(strings.Contains(string(raw), `"words":2`))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			h.says("s1", "good morning")
			eventually.True(t, "the skill publishes what it heard", heard.Load)
		},
	} {
		for _, lang := range scaffold.Languages() {
			t.Run(category+" in "+lang, func(t *testing.T) {
				t.Parallel()
				h := newHouse(t, nil)
				h.load(begun(t, lang, category))
				works(t, h)
			})
		}
	}
}
