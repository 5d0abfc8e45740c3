package conform

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/event"
)

// lastAsked is the last request that a model got.
func (h *house) lastAsked() (r event.LLMRequest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.asked) > 0 {
		r = h.asked[len(h.asked)-1]
	}
	return r
}

// A strategy in Python drives turns: it offers what it says, has tools called, and asks the
// active provider, since it names none.
func TestExampleStrategy(t *testing.T) {
	t.Parallel()
	folder := python.example(t, "scout")
	h := newHouse(t, map[string]string{"strategy": `"scout"`, "plugin.scout.tools": `["shell"]`, "plugin.scout.steps": `1`})
	if err := h.Tools.Register(shell{}); err != nil {
		t.Fatal(err)
	}
	h.load(folder)
	if got := h.says("s1", `/tool shell {"command":"ls"}`); !strings.Contains(got, `ran {"command":"ls"}`) {
		t.Errorf("the answer is %q, want what the tool said", got)
	}
	r := h.lastAsked()
	if len(r.Tools) != 1 || r.Tools[0].Name != "shell" || r.Provider != "llm-echo" {
		t.Errorf("the model was offered %+v at %q, want shell alone at llm-echo", r.Tools, r.Provider)
	}
	if system := r.Messages[0].Content; !strings.Contains(system, "You look around") || !strings.Contains(system, "answer now") {
		t.Errorf("the system prompt is %q, want the strategy's, which ends the turn after a step", system)
	}
	h.says("s2", "hello")
	if r := h.lastAsked(); strings.Contains(r.Messages[0].Content, "answer now") {
		t.Errorf("the system prompt of the first step is %q, want no end of the turn", r.Messages[0].Content)
	}
	if err := h.Settings.Set("plugin.scout.tools", []byte(`["read_artifact"]`)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "a changed setting counts", func() bool {
		h.says("s3", "hello")
		return slices.ContainsFunc(h.lastAsked().Tools, func(s event.ToolSchema) bool { return s.Name == "read_artifact" })
	})
}

// A skill in JavaScript hears what agents say, asks a model, and tells others.
func TestExampleSkill(t *testing.T) {
	t.Parallel()
	folder := javaScript.example(t, "diary")
	h := newHouse(t, nil)
	h.load(folder)
	h.says("s1", "the sky is blue")
	diary := filepath.Join(h.data, "plugins", "diary", "state", "diary.md")
	want := "- s1: echo: Say in one line what this is about: echo: the sky is blue\n"
	eventually.True(t, "the diary has the line "+want, func() bool {
		got, err := os.ReadFile(diary)
		return err == nil && string(got) == want
	})
}
