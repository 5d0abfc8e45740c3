package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// slow is a plugin whose loading takes time, with a tool that says its version.
type slow struct {
	fake
	fails  error
	tools  []string
	during func() // called in the middle of Prepare
}

func newSlow(version string) *slow {
	s := &slow{fake: *of(plugin.Tool, "tongs", "user.message.received")} //nolint:govet // not used yet
	s.m.Version = version
	s.onLoad = func(c plugin.Context) error { return c.RegisterTool(tongs(version)) }
	return s
}

func (s *slow) Prepare(context.Context, plugin.Context) ([]string, error) {
	s.note("prepare")
	time.Sleep(time.Second)
	if s.during != nil {
		s.during()
	}
	return s.tools, s.fails
}

// tongs is a tool that is described by a version.
type tongs string

func (t tongs) Definition() tool.Definition {
	return tool.Definition{Name: "tongs", Description: string(t), InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func (t tongs) Invoke(context.Context, tool.Call) (tool.Result, error) {
	return tool.Result{OK: true}, nil
}

// offered returns the description of the tool in each state of the registry from now on.
func (w *world) offered() (all func() []string) {
	var got []string
	stop := w.reg.Watch(func(uint64) {
		said := "none"
		if e, ok := w.reg.Snapshot().Lookup("tongs"); ok {
			said = e.Def.Description
		}
		got = append(got, said)
	})
	return func() []string { stop(); return slices.Compact(got) }
}

// Y-43: the tool of a plugin that is loaded again is never gone, and no event is lost.
func TestReplaceIsSeamless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		older, newer := newSlow("1.0.0"), newSlow("2.0.0")
		w.Load(t.Context(), false, older)
		newer.during = func() { w.say("s1"); synctest.Wait() }
		offered := w.offered()
		if err := w.Replace(t.Context(), newer); err != nil {
			t.Fatal(err)
		}
		w.say("s2")
		synctest.Wait()
		equal(t, offered(), "2.0.0")
		equal(t, older.notes(), "load", "user.message.received", "unload")
		equal(t, newer.notes(), "prepare", "load", "user.message.received")
		equal(t, w.events(), "plugin.loaded tongs 1.0.0 tool", "plugin.reloaded tongs 2.0.0")
		if err := w.Forget("tongs"); err != nil || w.reg.Snapshot().Len() != 0 {
			t.Errorf("Forget() = %v and leaves %d tools, want none", err, w.reg.Snapshot().Len())
		}
	})
}

// A successor that lacks a tool takes it away, and one that has failed meanwhile is replaced all the same.
func TestReplaceTakesToolsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		older, newer, last := newSlow("1.0.0"), newSlow("2.0.0"), newSlow("3.0.0")
		w.Load(t.Context(), false, older)
		newer.onLoad = nil
		if err := w.Replace(t.Context(), newer); err != nil || w.reg.Snapshot().Len() != 0 {
			t.Errorf("Replace() = %v and leaves %d tools, want none", err, w.reg.Snapshot().Len())
		}
		last.during = func() {
			for range 3 {
				newer.ctx.Report(errors.New("broken"))
			}
			synctest.Wait()
		}
		if err := w.Replace(t.Context(), last); err != nil || w.reg.Snapshot().Len() != 1 {
			t.Errorf("Replace() of one that fails meanwhile = %v, and there are %d tools, want one", err, w.reg.Snapshot().Len())
		}
		equal(t, newer.notes(), "prepare", "load", "unload")
		if got := w.Snapshot(); len(got) != 1 || got[0].Status != plugin.Loaded || got[0].Version != "3.0.0" {
			t.Errorf("Snapshot() = %+v, want version 3.0.0, loaded", got)
		}
	})
}

// A changed plugin that does not start leaves the one that works where it is, which says so, unless
// somebody wants the new one.
func TestRenewKeepsWhatWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		older, newer := newSlow("1.0.0"), newSlow("2.0.0")
		newer.fails = errors.New("no such file")
		w.Load(t.Context(), false, older)
		if err := w.Renew(t.Context(), newer); !errors.Is(err, newer.fails) {
			t.Errorf("Renew() = %v, want %v", err, newer.fails)
		}
		got := w.status("tongs")
		if got.Status != plugin.Loaded || got.Version != "1.0.0" || !strings.Contains(got.Error, "goes on: no such file") {
			t.Errorf("it is %+v, want version 1.0.0, loaded, with the reason why the new one is not", got)
		}
		fixed := newSlow("2.0.1")
		if err := w.Renew(t.Context(), fixed); err != nil || w.status("tongs").Error != "" {
			t.Errorf("Renew() = %v, with the error %q, want none", err, w.status("tongs").Error)
		}
		newer.onLoad = func(plugin.Context) error { return newer.fails }
		if err := w.Replace(t.Context(), newer); err == nil || w.status("tongs").Status != plugin.Failed || w.reg.Snapshot().Len() != 0 {
			t.Errorf("Replace() = %v, and it is %+v, want it to have failed", err, w.status("tongs"))
		}
	})
}

// A plugin whose tools cannot be registered leaves the one that works where it is, and the tools of
// others are theirs.
func TestToolsThatAreTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.reg.Register(new(hammer)); err != nil {
			t.Fatal(err)
		}
		w.Load(t.Context(), false, newSlow("1.0.0"))
		for want, tools := range map[string][]string{"two tools tongs": {"tongs", "tongs"}, "its tool hammer has the name": {"tongs", "hammer"}} {
			newer := newSlow("2.0.0")
			newer.tools = tools
			if err := w.Renew(t.Context(), newer); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Renew() = %v, want %q in it", err, want)
			}
			if got := w.status("tongs"); got.Status != plugin.Loaded || got.Version != "1.0.0" || w.reg.Snapshot().Len() != 2 {
				t.Errorf("it is %+v, and there are %d tools; want version 1.0.0, loaded, and 2", got, w.reg.Snapshot().Len())
			}
			equal(t, newer.notes(), "prepare", "unload")
		}
	})
}

// One whose tools cannot be registered, although it did not say so, leaves none behind.
func TestReplaceThatFailsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		older, newer := newSlow("1.0.0"), newSlow("2.0.0")
		w.Load(t.Context(), false, older)
		newer.onLoad = func(c plugin.Context) error {
			return errors.Join(c.RegisterTool(tongs("2.0.0")), c.RegisterTool(tongs("2.0.0")))
		}
		if err := w.Replace(t.Context(), newer); err == nil || w.reg.Snapshot().Len() != 0 || w.status("tongs").Status != plugin.Failed {
			t.Errorf("Replace() = %v, it is %+v, and there are %d tools; want it to have failed, and none", err, w.status("tongs"), w.reg.Snapshot().Len())
		}
		equal(t, older.notes(), "load", "unload")
	})
}

// watchman is a slow plugin that guards, and denies everything that it guards.
type watchman struct {
	*slow
	asked []string
}

func newWatchman(version string, points ...string) *watchman {
	s := newSlow(version)
	s.m.Guards = points
	return &watchman{slow: s}
}

func (s *watchman) Decide(_ context.Context, q plugin.Question) (tool.Verdict, error) {
	s.asked = append(s.asked, q.Point)
	if !slices.Contains(s.m.Guards, q.Point) {
		return tool.Verdict{}, errors.New("unknown method guard")
	}
	return tool.Verdict{Decision: tool.Deny, Reason: s.m.Version}, nil
}

// While a guard is replaced, the one that is loaded is asked about the points that it guards, and
// about no others; a question that it cannot answer any longer goes to the next one.
func TestReplacedGuards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var all []*watchman
		for i, points := range [][]string{{plugin.GuardPrompt}, {plugin.GuardPrompt, plugin.GuardTool}, {plugin.GuardTool}, nil} {
			all = append(all, newWatchman(fmt.Sprintf("%d.0.0", i+1), points...))
		}
		w.Load(t.Context(), false, all[0])
		for i, next := range all[1:] {
			was := all[i]
			check := func() {
				if slices.Contains(was.m.Guards, plugin.GuardTool) {
					w.denies(was.m.Version)
				} else if res, _ := w.hit(t.Context(), tool.Allow); !res.OK {
					t.Errorf("while %s is loaded the call = %+v, want it to run", was.m.Version, res)
				}
			}
			load := next.onLoad
			next.during = check
			next.onLoad = func(c plugin.Context) error { check(); return load(c) }
			if err := w.Renew(t.Context(), next); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if res, _ := w.hit(t.Context(), tool.Allow); !res.OK || w.status("tongs").Status != plugin.Loaded {
			t.Errorf("a call that nobody guards any longer = %+v, and the plugin is %+v", res, w.status("tongs"))
		}
		for _, s := range all {
			for _, point := range s.asked {
				if !slices.Contains(s.m.Guards, point) {
					t.Errorf("%s was asked about %s, which it does not guard", s.m.Version, point)
				}
			}
		}

		// The old one ends in the middle of a question, which the new one answers.
		last, busy := newWatchman("5.0.0", plugin.GuardTool), newWatchman("6.0.0", plugin.GuardTool)
		if err := w.Renew(t.Context(), last); err != nil {
			t.Fatal(err)
		}
		replaced := &replacedGuard{last, w, busy}
		if err := w.Replace(t.Context(), replaced); err != nil {
			t.Fatal(err)
		}
		w.denies("6.0.0")
	})
}

// replacedGuard is replaced while it is asked, and then has no answer.
type replacedGuard struct {
	*watchman
	w    *world
	next plugin.Plugin
}

func (g *replacedGuard) Decide(ctx context.Context, _ plugin.Question) (tool.Verdict, error) {
	if err := g.w.Replace(ctx, g.next); err != nil {
		return tool.Verdict{}, err
	}
	return tool.Verdict{}, errors.New("it has ended")
}

// The setting that switches a plugin off, or on, holds from the next start on, even if its files change.
func TestSwitchedOffWhileLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.Load(t.Context(), false, newSlow("1.0.0"))
		switchTo := func(on string) {
			t.Helper()
			if err := w.cfg.Set("plugin.tongs.enabled", json.RawMessage(on)); err != nil {
				t.Fatal(err)
			}
		}
		switchTo("false")
		for _, change := range []func(context.Context, plugin.Plugin) error{w.Renew, w.Replace, w.Restart} {
			if err := change(t.Context(), newSlow("2.0.0")); err != nil || w.status("tongs").Status != plugin.Loaded || w.reg.Snapshot().Len() != 1 {
				t.Errorf("a plugin that is switched off: %v, %+v; want it loaded until the next start", err, w.status("tongs"))
			}
		}

		off := newWorld(t)
		if err := off.cfg.Set("plugin.tongs.enabled", json.RawMessage("false")); err != nil {
			t.Fatal(err)
		}
		off.Load(t.Context(), false, newSlow("1.0.0"))
		if err := off.cfg.Set("plugin.tongs.enabled", json.RawMessage("true")); err != nil {
			t.Fatal(err)
		}
		if err := off.Renew(t.Context(), newSlow("2.0.0")); err != nil || off.status("tongs").Status != plugin.Unloaded {
			t.Errorf("a plugin that was off: %v, %+v; want it unloaded until the next start", err, off.status("tongs"))
		}
	})
}

// A tool that is no longer one, by mistake, stays what it was; an adapter ends before a tool starts.
func TestChangedCategories(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		older, newer := newSlow("1.0.0"), newSlow("2.0.0")
		newer.m.Category, newer.fails = plugin.Skill, errors.New("it says that it is a tool")
		w.Load(t.Context(), false, older)
		if err := w.Renew(t.Context(), newer); !errors.Is(err, newer.fails) || w.status("tongs").Version != "1.0.0" {
			t.Errorf("Renew() = %v, and it is %+v; want the old one", err, w.status("tongs"))
		}
		w = newWorld(t)
		port, next := adapter("tongs"), newSlow("2.0.0")
		next.onLoad = func(plugin.Context) error {
			equal(t, port.notes(), "load", "unload")
			return nil
		}
		w.Load(t.Context(), false, port)
		if err := w.Renew(t.Context(), next); err != nil {
			t.Errorf("Renew() = %v, want no error", err)
		}
		equal(t, next.notes(), "load")
	})
}

// A plugin that is loaded, and does not work, says why.
func TestTrouble(t *testing.T) {
	w := newWorld(t)
	w.Load(t.Context(), false, &troubled{*of(plugin.Skill, "sad")}) //nolint:govet // not used yet
	if got := w.status("sad"); got.Status != plugin.Loaded || got.Error != "its process has ended" {
		t.Errorf("it is %+v, want it loaded, with its trouble", got)
	}
	w.Stale("sad", errors.New("no such file"))
	if got := w.status("sad").Error; !strings.HasPrefix(got, "its process has ended; ") || !strings.Contains(got, "not loaded: no such file") || strings.Contains(got, "goes on") {
		t.Errorf("with changed files, its error is %q, want both, and not that it goes on", got)
	}
	if got := w.Doctor(t.Context(), time.Second); len(got) != 1 || got[0].Status != plugin.Degraded || !strings.Contains(fmt.Sprint(got), "no such file") {
		t.Errorf("Doctor() = %+v, want it degraded, because of its files", got)
	}
}

type troubled struct{ fake }

func (*troubled) Trouble() error { return errors.New("its process has ended\nin tears") }

// A plugin puts a tool in the place of its own, and of no other.
func TestRenewTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := newSlow("1.0.0")
		var before, after, unloaded error
		var have plugin.Context
		s.onLoad = func(c plugin.Context) error {
			have, before = c, c.RenewTool(tongs("1.0.0"))
			err := c.RegisterTool(tongs("1.0.0"))
			after = c.RenewTool(tongs("2.0.0"))
			return err
		}
		w.Load(t.Context(), false, s)
		if before == nil || !strings.Contains(before.Error(), "it has not registered it") || after != nil {
			t.Errorf("RenewTool before and after RegisterTool = %v, %v; want a refusal and no error", before, after)
		}
		if e, ok := w.reg.Snapshot().Lookup("tongs"); !ok || e.Def.Description != tongs("2.0.0").Definition().Description {
			t.Errorf("the tool is %+v, want the newer one", e)
		}
		if err := w.Stop(); err != nil {
			t.Fatal(err)
		}
		if unloaded = have.RenewTool(tongs("3.0.0")); unloaded == nil || w.reg.Snapshot().Len() != 0 {
			t.Errorf("RenewTool of a plugin that is unloaded = %v, with %d tools; want a refusal and none", unloaded, w.reg.Snapshot().Len())
		}
	})
}
