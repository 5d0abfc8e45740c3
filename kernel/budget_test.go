package kernel_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/yaya-ai/yaya/kernel/budget"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// MIS-3: summaries count to their session, and the calls that a limit does not allow are not made.
func TestBudgetOfSummaries(t *testing.T) {
	p := &tight{window: 8192, calls: 40, words: named, size: 6000, price: 0.01}
	inTight(t, "", p, map[string]string{"providers.test-tight.context_window": `8192`}, func(t *testing.T, w *world) {
		out := w.run("s1", "work: count the lines")
		calls := len(p.requests) + p.summaries
		if out.Err != nil || p.summaries == 0 || p.refused > 0 {
			t.Fatalf("got %v after %d summaries and %d refusals, want a turn with summaries", out.Err, p.summaries, p.refused)
		}
		if err := w.Settings.Set(budget.SessionKey, fmt.Appendf(nil, "%d", calls+1)); err != nil {
			t.Fatal(err)
		}
		if out := w.run("s1", "one more"); out.Err != nil {
			t.Errorf("a cent below the limit: %v, want a turn", out.Err)
		}
		want := fmt.Sprintf("this session has cost $%.2f, and %s allows $%.2f: start another one, or raise the limit (yaya config set %s %d)", float64(calls+1)/100, budget.SessionKey, float64(calls+1)/100, budget.SessionKey, 2*(calls+1))
		if out := w.run("s1", "and another one"); out.Err == nil || out.Err.Error() != want || out.Kind != "budget" {
			t.Errorf("at the limit: %s, %v; want budget, %s", out.Kind, out.Err, want)
		}
		if got := len(p.requests) + p.summaries; got != calls+1 {
			t.Errorf("%d calls, want %d", got, calls+1)
		}
		if out := w.run("s2", "hello"); out.Err != nil {
			t.Errorf("another session: %v, want a turn", out.Err)
		}
	})
}

// asking is a plugin that calls models itself.
type asking struct{ c plugin.Context }

func (*asking) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: "asking", Version: "1.0.0", Category: plugin.Skill}
}

func (*asking) Subscriptions() []string { return nil }

func (p *asking) OnLoad(_ context.Context, c plugin.Context) error {
	p.c = c
	return nil
}
func (*asking) OnUnload(context.Context, plugin.Context) error             { return nil }
func (*asking) OnEvent(context.Context, event.Event, plugin.Context) error { return nil }

// MIS-3: calls of models that plugins make themselves count to their session and to the day, and end at
// a limit; so do the turns beside them.
func TestBudgetOfPlugins(t *testing.T) {
	p, a := &tight{window: 8192, price: 0.01}, &asking{}
	settings := map[string]string{"provider": `"test-tight"`, budget.SessionKey: `2`, budget.DayKey: `4`}
	inBubble(t, setup{plugins: []plugin.Plugin{p, a}, settings: settings}, func(t *testing.T, w *world) {
		call := func(session string) error {
			_, err := a.c.Request(t.Context(), event.LLMCallRequest.Name(), session, json.RawMessage(`{"provider":"test-tight","messages":[{"role":"user","content":"hello"}]}`))
			synctest.Wait() // until it is counted
			return err
		}
		for n := range 2 {
			if err := call("s1"); err != nil {
				t.Fatalf("call %d within the limits: %v", n, err)
			}
		}
		refused := func(name string, err error, key string) {
			t.Helper()
			if err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "raise the limit") {
				t.Errorf("%s: %v, want an error that names %s", name, err, key)
			}
		}
		refused("a request at the limit of the session", call("s1"), budget.SessionKey)
		refused("one of a sub-agent", call("s1"+event.AgentSeparator+"a"), budget.SessionKey)
		refused("an event", a.c.Emit(event.LLMCallRequest.Name(), "s1", map[string]any{"provider": "test-tight"}), budget.SessionKey)
		out := w.run("s1", "hello")
		refused("a turn of the session", out.Err, budget.SessionKey)
		for n := range 2 {
			if err := call("s2"); err != nil {
				t.Fatalf("call %d of another session: %v", n, err)
			}
		}
		refused("a request at the limit of the day", call("s3"), budget.DayKey)
		if got := len(p.requests); got != 4 {
			t.Errorf("the model was called %d times, want 4", got)
		}
	})
}
