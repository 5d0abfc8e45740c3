package sessions_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/auth"
)

// REL-1, OP-3: a queue goes on after a restart by itself, in its order and by the session's
// own strategy, and what is queued from then on comes behind it.
func TestQueueGoesOnAfterARestart(t *testing.T) {
	w := newWorld(t, `{"scenarios":[{"match":"long","steps":[{"tool_calls":[{"name":"wait","args":{"text":"x"}}]}]}]}`)
	id := w.create(`,"strategy":"react"`)
	w.say(id, "long")
	for _, text := range []string{"m1", "m2", "m3"} {
		if out := w.say(id, text, `,"delivery":"queue"`); out["queued"] != true {
			t.Fatalf("message %s: got %v, want it queued", text, out)
		}
	}
	// Without the session's own strategy the turns would fail.
	if err := w.k.Settings.Set("strategy", json.RawMessage(`"other"`)); err != nil {
		t.Fatal(err)
	}
	w.stop()
	w.start(`{"scenarios":[]}`)
	w.say(id, "later", `,"delivery":"queue"`)
	w.wait(id, func(st map[string]any) bool { return st["state"] == "idle" && len(st["queue"].([]any)) == 0 })
	var got []string
	for _, m := range w.must("GET", "/v1/sessions/"+id+"/messages?limit=50", "", 200)["messages"].([]any) {
		m := m.(map[string]any)
		got = append(got, fmt.Sprint(m["role"], ": ", m["parts"].([]any)[0].(map[string]any)["text"]))
	}
	slices.Reverse(got)
	want := []string{"user: long", "user: m1", "assistant: echo: m1", "user: m2", "assistant: echo: m2", "user: m3", "assistant: echo: m3", "user: later", "assistant: echo: later"}
	if !slices.Equal(got, want) {
		t.Errorf("messages are %q, want %q", got, want)
	}
}

// A session is not idle between a message and the turn that it starts, whether it comes from
// a client or from the queue, and that turn can be cancelled already.
func TestNotIdleBeforeTheTurn(t *testing.T) {
	w := newWorld(t, `{"scenarios":[{"match":"long","steps":[{"tool_calls":[{"name":"wait","args":{"text":"x"}}]}]}]}`)
	ask := func(method, path string) *httptest.ResponseRecorder { // the server is not there yet when the queue goes on
		rec, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, path, nil)
		w.s.ServeHTTP(rec, r.WithContext(auth.WithPrincipal(t.Context(), w.who)))
		return rec
	}
	var states []string
	cancel := false
	w.begins = func(id string) {
		var st struct {
			State   string `json:"state"`
			Turn    string `json:"turn_id"`
			Pending string `json:"pending_turn_id"`
		}
		if raw := ask("GET", "/v1/sessions/"+id).Body.Bytes(); json.Unmarshal(raw, &st) != nil {
			t.Errorf("the state is %s, want JSON", raw)
		}
		if cancel {
			if rec := ask("POST", "/v1/sessions/"+id+"/cancel"); rec.Code != 202 || !strings.Contains(rec.Body.String(), st.Turn) {
				t.Errorf("cancel = %d %s, want 202 and the turn %s", rec.Code, rec.Body, st.Turn)
			}
		}
		states = append(states, fmt.Sprintf("%s, a turn %t, pending %q", st.State, st.Turn != "", st.Pending))
	}
	id := w.create()
	w.say(id, "long")
	w.say(id, "next", `,"delivery":"queue"`)
	w.stop()
	w.start(`{"scenarios":[]}`)
	w.wait(id, func(st map[string]any) bool { return st["state"] == "idle" && len(st["queue"].([]any)) == 0 })
	cancel = true
	w.say(id, "once more")
	if st := w.idle(id); st["status"] != "canceled" {
		t.Errorf("after the cancel the session is %v, want canceled", st["status"])
	}
	w.stop()
	want := `running, a turn true, pending ""`
	if !slices.Equal(states, []string{want, want, want}) {
		t.Errorf("before the turns of messages and of a queued one, the states are %q, want %q each", states, want)
	}
}

// A session with a queue is not idle between two turns: it would say so and refuse a message as busy.
func TestNotIdleWithAQueue(t *testing.T) {
	w := newWorld(t, oneWrite)
	id := w.create()
	w.say(id, "slow")
	for i := range 12 {
		w.say(id, fmt.Sprint("m", i), `,"delivery":"queue"`)
	}
	w.wait(id, func(st map[string]any) bool {
		idle, waits := st["state"] == "idle", len(st["queue"].([]any))
		if idle && waits > 0 {
			t.Errorf("idle with %d messages in the queue, want running", waits)
		}
		return idle && waits == 0
	})
}
