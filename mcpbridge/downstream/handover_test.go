package downstream

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// OP-71: a successor knows the sessions, with the streams that their clients may resume; a call
// that was cut off has an answer there.
func TestHandOver(t *testing.T) {
	s := New(Config{Registry: new(tool.Registry)})
	defer s.Close()
	c, err := s.open(t.Context(), "owner", s.all, new(jsonrpc.Message))
	if err != nil {
		t.Fatal(err)
	}
	c.version, c.level, c.info = "2025-11-25", "warning", []byte(`{"name":"x"}`)
	c.subscribed["file:///a"] = true
	if err := c.unasked().send([]byte(`{"jsonrpc":"2.0","method":"one"}`)); err != nil {
		t.Fatal(err)
	}
	r := c.newRecord([]byte(`7`))
	if err := r.send([]byte(`{"jsonrpc":"2.0","method":"progress"}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.open(t.Context(), "owner", s.all, new(jsonrpc.Message)); err != nil { // without a handshake
		t.Fatal(err)
	}
	raw, err := json.Marshal(s.HandOver())
	if err != nil {
		t.Fatal(err)
	}
	var h Handover
	if err := json.Unmarshal(raw, &h); err != nil || len(h.Sessions) != 1 {
		t.Fatalf("HandOver() = %s, %v; want one session", raw, err)
	}
	h.Sessions[0].Subscribed = nil // there are no servers
	next := New(Config{Registry: new(tool.Registry), TakeOver: h})
	defer next.Close()
	if next.find("other", c.token) != nil {
		t.Error("another principal finds the session, want nothing")
	}
	got := next.find("owner", c.token)
	if got == nil || got.version != c.version || got.level != "warning" || got.session != c.session || got.profile.name != s.all.name || time.Since(got.last) > time.Minute {
		t.Fatalf("find() = %+v, want the session", got)
	}
	if rec, seq, ok := got.resumed("g-0"); !ok || rec != got.unasked() || seq != 0 || len(rec.events) != 1 {
		t.Errorf("resumed(g-0) = %v, %d, %v; want the session's own stream with its event", rec, seq, ok)
	}
	rec, _, ok := got.resumed("r1-0")
	if !ok || !rec.done || len(rec.events) != 2 {
		t.Fatalf("resumed(r1-0) = %+v, %v; want the stream of the call, which is over", rec, ok)
	}
	if end := string(rec.events[1]); !strings.Contains(end, `"id":7`) || !strings.Contains(end, "restarted") {
		t.Errorf("the call ends with %s, want an error for its request", end)
	}
	if k := (kind{"owner", "x"}); got.kind != k || next.kinds[k] != 1 {
		t.Errorf("the session counts as %v, %d of them, want one of %v", got.kind, next.kinds[got.kind], k)
	}
	if !got.moved.Load() {
		t.Error("moved = false, want true: the lists may have changed while no stream was open")
	}
	if again := got.newRecord(nil); again.id != "r2" {
		t.Errorf("the next stream is %s, want r2", again.id)
	}
}

// OP-71: the state for a successor is bounded; the newest events stay.
func TestHandOverIsBounded(t *testing.T) {
	r := &record{id: "g", over: make(chan struct{})}
	for range 5 {
		if err := r.send([]byte(`{"jsonrpc":"2.0","method":"` + strings.Repeat("x", 100) + `"}`)); err != nil {
			t.Fatal(err)
		}
	}
	room := 400
	h := r.handOver(&room)
	if len(h.Events) != 2 || h.First != 3 || room < 0 {
		t.Errorf("handOver() in 400 bytes = %d events from %d, %d left; want the last two", len(h.Events), h.First, room)
	}
}
