package agents_test

import (
	"fmt"
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
	update(5, agents.Failed, map[string]any{"a": 0}, false)
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

// W-31: only agents whose newest change is an update are reported with their state, by index, and
// after a renewal all are.
func TestUpdated(t *testing.T) {
	var a agents.Set
	for i, id := range []string{"x", "y", "z"} {
		a.Register(agents.RegisterAgent{ID: id, Index: int64(10 + i)})
	}
	a.Update(agents.UpdateAgent{ID: "z", Index: 20})
	a.Update(agents.UpdateAgent{ID: "x", Index: 21})
	got := func(after, upTo int64) (out string) {
		for _, x := range a.Updated(after, upTo) {
			out += fmt.Sprint(x.ID, x.Index, " ")
		}
		return out
	}
	for _, tt := range []struct {
		after, upTo int64
		want        string
	}{{0, 100, "z20 x21 "}, {20, 100, "x21 "}, {19, 20, "z20 "}, {21, 100, ""}} {
		if s := got(tt.after, tt.upTo); s != tt.want {
			t.Errorf("Updated(%d, %d) = %q, want %q", tt.after, tt.upTo, s, tt.want)
		}
	}
	if last := a.Renew(30); last != 33 || got(0, 100) != "y31 z32 x33 " {
		t.Errorf("Renew(30) = %d, %q, want 33 and all in the order that they had", last, got(0, 100))
	}
}
