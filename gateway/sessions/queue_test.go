package sessions_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
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
