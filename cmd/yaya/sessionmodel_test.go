package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
)

// twoModels gives a box two services, of which a is active.
func (b *box) twoModels(a, other *fakellm.Server) {
	b.t.Helper()
	b.must("provider", "add", "main", "--base-url", a.URL+"/v1", "--model", "model-a", "--use")
	b.must("provider", "add", "other", "--base-url", other.URL+"/v1", "--model", "model-b")
}

func fakeModel(t *testing.T, steps ...fakellm.Step) *fakellm.Server {
	t.Helper()
	s := fakellm.New(steps...)
	t.Cleanup(s.Close)
	return s
}

// askedFor returns which models a service was asked for, one after the other.
func askedFor(s *fakellm.Server) string {
	var out []string
	for _, r := range s.Requests() {
		out = append(out, fmt.Sprint(r.Body["model"]))
	}
	return strings.Join(out, " ")
}

// answers sends a message to a session, waits for the end of its turn, and returns the cursor before.
func (b *box) answers(id, text, end string) (before string, data string) {
	b.t.Helper()
	_, st := b.v1("GET", "/sessions/"+id, "")
	before, _ = st["cursor"].(string)
	if status, out := b.v1("POST", "/sessions/"+id+"/messages", fmt.Sprintf(`{"role":"user","parts":[{"type":"text","text":%q}]}`, text)); status != 202 {
		b.t.Fatalf("a message to %s: got %d, %v; want status 202", id, status, out)
	}
	events, _ := b.until(id, before, end)
	return before, string(events[len(events)-1].Data)
}

// MIS-3: a session has a model of its own, which outlives a restart, a reset and the session's
// forks, and one that nobody has configured is refused.
func TestModelOfASession(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	a, other := fakeModel(t, fakellm.Step{Text: "from a"}), fakeModel(t, fakellm.Step{Text: "from the other"})
	b.twoModels(a, other)
	ws := filepath.Join(b.dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	daemon := b.serve()
	for choice, want := range map[string]string{
		"othre":     `did you mean \"other\"?`,
		"nobody":    "the configured ones are ",
		"other/":    "is not a model",
		"other/a b": "is not a model",
	} {
		body := fmt.Sprintf(`{"workspace_path":%q,"model":%q}`, ws, choice)
		if status, out := b.v1("POST", "/sessions", body); status != 400 || !strings.Contains(fmt.Sprintf("%q", out), "bad_model") || !strings.Contains(fmt.Sprintf("%q", out), want) {
			t.Errorf("a session with the model %q: got %d %v, want a refusal with %s", choice, status, out, want)
		}
	}
	_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q,"model":"other/model-c"}`, ws))
	id, _ := out["session_id"].(string)
	before, _ := b.answers(id, "one", "turn_completed")
	if got := askedFor(other); got != "model-c" || askedFor(a) != "" {
		t.Errorf("asked %q of the other and %q of a, want model-c of the other alone", got, askedFor(a))
	}
	_, st := b.v1("GET", "/sessions/"+id, "")
	if now, _ := st["answering_model"].(map[string]any); st["model"] != "other/model-c" || now["model"] != "model-c" || now["provider"] != "other" || now["context_window"] == 0.0 {
		t.Errorf("the session is %v, want its model, and the one that answers with its window", st)
	}
	if status, out := b.v1("PATCH", "/sessions/"+id, `{"model":"nope"}`); status != 400 {
		t.Errorf("a change to a model that is not there: got %d %v, want 400", status, out)
	}
	if _, out := b.v1("PATCH", "/sessions/"+id, `{"model":"other"}`); out["model"] != "other" {
		t.Errorf("after a change the session is %v, want the model other", out)
	}
	if events, _ := b.until(id, before, "model_changed"); !strings.Contains(string(events[len(events)-1].Data), `{"model":"other"}`) {
		t.Errorf("got %s, want an event with the model", events[len(events)-1].Data)
	}
	_, list := b.v1("GET", "/models", "")
	if got := fmt.Sprint(list); !strings.Contains(got, "model:model-a") || !strings.Contains(got, "id:other") {
		t.Errorf("the models are %v, want both", list)
	}

	// A crash, a fork and a reset.
	if err := daemon.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = daemon.Process.Wait()
	b.serve()
	_, fork := b.v1("POST", "/sessions/"+id+"/fork", "")
	child, _ := fork["id"].(string)
	b.answers(child, "two", "turn_completed")
	if status, out := b.v1("POST", "/sessions/"+id+"/reset", ""); status != 200 || out["model"] != "other" {
		t.Errorf("reset: got %d %v, want the model to stay", status, out)
	}
	b.answers(id, "three", "turn_completed")
	if got := askedFor(other); got != "model-c model-b model-b" || askedFor(a) != "" {
		t.Errorf("asked %q of the other and %q of a, want model-b twice more", got, askedFor(a))
	}
	if _, out := b.v1("PATCH", "/sessions/"+id, `{"model":""}`); out["model"] != nil {
		t.Errorf("after the choice was taken back the session is %v, want no model", out)
	}
	b.answers(child, "still the other", "turn_completed")
	b.answers(id, "the active one", "turn_completed")
	if got := askedFor(a); got != "model-a" {
		t.Errorf("asked %q of a, want model-a", got)
	}

	// A provider that was removed is named.
	b.must("provider", "remove", "other")
	if _, got := b.answers(child, "four", "session_failed"); !strings.Contains(got, `this session: the model \"other\": there is no provider`) || !strings.Contains(got, "choose another one") {
		t.Errorf("the turn failed with %s, want the model and what to do", got)
	}
}

// yaya run --model chooses the model of its session, for later runs, too.
func TestModelOfARun(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	a, other := fakeModel(t, fakellm.Step{Text: "from a"}), fakeModel(t, fakellm.Step{Text: "from the other"})
	b.twoModels(a, other)
	if out, err := b.run("run", "--model", "othre", "x"); err == nil || !strings.Contains(out, `did you mean "other"?`) {
		t.Errorf("got %v, %s; want the nearest name", err, out)
	}
	if out, err := b.run("run", "--model", "other", "--provider", "main", "x"); exitCode(err) != 2 {
		t.Errorf("--model with --provider: got %v, %s; want wrong usage", err, out)
	}
	for _, args := range [][]string{{"--model", "other/model-c"}, nil} {
		if out := b.must(append([]string{"run", "--session", "s1", "hi"}, args...)...); out != "from the other\n" {
			t.Errorf("yaya run %v: got %q, want the other's answer", args, out)
		}
	}
	if out := b.must("run", "--session", "s2", "hi"); out != "from a\n" {
		t.Errorf("another session: got %q, want the active model's answer", out)
	}
	if got := askedFor(other); got != "model-c model-c" {
		t.Errorf("asked for %q, want model-c twice", got)
	}
}

// A sub-agent can have a model that the setting model.agent names, and no other.
func TestModelOfASubAgent(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	call := func(model string) fakellm.Step {
		return fakellm.Step{ToolCalls: []fakellm.Call{{Name: "agent", Args: fmt.Sprintf(`{"goal":"look","model":%q}`, model)}}}
	}
	a := fakeModel(t, call("main"), call("other/model-c"), fakellm.Step{Text: "done"})
	other := fakeModel(t, fakellm.Step{Text: "looked"})
	b.twoModels(a, other)
	b.must("config", "set", "approval.rules", `[{"tool":"agent","decision":"allow"}]`)
	b.serve()
	b.must("config", "set", "model.agent", `["other/model-c"]`) // a running daemon offers it at once
	if out := b.must("run", "--session", "s1", "delegate"); out != "done\n" {
		t.Errorf("got %q, want the model's last answer", out)
	}
	rs := a.Requests()
	if len(rs) != 3 || askedFor(other) != "model-c" {
		t.Fatalf("%d requests to a, and %q to the other; want 3, and the sub-agent's", len(rs), askedFor(other))
	}
	if tools := fmt.Sprint(rs[0].Body["tools"]); !strings.Contains(tools, "instead of this session's: other/model-c") {
		t.Errorf("the tools are %s, want the model in the description of agent", tools)
	}
	if got := fmt.Sprint(rs[1].Body["messages"]); !strings.Contains(got, "the setting model.agent has other/model-c") {
		t.Errorf("the model was told %s, want a refusal of a that names the setting", got)
	}
	if got := fmt.Sprint(rs[2].Body["messages"]); !strings.Contains(got, "looked") {
		t.Errorf("the model was told %s, want the sub-agent's answer", got)
	}
}
