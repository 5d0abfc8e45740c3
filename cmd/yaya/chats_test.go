package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/sse"
)

func (b *box) authorize(req *http.Request) {
	if b.token != "" {
		req.Header.Set("Authorization", "Bearer "+b.token)
	}
}

// v1 sends a request to the session API.
func (b *box) v1(method, path, body string) (int, map[string]any) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.addr+"/v1"+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	b.authorize(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	var out map[string]any
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			b.t.Fatalf("%s %s = %s, %v; want JSON", method, path, raw, err)
		}
	}
	return resp.StatusCode, out
}

// until follows a session from a cursor on, up to an event of that type.
func (b *box) until(id, after, typ string) (events []sse.Event, last string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), eventually.Limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.addr+"/v1/sessions/"+id+"/events", nil)
	if err != nil {
		b.t.Fatal(err)
	}
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	b.authorize(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	r := sse.NewReader(resp.Body, 8<<20)
	for {
		ev, err := r.Next()
		if err != nil {
			b.t.Fatalf("no %s: %v, after %d events", typ, err, len(events))
		}
		if ev.Name == "" {
			continue
		}
		events = append(events, ev)
		if ev.Name == typ {
			return events, ev.ID
		}
	}
}

func names(events []sse.Event) string {
	var out []string
	for _, ev := range events {
		out = append(out, ev.Name)
	}
	return strings.Join(out, " ")
}

// kill -9 in the middle of a turn with an ask pending: after the restart the session is
// whole, the turn is interrupted, the ask is withdrawn, a client that
// connects again is told so, and the user can have the turn run again. A queued message
// never runs by itself after a restart (TW-14). S-19 and S-20 are kept across all of it.
func TestKilledWithAnAsk(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	ws := filepath.Join(b.dir, "ws")
	if err := os.Mkdir(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(ws, "a.txt"), []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	patch, err := json.Marshal("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n")
	if err != nil {
		t.Fatal(err)
	}
	b.must("trust", "--yes", ws)
	b.must("config", "set", "plugin.llm_echo.script", fmt.Sprintf(`{"steps":[{"tool_calls":[{"name":"apply_patch","args":{"patch":%s}}]},{"text":"done"},{"tool_calls":[{"name":"apply_patch","args":{"patch":%s}}]},{"text":"done again"}]}`, patch, patch))
	daemon := b.serve()
	status, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, ws))
	id, _ := out["session_id"].(string)
	if status != 201 || id == "" {
		t.Fatalf("got %v, %v, want status 201, a id", status, out)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "d", "sessions", id, "session.json")); err != nil { // S-3
		t.Errorf("Stat of the session's file = %v, want it to be there", err)
	}
	status, out = b.v1("POST", "/sessions/"+id+"/messages", `{"role":"user","id":"m1","parts":[{"type":"text","text":"change it"}]}`)
	turn, _ := out["turn_id"].(string)
	if status != 202 || turn == "" {
		t.Fatalf("got %v, %v, want status 202, a turn", status, out)
	}
	events, last := b.until(id, "", "approval_requested")
	if got := names(events); !strings.HasPrefix(got, "session_created message_added turn_started") {
		t.Errorf(`got %v, want "session_created message_added turn_started" at its start`, got)
	}
	_ = daemon.Process.Kill()
	gone(t, daemon)
	b.serve()
	events, last = b.until(id, last, "session_failed")
	if got := names(events); got != "approval_withdrawn tool_call_completed session_failed" || !bytes.Contains(events[2].Data, []byte(`"interrupted"`)) {
		t.Errorf(`%s: got %s, want got "approval_withdrawn tool_call_completed session_failed", events[2].Data with %q`, got, events[len(events)-1].Data, `"interrupted"`)
	}
	if data, err := os.ReadFile(filepath.Join(ws, "a.txt")); err != nil || string(data) != "one\n" {
		t.Errorf("it has run by itself: %q %v", data, err)
	}
	if _, st := b.v1("GET", "/sessions/"+id, ""); st["status"] != "failed" || st["state"] != "idle" || len(st["pending_approvals"].([]any)) != 0 || st["last_turn_id"] != turn {
		t.Errorf(`got %v, want status "failed", state "idle", len(pending_approvals) 0, last_turn_id %v`, st, turn)
	}
	// The same message is the same message.
	if status, out := b.v1("POST", "/sessions/"+id+"/messages", `{"role":"user","id":"m1","parts":[{"type":"text","text":"change it"}]}`); status != 202 || out["turn_id"] != turn {
		t.Errorf("got %v, %v, want status 202, turn_id %v", status, out, turn)
	}
	if status, out := b.v1("POST", "/sessions/"+id+"/turns/"+turn+"/retry", ""); status != 202 {
		t.Fatalf("got %v, %v, want status 202", status, out)
	}
	events, last = b.until(id, last, "approval_requested")
	var ask struct {
		Data struct {
			Call string `json:"tool_call_id"`
		} `json:"data"`
	}
	if err := json.Unmarshal(events[len(events)-1].Data, &ask); err != nil {
		t.Fatal(err)
	}
	if status, out := b.v1("POST", "/sessions/"+id+"/approve", fmt.Sprintf(`{"tool_call_id":%q,"action":"approve"}`, ask.Data.Call)); status != 200 {
		t.Fatalf("got %v, %v, want status 200", status, out)
	}
	b.until(id, last, "turn_completed")
	if data, err := os.ReadFile(filepath.Join(ws, "a.txt")); err != nil || string(data) != "two\n" {
		t.Errorf("got %q %v, want data %q", data, err, "two\n")
	}
	if out := b.must("audit", "--event", "approval_answered"); !strings.Contains(out, "approval_answered") {
		t.Errorf(`got %v, want "approval_answered" in it`, out)
	}
	if out := b.must("verify"); !strings.Contains(out, "0 findings") {
		t.Errorf(`got %v, want "0 findings" in it`, out)
	}
}
