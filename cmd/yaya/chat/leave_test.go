package chat

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// A session that this chat has made is deleted when nothing was said or set in it, by whomever. The last
// session of a folder is one in which something was said.
func TestEmptySessions(t *testing.T) {
	made := Session{ID: "sess_1", Updated: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	const empty = `"updated_at":"2026-01-01T00:00:00Z","state":"idle"`
	for name, c := range map[string]struct {
		body string
		gone bool
	}{
		"empty":                 {empty, true},
		"a turn":                {empty + `,"last_turn_id":"t1"`, false},
		"a title":               {empty + `,"title":"x"`, false},
		"a message that waits":  {empty + `,"queue":[{"message_id":"m","text":"x"}]`, false},
		"a turn that runs":      {`"updated_at":"2026-01-01T00:00:00Z","state":"running"`, false},
		"what another has set":  {`"updated_at":"2026-01-01T00:00:01Z","state":"idle"`, false},
		"what cannot be looked": {"", false},
	} {
		a := &answering{bodies: map[string]string{"DELETE /v1/sessions/sess_1": "{}"}}
		if c.body != "" {
			a.put("GET /v1/sessions/sess_1", "{"+c.body+"}")
		}
		api := &Client{HTTP: &http.Client{Transport: a}, Base: "http://yaya"}
		gone := api.leave(t.Context(), made)
		if deleted := strings.Contains(a.take(), "DELETE"); gone != c.gone || deleted != c.gone {
			t.Errorf("%s: leave() = %v, and it is deleted: %v; want %v", name, gone, deleted, c.gone)
		}
	}
	a := &answering{bodies: map[string]string{"GET /v1/sessions": `{"sessions":[{"id":"sess_3","workspace_path":"/w"},{"id":"sess_2","workspace_path":"/w","last_turn_id":"t","title":"x"}]}`}}
	api := &Client{HTTP: &http.Client{Transport: a}, Base: "http://yaya"}
	if got, err := api.last(t.Context(), "/w"); err != nil || got != "sess_2" {
		t.Errorf("last() = %q, %v, want sess_2, in which something was said", got, err)
	}
}
