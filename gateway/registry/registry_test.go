package registry_test

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/gateway/registry"
)

// W-29…W-33: patches add up, null removes, and what is not newer is ignored,
// whatever order it comes in.
func TestLastWriterWins(t *testing.T) {
	var a registry.Agents
	if a.Update(registry.UpdateAgent{ID: "x", Status: registry.Running, Index: 1}) || a.Kill(registry.KillAgent{ID: "x", Index: 1}) || len(a.List()) != 0 {
		t.Error("an unknown agent was changed")
	}
	a.Register(registry.RegisterAgent{ID: "x", KernelID: "k", Skill: "chat", Index: 2, Meta: map[string]any{"m": 1}})
	got, _ := a.Get("x")
	if got.Status != "idle" || got.Index != 2 || got.Meta["m"] != 1 {
		t.Errorf("%+v", got)
	}
	update := func(index int64, status string, patch map[string]any, want bool) {
		t.Helper()
		if a.Update(registry.UpdateAgent{ID: "x", Status: status, ContextPatch: patch, Index: index}) != want {
			t.Errorf("update %d: not %v", index, want)
		}
	}
	update(5, registry.Running, map[string]any{"a": 1, "b": map[string]any{"c": 2, "d": 3}}, true)
	update(4, registry.Failed, map[string]any{"a": 0}, false)
	update(5, registry.Failed, map[string]any{"a": 0}, false) // equal is not newer
	update(6, registry.Idle, map[string]any{"a": nil, "b": map[string]any{"c": nil, "e": 4}}, true)
	got, _ = a.Get("x")
	if got.Status != "idle" || got.Index != 6 || !reflect.DeepEqual(got.Context, map[string]any{"b": map[string]any{"d": 3, "e": 4}}) {
		t.Errorf("%+v", got)
	}
	update(7, registry.Paused, map[string]any{"big": strings.Repeat("x", registry.MaxContext)}, true)
	if got, _ = a.Get("x"); got.Status != "paused" || got.Context["big"] != nil {
		t.Error("a context grows without bound")
	}
	if a.Kill(registry.KillAgent{ID: "x", Index: 7}) || !a.Kill(registry.KillAgent{ID: "x", Index: 9}) {
		t.Error("kill")
	}
	if a.Register(registry.RegisterAgent{ID: "x", Index: 8}) || !a.Register(registry.RegisterAgent{ID: "x", Index: 10}) {
		t.Error("a killed agent comes back by an older change, or does not by a newer")
	}
	if a.Count("") != 1 || a.Count("k") != 0 {
		t.Error("count")
	}
	a.Replace([]registry.Agent{{ID: "y"}, {ID: "b"}})
	if l := a.List(); len(l) != 2 || l[0].ID != "b" {
		t.Errorf("%+v", l)
	}
}

// W-34: entropy and drift are what their formulas say.
func TestMix(t *testing.T) {
	var m registry.Mix
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 0.01 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("entropy of nothing", m.Entropy(), 0)
	near("drift of nothing", m.Drift(), 0)
	for range 64 {
		m.Add("a")
	}
	near("entropy of one kind", m.Entropy(), 0)
	for range 64 {
		m.Add("b")
	}
	near("entropy of two kinds alike", m.Entropy(), 1)
	near("drift while everything is recent", m.Drift(), 0)
	for range 64 {
		m.Add("c")
	}
	for range 64 {
		m.Add("c")
	}
	near("entropy of ¼ ¼ ½", m.Entropy(), 1.5/math.Log2(3))
	for range 256 * 40 { // ever since something else
		m.Add("d")
	}
	near("drift once the new is the usual", m.Drift(), 0.01)
	for range 256 {
		m.Add("e")
	}
	if d := m.Drift(); d < 0.85 || d > 1 {
		t.Errorf("drift of something never done before is %v", d)
	}
	for n := range 5000 { // bounded
		m.Add(fmt.Sprint(n))
	}
	if e := m.Entropy(); e < 0 || e > 1 {
		t.Errorf("entropy is %v", e)
	}
}

// W-42, W-43: verdicts follow from what was measured, and not before there is
// enough of it.
func TestFitness(t *testing.T) {
	var f registry.Fitness
	for n := range 19 {
		if v, _ := f.Add(true, time.Millisecond); v != registry.Unchanged {
			t.Fatalf("a verdict after %d", n+1)
		}
	}
	if v, score := f.Add(true, time.Millisecond); v != registry.Promote || score < 0.99 {
		t.Errorf("after 20 successes: %v, %v", v, score)
	}
	if v, _ := f.Add(true, time.Millisecond); v != registry.Unchanged {
		t.Error("it is promoted twice")
	}
	failures := 0
	for v := registry.Unchanged; v != registry.Demote; failures++ {
		if failures > 50 {
			t.Fatal("it is never demoted")
		}
		v, _ = f.Add(false, time.Millisecond)
	}
	if failures != 21 { // of 42, half have failed
		t.Errorf("demoted after %d failures", failures)
	}
	var slow registry.Fitness
	for range 50 {
		if v, score := slow.Add(true, 10*time.Second); v != registry.Unchanged || math.Abs(score-0.5) > 0.01 {
			t.Fatalf("a slow skill: %v, %v", v, score)
		}
	}
	if slow.Score() > 0.51 {
		t.Error(slow.Score())
	}
}
