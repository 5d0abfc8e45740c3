package kernel_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// censor guards messages, and denies those with a word.
type censor struct{ asked []string }

func (*censor) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: "censor", Version: "1.0.0", Category: plugin.Skill, Guards: []string{plugin.GuardPrompt}}
}

func (*censor) Subscriptions() []string                                    { return nil }
func (*censor) OnLoad(context.Context, plugin.Context) error               { return nil }
func (*censor) OnUnload(context.Context, plugin.Context) error             { return nil }
func (*censor) OnEvent(context.Context, event.Event, plugin.Context) error { return nil }
func (c *censor) Decide(_ context.Context, q plugin.Question) (tool.Verdict, error) {
	c.asked = append(c.asked, q.Prompt)
	if strings.Contains(q.Prompt, "FORBIDDEN") {
		return tool.Verdict{Decision: tool.Deny, Reason: "no"}, nil
	}
	return tool.Verdict{}, nil
}

// R26: a model gets no message that a guard has denied, or was not asked about: not with a later
// one, not when its turn did not begin by itself, and not after a restart.
func TestDeniedMessagesReachNoModel(t *testing.T) {
	const id = "s1"
	held := func(w *world, text string) {
		t.Helper()
		if _, err := w.Loop.Submit(w.t.Context(), loop.Prompt{SessionID: id, Text: text, Hold: true}); err != nil {
			t.Fatal(err)
		}
	}
	denied := func(w *world, text string) {
		t.Helper()
		if out := w.run(id, text); out.Err == nil || !strings.Contains(out.Err.Error(), "plugin censor: no") {
			t.Errorf("%q: %v, want a denial by the guard", text, out.Err)
		}
	}
	for name, first := range map[string]func(*world){
		"before another one": func(w *world) { denied(w, "FORBIDDEN direct") },
		"held": func(w *world) {
			held(w, "FORBIDDEN held")
			denied(w, "good")
		},
		"with a message of a tool behind it": func(w *world) {
			denied(w, "FORBIDDEN direct")
			s, err := w.Sessions.Open(id, "")
			if err == nil {
				_, err = s.Say(session.Message{Role: "tool", Content: "x"}, "", "")
			}
			if err != nil {
				t.Fatal(err)
			}
		},
		"twice": func(w *world) {
			denied(w, "FORBIDDEN one")
			denied(w, "FORBIDDEN two")
		},
		"in a sub-agent": func(w *world) {
			if err := w.Plugins.Admit(w.t.Context(), id+"::agent::1", "FORBIDDEN"); err == nil {
				t.Error("a message to a sub-agent is admitted, want a denial")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			p := &tight{window: 100_000, words: named}
			c := new(censor)
			inBubble(t, setup{dir: dir, plugins: []plugin.Plugin{p, c}, settings: map[string]string{"provider": `"test-tight"`}}, func(t *testing.T, w *world) {
				if out := w.run(id, "first"); out.Err != nil {
					t.Fatal(out.Err)
				}
				first(w)
				if out := w.run(id, "hello"); out.Err != nil {
					t.Fatalf("the message after it: %v", out.Err)
				}
			})
			inBubble(t, setup{dir: dir, plugins: []plugin.Plugin{p, c}, settings: map[string]string{"provider": `"test-tight"`}}, func(t *testing.T, w *world) {
				if out := w.run(id, "again"); out.Err != nil {
					t.Fatalf("after a restart: %v", out.Err)
				}
			})
			for i, r := range p.requests {
				if slices.ContainsFunc(r.History, func(m event.Message) bool { return strings.Contains(m.Content, "FORBIDDEN") }) {
					t.Errorf("request %d has the denied message: %+v", i, r.History)
				}
			}
			last := p.requests[len(p.requests)-1].History
			for _, want := range []string{"first", "hello", "again"} {
				if !slices.ContainsFunc(last, func(m event.Message) bool { return m.Content == want }) {
					t.Errorf("the last request lacks %q: %+v", want, last)
				}
			}
			if n := len(slices.DeleteFunc(slices.Clone(c.asked), func(s string) bool { return !strings.HasSuffix(s, "hello") })); n != 1 {
				t.Errorf("the guard was asked %q, want hello once", c.asked)
			}
		})
	}
}
