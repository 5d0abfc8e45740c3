package agents_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/gateway/plane/agents"
)

// W-29…W-33: patches add up, null removes, and what is not newer is ignored,
// whatever order it comes in.
func TestLastWriterWins(t *testing.T) {
	var a agents.Set
	if a.Update(agents.UpdateAgent{ID: "x", Status: agents.Running, Index: 1}) || a.Kill(agents.KillAgent{ID: "x", Index: 1}) || len(a.List()) != 0 {
		t.Error("an unknown agent was changed")
	}
	a.Register(agents.RegisterAgent{ID: "x", KernelID: "k", Skill: "chat", Index: 2, Meta: map[string]any{"m": 1}})
	got, _ := a.Get("x")
	if got.Status != "idle" || got.Index != 2 || got.Meta["m"] != 1 {
		t.Errorf(`got %+v, want Status "idle", Index 2, m 1`, got)
	}
	update := func(index int64, status string, patch map[string]any, want bool) {
		t.Helper()
		if a.Update(agents.UpdateAgent{ID: "x", Status: status, ContextPatch: patch, Index: index}) != want {
			t.Errorf("update %d: not %v", index, want)
		}
	}
	update(5, agents.Running, map[string]any{"a": 1, "b": map[string]any{"c": 2, "d": 3}}, true)
	update(4, agents.Failed, map[string]any{"a": 0}, false)
	update(5, agents.Failed, map[string]any{"a": 0}, true) // the later of two after the same entry
	update(6, agents.Idle, map[string]any{"a": nil, "b": map[string]any{"c": nil, "e": 4}}, true)
	got, _ = a.Get("x")
	if got.Status != "idle" || got.Index != 6 || !reflect.DeepEqual(got.Context, map[string]any{"b": map[string]any{"d": 3, "e": 4}}) {
		t.Errorf("got %+v, want the status idle, index 6 and the merged context", got)
	}
	update(7, agents.Paused, map[string]any{"big": strings.Repeat("x", agents.MaxContext)}, true)
	if got, _ = a.Get("x"); got.Status != "paused" || got.Context["big"] != nil {
		t.Error("a context grows without bound")
	}
	if a.Kill(agents.KillAgent{ID: "x", Index: 7}) || !a.Kill(agents.KillAgent{ID: "x", Index: 9}) {
		t.Error("kill")
	}
	if a.Register(agents.RegisterAgent{ID: "x", Index: 8}) || !a.Register(agents.RegisterAgent{ID: "x", Index: 10}) {
		t.Error("a killed agent comes back by an older change, or does not by a newer")
	}
	if a.Count("") != 1 || a.Count("k") != 0 {
		t.Error("count")
	}
	a.Replace([]agents.Agent{{ID: "y"}, {ID: "b"}})
	if l := a.List(); len(l) != 2 || l[0].ID != "b" {
		t.Errorf(`got %+v, want len(l) 2, l[0].ID "b"`, l)
	}
}
