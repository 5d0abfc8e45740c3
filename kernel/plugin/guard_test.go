package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// sentry is a fake that guards.
type sentry struct {
	fake
	decide func(ctx context.Context, q plugin.Question) (tool.Verdict, error)
}

func (s *sentry) Decide(ctx context.Context, q plugin.Question) (tool.Verdict, error) {
	return s.decide(ctx, q)
}

func says(d tool.Decision, reason string) func(context.Context, plugin.Question) (tool.Verdict, error) {
	return func(context.Context, plugin.Question) (tool.Verdict, error) {
		return tool.Verdict{Decision: d, Reason: reason}, nil
	}
}

func guard(name string, decide func(context.Context, plugin.Question) (tool.Verdict, error), points ...string) *sentry {
	s := &sentry{fake: *of(plugin.Skill, name), decide: decide} //nolint:govet // its mutex is not in use yet
	s.m.Guards = points
	return s
}

// hammer is a tool that may only be read, so that the policy allows it.
type hammer struct{ hits int }

func (*hammer) Definition() tool.Definition {
	return tool.Definition{Name: "hammer", Description: "Hits.", InputSchema: json.RawMessage(`{"type":"object"}`), Kind: tool.KindRead}
}

func (h *hammer) Invoke(context.Context, tool.Call) (tool.Result, error) {
	h.hits++
	return tool.Result{OK: true, Display: []tool.Block{tool.Text("hit")}}, nil
}

// policy always says the same.
type policy tool.Decision

func (p policy) Decide(context.Context, tool.Call, tool.Definition) (tool.Verdict, error) {
	return tool.Verdict{Decision: tool.Decision(p), Reason: "the rule"}, nil
}

// person answers all asks.
type person struct{ asked int }

func (p *person) Approve(context.Context, tool.Call, tool.Definition, string) error {
	p.asked++
	return &tool.RejectedError{Feedback: "no, said the person"}
}

// hit calls the hammer, as an agent does.
func (w *world) hit(ctx context.Context, says tool.Decision) (res tool.Result, asked int) {
	w.t.Helper()
	someone, reg := new(person), new(tool.Registry)
	if err := reg.Register(new(hammer)); err != nil {
		w.t.Fatal(err)
	}
	d := tool.NewDispatcher(tool.DispatcherConfig{Registry: reg, Policy: policy(says), Approver: someone})
	d.SetWitness(func(tool.Change) (func() error, error) { return func() error { return nil }, nil })
	d.AddHook(w.Registry)
	res = d.Call(ctx, reg.Snapshot(), tool.Call{ID: "c", Name: "hammer", Args: json.RawMessage(`{"at":"nail"}`), SessionID: "s1", Origin: tool.OriginLoop, Caller: tool.Caller{Principal: "agent:react"}})
	if err := d.Close(context.Background()); err != nil {
		w.t.Error(err)
	}
	return res, someone.asked
}

// denies checks that a call is denied, with a reason that has all parts.
func (w *world) denies(parts ...string) {
	w.t.Helper()
	res, _ := w.hit(context.Background(), tool.Allow)
	if res.OK || res.ErrorKind != tool.ErrRejected || !res.NotRun {
		w.t.Errorf("the call = %+v, want it denied", res)
	}
	for _, part := range parts {
		if !strings.Contains(res.Text(), part) {
			w.t.Errorf("the reason is %q, want %q in it", res.Text(), part)
		}
	}
}

// R26, PL-03: the strictest of guards, rules and people counts, and a guard lifts nothing.
func TestGuardsOnlyMakeStricter(t *testing.T) {
	for _, c := range []struct {
		name   string
		rule   tool.Decision
		guards []tool.Decision
		ran    bool
		asked  int
		want   string
	}{
		{"no guard", tool.Allow, nil, true, 0, "hit"},
		{"no objection", tool.Allow, []tool.Decision{tool.Allow}, true, 0, "hit"},
		{"allow against a rule", tool.Deny, []tool.Decision{tool.Allow}, false, 0, "the rule"},
		{"allow against a question", tool.Ask, []tool.Decision{tool.Allow}, false, 1, "no, said the person"},
		{"ask", tool.Allow, []tool.Decision{tool.Ask}, false, 1, "no, said the person"},
		{"deny", tool.Allow, []tool.Decision{tool.Deny}, false, 0, "plugin g0: because"},
		{"deny beside others", tool.Allow, []tool.Decision{tool.Allow, tool.Ask, tool.Deny, tool.Deny}, false, 0, "plugin g2: because"},
		{"no decision", tool.Allow, []tool.Decision{tool.Decision(9)}, false, 0, "plugin g0 guards calls of tools, and its answer 9 is not a decision"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var denials []plugin.Denial
			w := newWorld(t, func(cfg *plugin.Config) {
				cfg.Denied = func(d plugin.Denial) error { denials = append(denials, d); return nil }
			})
			for i, d := range c.guards {
				w.Load(t.Context(), false, guard("g"+string(rune('0'+i)), says(d, "because"), plugin.GuardTool))
			}
			res, asked := w.hit(t.Context(), c.rule)
			if res.OK != c.ran || asked != c.asked || !strings.Contains(res.Text(), c.want) {
				t.Errorf("the call = %+v after %d asks, want OK %v, %d asks and %q", res, asked, c.ran, c.asked, c.want)
			}
			if strings.HasPrefix(c.want, "plugin g") != (len(denials) == 1) {
				t.Errorf("the audit got %+v, want the denial of a guard alone", denials)
			}
			for _, d := range denials {
				if !strings.Contains(c.want, "plugin "+d.Plugin) || d.Tool != "hammer" || d.Principal != "agent:react" || d.Session != "s1" || d.Point != plugin.GuardTool {
					t.Errorf("the audit got %+v, want who denied what", d)
				}
			}
		})
	}
}

// PL-03: a guard sees the call, and only that at the points that it names.
func TestGuardSees(t *testing.T) {
	w := newWorld(t)
	var seen []plugin.Question
	w.Load(t.Context(), false, guard("g", func(_ context.Context, q plugin.Question) (tool.Verdict, error) {
		seen = append(seen, q)
		return tool.Verdict{}, nil
	}, plugin.GuardTool))
	if err := w.Admit(t.Context(), "s1", "hello"); err != nil {
		t.Errorf("Admit() = %v, want no guard of messages", err)
	}
	if res, _ := w.hit(t.Context(), tool.Allow); !res.OK {
		t.Errorf("the call = %+v, want it to run", res)
	}
	if len(seen) != 1 || string(seen[0].Call.Args) != `{"at":"nail"}` || seen[0].Def.Name != "hammer" || seen[0].Session != "s1" {
		t.Errorf("the guard saw %+v, want the call of the tool", seen)
	}
	if got := w.status("g").Guards; !slices.Equal(got, []string{plugin.GuardTool}) {
		t.Errorf("it is listed with the guards %v, want %s", got, plugin.GuardTool)
	}
	own := tool.Definition{Name: tool.TrustQuestion, Identity: tool.Identity{Tool: tool.TrustQuestion}}
	if v, err := w.PreToolCall(t.Context(), tool.Call{SessionID: "s1"}, own); err != nil || v.Decision != tool.Abstain || len(seen) != 1 {
		t.Errorf("a question about a folder: %+v, %v, and %d questions to the guard; want that it is not asked", v, err, len(seen))
	}
	theirs := tool.Definition{Name: tool.TrustQuestion, Identity: tool.Identity{Provider: "srv", Tool: tool.TrustQuestion}}
	if _, err := w.PreToolCall(t.Context(), tool.Call{SessionID: "s1"}, theirs); err != nil || len(seen) != 2 {
		t.Errorf("what a server names like that question: %v, and %d questions to the guard; want that it is asked", err, len(seen))
	}
}

// R26: a guard that fails, in whichever way, denies, and its reason names it.
func TestGuardsFailClosed(t *testing.T) {
	fails := map[string]struct {
		decide func(ctx context.Context, q plugin.Question) (tool.Verdict, error)
		want   string
	}{
		"error": {func(context.Context, plugin.Question) (tool.Verdict, error) {
			return tool.Verdict{}, errors.New("no disk")
		}, "it has failed: no disk"},
		"allow with an error": {func(context.Context, plugin.Question) (tool.Verdict, error) {
			return tool.Verdict{Decision: tool.Allow}, errors.New("no disk")
		}, "it has failed: no disk"},
		"panic": {func(context.Context, plugin.Question) (tool.Verdict, error) { panic("boom") }, "it has failed: panic: boom"},
		"hang": {func(ctx context.Context, _ plugin.Question) (tool.Verdict, error) {
			<-ctx.Done()
			return tool.Verdict{}, context.Cause(ctx)
		}, "it has failed: it has not answered in time: 10s"},
	}
	for name, c := range fails {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.Load(t.Context(), false, guard("sentry", c.decide, plugin.GuardTool, plugin.GuardPrompt), guard("other", says(tool.Allow, ""), plugin.GuardTool))
				start := time.Now()
				w.denies("plugin sentry guards calls of tools, and "+c.want, "denied")
				if err := w.Admit(t.Context(), "s1", "hello"); !errors.Is(err, plugin.ErrDenied) || !strings.Contains(err.Error(), "plugin sentry guards messages to the model, and "+c.want) {
					t.Errorf("Admit() = %v, want it denied", err)
				}
				if took := time.Since(start); took != 0 && took != 20*time.Second {
					t.Errorf("the guard was waited for %v, want its time", took)
				}
			})
		})
	}
}

// A caller that goes is neither a failure of a guard nor a denial for the audit.
func TestGuardOfACallThatIsCancelled(t *testing.T) {
	denied := 0
	w := newWorld(t, func(cfg *plugin.Config) { cfg.Denied = func(plugin.Denial) error { denied++; return nil } })
	ctx, cancel := context.WithCancel(t.Context())
	w.Load(t.Context(), false, guard("g", func(ctx context.Context, _ plugin.Question) (tool.Verdict, error) {
		cancel()
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), plugin.ErrGuardTime) {
			t.Error("the cause is the guard's time, want the caller's")
		}
		return tool.Verdict{}, ctx.Err()
	}, plugin.GuardTool))
	if res, _ := w.hit(ctx, tool.Allow); res.OK || denied != 0 {
		t.Errorf("the call = %+v with %d denials, want it not to run, and none", res, denied)
	}
}

// R26: a plugin guards from before its first start until a person removes it or switches it
// off: while it is loaded, after a failed start, after too many failures, and after a restart of
// yaya.
func TestGuardsWithoutTheirPlugin(t *testing.T) {
	w := newWorld(t)
	broken := errors.New("no license")
	g := guard("sentry", says(tool.Allow, ""), plugin.GuardTool)
	g.onLoad = func(plugin.Context) error {
		w.denies("plugin sentry guards calls of tools, and it is")
		return broken
	}
	w.Load(t.Context(), false, g)
	w.denies("it is not running: no license; yaya plugin reload sentry starts it again")
	broken = nil
	if err := w.Reload(t.Context(), "sentry"); err != nil {
		t.Fatal(err)
	}
	if res, _ := w.hit(t.Context(), tool.Allow); !res.OK {
		t.Errorf("the call = %+v, want it to run", res)
	}
	for range 3 {
		g.ctx.Report(errors.New("a bad day"))
	}
	eventually.True(t, "the plugin has failed", func() bool { return w.status("sentry").Status == plugin.Failed })
	w.denies("it is not running: 3 failures in a row, the last: a bad day")

	// Its successor says that it guards nothing, and does not start: perhaps its files were changed.
	next := guard("sentry", says(tool.Allow, ""))
	next.onLoad = func(plugin.Context) error {
		w.denies("it is being started")
		return errors.New("its files have changed")
	}
	if err := w.Replace(t.Context(), next); err == nil {
		t.Error("Replace() = nil, want the failure to start")
	}
	w.denies("its files have changed")

	// Another process finds it guarding before anything is loaded, and though it cannot be read.
	again := newWorld(t, func(cfg *plugin.Config) { cfg.State = w.root })
	if err := again.Expect(); err != nil {
		t.Fatal(err)
	}
	again.denies("it is being started")
	if got := again.Missing(); !slices.Equal(got, []string{"sentry"}) {
		t.Errorf("Missing() = %v, want the guard", got)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "sentry", "guards.json"), []byte("["), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := newWorld(t, func(cfg *plugin.Config) { cfg.State = w.root })
	if err := damaged.Expect(); err != nil {
		t.Fatal(err)
	}
	damaged.denies("it is being started")
	if err := damaged.Admit(t.Context(), "s1", "hello"); !errors.Is(err, plugin.ErrDenied) {
		t.Errorf("Admit() = %v, want a guard of everything when nobody can say what it guards", err)
	}

	// One that starts and guards nothing is not asked.
	next.onLoad = nil
	if err := w.Replace(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if res, _ := w.hit(t.Context(), tool.Allow); !res.OK || w.Wants(tool.OriginMCP) {
		t.Errorf("the call = %+v, want nobody to guard it", res)
	}
	if _, err := os.Lstat(filepath.Join(w.dir, "sentry", "guards.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what it guards is still written down: %v", err)
	}
}

// A person ends a guard: by removing it, or by switching it off while it does not work.
func TestGuardsEnd(t *testing.T) {
	fails := guard("fails", says(tool.Allow, ""), plugin.GuardTool)
	fails.onLoad = func(plugin.Context) error { return errors.New("no license") }
	for name, end := range map[string]func(w *world) error{
		"uninstalled": func(w *world) error { return w.Forget("fails") },
		"switched off": func(w *world) error {
			return w.cfg.Set("plugin.fails.enabled", json.RawMessage(`false`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.Load(t.Context(), false, fails)
			w.denies("plugin fails")
			if err := end(w); err != nil {
				t.Fatal(err)
			}
			if res, _ := w.hit(t.Context(), tool.Allow); !res.OK {
				t.Errorf("the call = %+v, want nobody to guard it", res)
			}
		})
	}
	// One that works guards on until it is loaded again, like every change of the setting.
	w := newWorld(t)
	w.Load(t.Context(), false, guard("g", says(tool.Deny, "no"), plugin.GuardTool))
	if err := w.cfg.Set("plugin.g.enabled", json.RawMessage(`false`)); err != nil {
		t.Fatal(err)
	}
	w.denies("plugin g: no")
	if err := w.Reload(t.Context(), "g"); err == nil {
		t.Error("Reload() = nil, want that it is switched off")
	}
	if res, _ := w.hit(t.Context(), tool.Allow); !res.OK {
		t.Errorf("the call = %+v, want nobody to guard it", res)
	}
	if err := w.cfg.Set("plugin.g.enabled", json.RawMessage(`true`)); err != nil {
		t.Fatal(err)
	}
	if res, _ := w.hit(t.Context(), tool.Allow); !res.OK {
		t.Errorf("the call = %+v, want it to guard from its next start on", res)
	}
}

// Messages are denied by guards that deny or ask, those to sub-agents, too: people can send them.
func TestGuardedMessages(t *testing.T) {
	for decision, denied := range map[tool.Decision]bool{tool.Allow: false, tool.Ask: true, tool.Deny: true} {
		w := newWorld(t)
		var heard []string
		w.Load(t.Context(), false, guard("g", func(_ context.Context, q plugin.Question) (tool.Verdict, error) {
			heard = append(heard, q.Session+": "+q.Prompt)
			return tool.Verdict{Decision: decision, Reason: "not that"}, nil
		}, plugin.GuardPrompt))
		err := w.Admit(t.Context(), "s1", "the password is x")
		if errors.Is(err, plugin.ErrDenied) != denied || denied && !strings.Contains(err.Error(), "plugin g: not that") {
			t.Errorf("decision %v: Admit() = %v, want a denial: %v", decision, err, denied)
		}
		if err := w.Admit(t.Context(), "s1::agent::1", "go on"); errors.Is(err, plugin.ErrDenied) != denied {
			t.Errorf("decision %v: a sub-agent: Admit() = %v, want a denial: %v", decision, err, denied)
		}
		equal(t, heard, "s1: the password is x", "s1::agent::1: go on")
		if res, _ := w.hit(t.Context(), tool.Allow); !res.OK {
			t.Errorf("the call = %+v, want no guard of calls", res)
		}
	}
}

// Calls and messages that are too large for a guard are denied unasked.
func TestGuardsAreNotFlooded(t *testing.T) {
	w := newWorld(t)
	w.Load(t.Context(), false, guard("g", says(tool.Allow, ""), plugin.GuardPrompt))
	if err := w.Admit(t.Context(), "s1", strings.Repeat("x", 4<<20)); err != nil {
		t.Errorf("4 MiB: %v, want it asked", err)
	}
	if err := w.Admit(t.Context(), "s1", strings.Repeat("x", 4<<20+1)); !errors.Is(err, plugin.ErrDenied) || !strings.Contains(err.Error(), "more than 4 MiB") {
		t.Errorf("more than 4 MiB: %v, want it denied", err)
	}
}

func TestGuardsOfManifests(t *testing.T) {
	for _, guards := range [][]string{{"post_tool"}, {plugin.GuardTool, plugin.GuardTool}} {
		m := of(plugin.Tool, "x").m
		m.Guards = guards
		if err := m.Check(); err == nil {
			t.Errorf("Check() of the guards %q = nil, want an error", guards)
		}
	}
	w := newWorld(t)
	f := of(plugin.Tool, "x")
	f.m.Guards = []string{plugin.GuardTool}
	w.Load(t.Context(), false, f)
	if s := w.Snapshot()[0]; s.Status != plugin.Failed || !strings.Contains(s.Error, "cannot be asked") {
		t.Errorf("got %+v, want %s: it cannot be asked", s, plugin.Failed)
	}
}
