package wire_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/wire/wiretest"
	"github.com/yaya-ai/yaya/kernel/loop"
)

type page struct {
	Events []struct {
		Type   string `json:"type"`
		Data   json.RawMessage
		Client string `json:"client_id"`
		Turn   string `json:"turn_id"`
		Cursor struct{ Seq int64 }
	}
	First int64
}

// into decodes a response, and returns its size.
func into(t *testing.T, response map[string]any, v any) int {
	t.Helper()
	raw, err := json.Marshal(response)
	if err == nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(raw)
}

// A client that joins without a cursor pages back through all of it: what the pages have
// is what a join with a cursor would have sent, each event once and in order; a page is
// bounded.
func TestHistory(t *testing.T) {
	w := wiretest.New(t)
	if _, err := w.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if _, err := w.Kernel.Loop.Run(t.Context(), loop.Prompt{SessionID: "s", ID: fmt.Sprint("m", i), Text: fmt.Sprint("message ", i, strings.Repeat("x", i*2000))}); err != nil {
			t.Fatal(err)
		}
	}
	c := w.Connect(w.Enroll("phone", auth.SessionsRead), false, true)
	var joined struct{ Cursor struct{ Seq int64 } }
	into(t, c.Join("agent:s", nil), &joined)
	var seqs []int64
	var texts []string
	for before := joined.Cursor.Seq + 1; before > 1; {
		status, got := c.Ask("agent:s", "history", map[string]any{"before": before, "limit": 37})
		var p page
		if n := into(t, got, &p); status != "ok" || p.First >= before || n > 600<<10 {
			t.Fatalf(`got %v, %v, %v, %v, want status "ok", First less than %v, n at most %v`, status, p.First, before, n, before, 600<<10)
		}
		var these []int64
		for _, e := range p.Events {
			these = append(these, e.Cursor.Seq)
			if e.Type == "user.message.received" {
				texts = append(texts, e.Client)
				if e.Turn == "" {
					t.Error("a message has no turn")
				}
			}
		}
		if !slices.IsSorted(these) {
			t.Errorf("a page is not in order: %v", these)
		}
		seqs = append(these, seqs...)
		before = p.First
	}
	slices.Sort(texts)
	if len(slices.Compact(texts)) != 30 || !slices.IsSorted(seqs) || len(slices.Compact(slices.Clone(seqs))) != len(seqs) || seqs[len(seqs)-1] != joined.Cursor.Seq {
		t.Errorf("%d messages, %v", len(texts), seqs)
	}
	for _, bad := range []map[string]any{{"before": 0}, {"before": 5, "limit": -1}, {"before": 5, "limit": 501}, {"before": "x"}, {"before": 5, "x": 1}} {
		if status, _ := c.Ask("agent:s", "history", bad); status != "error" {
			t.Errorf(`%v: got %s, want "error"`, bad, status)
		}
	}
	if status, raw := c.Ask("agent:s", "history", map[string]any{"before": int64(1) << 60}); status != "ok" || !strings.Contains(fmt.Sprint(raw), "message 29") {
		t.Errorf("from the end: %s %.200v", status, raw)
	}
}

// R2: a right that is taken ends what was joined by it at once, and nothing else.
func TestRightsThatAreTaken(t *testing.T) {
	w := wiretest.New(t)
	if _, err := w.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	c := w.Connect(w.Enroll("phone", auth.SessionsRead, auth.AgentsRead, auth.MemoryRead), false, true)
	c.Join("agent:s", nil)
	c.Join("agent:lobby", nil)
	c.Join("memory:query", nil)
	if err := w.Dev.SetScopes(t.Context(), auth.LocalOwner, "phone", []auth.Scope{auth.AgentsRead, auth.MemoryRead}); err != nil {
		t.Fatal(err)
	}
	m := c.Until(func(m wiretest.Message) bool { return m.Event == "phx_error" })
	if m.Topic != "agent:s" {
		t.Errorf("%s was ended", m.Topic)
	}
	if status, _ := c.Ask("agent:s", "phx_join", map[string]any{}); status != "error" {
		t.Error("it can be joined again")
	}
	if status, raw := c.Ask("agent:s", "history", map[string]any{"before": 5}); status != "error" {
		t.Errorf("its past can be read: %v", raw)
	}
	if status, _ := c.Ask("memory:query", "memory_query", map[string]any{"query": "x", "k": 1}); status != "ok" {
		t.Error("what it may have was ended, too")
	}
}

// Local is for whom the listener has established as the owner, and for nobody else.
func TestLocalIsForTheOwner(t *testing.T) {
	w := wiretest.New(t)
	for _, p := range []auth.Principal{{}, {Kind: auth.Device, ID: "phone"}, {Kind: auth.External, ID: "x"}} {
		rec := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(auth.WithPrincipal(t.Context(), p), "GET", "/api/live", nil)
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
		w.Wire.Local().ServeHTTP(rec, r)
		if rec.Code != 403 {
			t.Errorf("%v: got %d, want 403", p.Kind, rec.Code)
		}
	}
}
