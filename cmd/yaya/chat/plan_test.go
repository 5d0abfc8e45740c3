package chat

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// /plan has the session plan, /plan off ends that, and the transcript says which of them is so.
func TestPlanCommand(t *testing.T) {
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+" "+strings.TrimSpace(string(body)))
		_, _ = io.WriteString(w, "{}")
	}))
	defer srv.Close()
	m := newModel(t.Context(), &Client{HTTP: srv.Client(), Base: srv.URL}, "/w")
	m.id = "sess_1"
	for line, bad := range map[string]bool{"/plan": false, "/plan off": false, "/plan soon": true} {
		do, err := m.parse(line)
		if err == nil {
			err = do()
		}
		if (err != nil) != bad {
			t.Errorf("%s: %v, want an error: %v", line, err, bad)
		}
	}
	slices.Sort(got)
	if want := []string{`PATCH /v1/sessions/sess_1 {"mode":"plan"}`, `PATCH /v1/sessions/sess_1 {"mode":"work"}`}; !slices.Equal(got, want) {
		t.Errorf("requests %q, want %q", got, want)
	}
	for mode, want := range map[string]string{"plan": "only reads until you approve its plan", "work": "the agent may work"} {
		var tr transcript
		tr.take(Event{Type: "mode_changed", Data: json.RawMessage(`{"mode":"` + mode + `"}`)})
		if len(tr.blocks) != 1 || !strings.Contains(tr.blocks[0].text, want) {
			t.Errorf("mode_changed to %s: %+v, want a note with %q", mode, tr.blocks, want)
		}
	}
}
