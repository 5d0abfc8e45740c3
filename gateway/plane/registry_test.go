package plane_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/plane/agents"
	"github.com/yaya-ai/yaya/gateway/wire/wiretest"
)

// CL-12: the agents of a kernel are bounded in size and number, a change that is too much
// leaves nothing, and text in it stays the text that it is.
func TestHostileRegistry(t *testing.T) {
	w := wiretest.New(t)
	k := w.Connect(w.Enroll("server2", auth.KernelAttach, auth.AgentsRead), false, true)
	k.Join("kernel:k2", nil)
	register := func(id string, meta any) (string, string) {
		t.Helper()
		status, res := k.Ask("kernel:k2", "register_agent", map[string]any{"type": "register_agent", "id": id, "kernel_id": "k2", "skill": "sum", "status": "idle", "meta": meta})
		return status, fmt.Sprint(res["reason"])
	}
	size := func(n int) map[string]any { return map[string]any{"text": strings.Repeat("x", n)} }
	for what, c := range map[string]struct {
		id   string
		meta any
		want string
	}{
		"a MiB":        {"a1", size(1<<20 - 1000), "at most 16384 bytes"},
		"one too much": {"a1", size(16 << 10), "at most 16384 bytes"},
		"no object":    {"a1", []int{1}, ""},
		"a long id":    {strings.Repeat("x", control.MaxName+1), nil, "an agent is"},
		"no id":        {"", nil, "an agent is"},
	} {
		if status, why := register(c.id, c.meta); status != "error" || !strings.Contains(why, c.want) {
			t.Errorf("%s: %s %s, want the error %s", what, status, why, c.want)
		}
	}
	if all, _ := w.Plane.Agents(); len(all) != 0 {
		t.Fatalf("%d agents are registered that were refused", len(all))
	}
	longest := strings.Repeat("x", control.MaxName)
	if status, why := register(longest, size(15<<10)); status != "ok" {
		t.Fatalf("an agent as large as one may be: %s", why)
	}
	if status, res := k.Ask("kernel:k2", "kill_agent", map[string]any{"type": "kill_agent", "id": longest}); status != "ok" {
		t.Fatal(res)
	}
	const script = "<script>alert(1)</script><img src=x onerror=alert(1)>"
	evil := map[string]any{"url": "javascript:alert(1)", "name": script, "__proto__": map[string]any{"x": 1}, "home": "http://127.0.0.1:1/\u0000"}
	if status, why := register("evil", evil); status != "ok" {
		t.Fatalf("text is refused: %s", why)
	}
	for what, a := range map[string]func() any{
		"the agent": func() any { a, _ := w.Plane.Agent("evil"); return a.Meta },
		"the lobby": func() any {
			for _, x := range k.Join("agent:lobby", nil)["agents"].([]any) {
				return x.(map[string]any)["meta"]
			}
			return nil
		},
	} {
		if got, want := fmt.Sprint(a()), fmt.Sprint(evil); got != want {
			t.Errorf("%s has %s, want %s as it is", what, got, want)
		}
	}
	for i := range 10 { // each as large as one may be, and together more than a context holds
		status, res := k.Ask("kernel:k2", "update_agent", map[string]any{"type": "update_agent", "id": "evil", "status": "running", "context_patch": map[string]any{fmt.Sprint("k", i): strings.Repeat("x", 15<<10)}})
		if status != "ok" && !strings.Contains(fmt.Sprint(res["reason"]), "bytes") {
			t.Fatalf("an update: %s %v", status, res)
		}
	}
	a, err := w.Plane.Agent("evil")
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := json.Marshal(a.Context); err != nil || len(raw) > agents.MaxContext {
		t.Errorf("the context of an agent has %d bytes, %v, want at most %d", len(raw), err, agents.MaxContext)
	}
}

// CL-12: a kernel has so many agents and no more, and takes others when some have gone.
func TestManyAgents(t *testing.T) {
	w := wiretest.New(t)
	k := w.Connect(w.Enroll("server2", auth.KernelAttach, auth.AgentsRead), false, true)
	k.Join("kernel:k2", nil)
	ask := func(event, id string) (string, string) {
		t.Helper()
		payload := map[string]any{"type": event, "id": id}
		if event == "register_agent" {
			payload["kernel_id"], payload["skill"], payload["status"] = "k2", "sum", "idle"
		}
		status, res := k.Ask("kernel:k2", event, payload)
		return status, fmt.Sprint(res["reason"])
	}
	const most = 2000
	for i := range most {
		if status, why := ask("register_agent", fmt.Sprint("a", i)); status != "ok" {
			t.Fatalf("agent %d: %s", i, why)
		}
	}
	if status, why := ask("register_agent", "more"); status != "error" || !strings.Contains(why, "too many agents") {
		t.Errorf("one agent too many: %s %s, want an error", status, why)
	}
	if status, why := ask("kill_agent", "a0"); status != "ok" {
		t.Fatal(why)
	}
	if status, why := ask("register_agent", "more"); status != "ok" {
		t.Errorf("an agent after one has gone: %s", why)
	}
}
