package plugin_test

import (
	"context"
	"encoding/json"
	"errors"
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
	during func() // called in the middle of Prepare
}

func newSlow(version string) *slow {
	s := &slow{fake: *of(plugin.Tool, "tongs", "user.message.received")} //nolint:govet // not used yet
	s.m.Version = version
	s.onLoad = func(c plugin.Context) error { return c.RegisterTool(tongs(version)) }
	return s
}

func (s *slow) Prepare(context.Context, plugin.Context) error {
	s.note("prepare")
	time.Sleep(time.Second)
	if s.during != nil {
		s.during()
	}
	return s.fails
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

// One whose tools cannot be registered leaves none behind.
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

// A plugin that is loaded, and does not work, says why.
func TestTrouble(t *testing.T) {
	w := newWorld(t)
	w.Load(t.Context(), false, &troubled{*of(plugin.Skill, "sad")}) //nolint:govet // not used yet
	if got := w.status("sad"); got.Status != plugin.Loaded || got.Error != "its process has ended" {
		t.Errorf("it is %+v, want it loaded, with its trouble", got)
	}
}

type troubled struct{ fake }

func (*troubled) Trouble() error { return errors.New("its process has ended\nin tears") }
