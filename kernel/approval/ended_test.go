package approval_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// People see which asks have ended, how, and when: the last 200, without arguments.
func TestEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.adapter(always(event.Approve, ""))
		def := tool.Definition{Name: "srv__x", Identity: tool.Identity{Provider: "srv", Tool: "x"}, Annotations: []byte(`{"readOnlyHint":true}`)}
		put := func(ctx context.Context, id string) error {
			return w.rt.Approve(ctx, tool.Call{ID: id, SessionID: "s", Args: []byte(`{"a":1}`), Why: "a rule says ask"}, def, "srv/x")
		}
		if err := put(t.Context(), "one"); err != nil {
			t.Fatal(err)
		}
		w.then(always(event.Reject, "not today"))
		if err := put(t.Context(), "two"); err == nil {
			t.Error("a rejected call was approved")
		}
		w.then(never)
		if err := put(t.Context(), "three"); !errors.Is(err, approval.ErrTimeout) {
			t.Errorf("Approve without an answer = %v, want %v", err, approval.ErrTimeout)
		}
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := put(gone, "four"); err == nil {
			t.Error("a call that is no longer wanted was approved")
		}
		var got []string
		for _, e := range w.rt.Ended() {
			if e.Params != nil || e.Def.Annotations != nil || e.Def.Identity.Provider != "srv" || e.Why != "a rule says ask" || e.At.IsZero() {
				t.Errorf("Ended has %+v, want the server, the reason and the time, and no arguments or annotations", e)
			}
			got = append(got, fmt.Sprintf("%s: %s %s by %q %s", e.CallID, e.Decision.Response, e.Decision.Feedback, e.Decision.By, e.Reason))
		}
		want := []string{`four:   by "" shutdown`, `three:   by "" timeout`, `two: reject not today by "web" `, `one: approve  by "web" `}
		if !slices.Equal(got, want) {
			t.Errorf("Ended = %q, want %q", got, want)
		}
		w.then(always(event.Approve, ""))
		for i := range 205 {
			if err := put(t.Context(), fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
		}
		if all := w.rt.Ended(); len(all) != 200 || all[0].CallID != "204" || all[199].CallID != "5" {
			t.Errorf("Ended has %d asks, want the last 200", len(all))
		}
	})
}

// An ask has the reason of the rule that asks, and none for a tool that always asks.
func TestAsksSayWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct{ rules, want string }{
			{``, ``},
			{`[{"decision":"ask"}]`, `a rule says ask`},
			{`[{"tool":"sh","decision":"ask","reason":"git push always asks"}]`, `git push always asks`},
		} {
			w := newWorld(t)
			w.adapter(always(event.Approve, ""))
			rules, err := approval.ParseRules([]byte(tt.rules), approval.Callers{})
			if err != nil {
				t.Fatal(err)
			}
			sh, err := tool.New(tool.Definition{Name: "sh", Kind: tool.KindExec, Description: "runs"}, func(context.Context, tool.Call, args) (tool.Result, error) { return tool.OK("ran"), nil })
			if err != nil {
				t.Fatal(err)
			}
			reg := new(tool.Registry)
			if err := reg.Register(sh); err != nil {
				t.Fatal(err)
			}
			d := tool.NewDispatcher(tool.DispatcherConfig{Registry: reg, Approver: w.rt, Policy: approval.Policy{Rules: func() ([]approval.Rule, error) { return rules, nil }}})
			if res := d.Call(t.Context(), reg.Snapshot(), tool.Call{Name: "sh", Args: []byte(`{"cmd":"x"}`), SessionID: "s", Caller: tool.Caller{Principal: "agent:test"}}); !res.OK {
				t.Fatalf("the call = %+v, want it to run", res)
			}
			if err := d.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if all := w.rt.Ended(); len(all) != 1 || all[0].Why != tt.want {
				t.Errorf("rules %s: Ended = %+v, want the reason %q", tt.rules, all, tt.want)
			}
		}
	})
}
