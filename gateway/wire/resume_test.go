package wire_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/gateway/wire/wiretest"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// durable takes the events with a cursor that a client has and gets, up to one.
func durable(t *testing.T, c *wiretest.Client, upTo float64) (seqs []float64) {
	t.Helper()
	for len(seqs) == 0 || seqs[len(seqs)-1] < upTo {
		m := c.Read()
		if at, ok := m.Payload["cursor"].(map[string]any); ok && m.Event != "phx_reply" {
			seqs = append(seqs, at["seq"].(float64))
		}
	}
	return seqs
}

// write puts a message of the user's onto a session's tape, without a turn.
func write(t *testing.T, w *wiretest.World, id, text string) int64 {
	t.Helper()
	ev, err := bus.Publish(w.Kernel.Bus.Kernel(), event.TurnWasCancelled, id, event.TurnCancelled{TurnID: "t", Reason: text})
	if err != nil {
		t.Fatal(err)
	}
	return ev.Entry
}

// WS-12, WS-24, WS-25: a client that comes back with its cursor, even after a
// restart of the server, gets what it has missed, once and in order; one whose
// cursor is invalid learns that.
func TestResume(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("phone", auth.SessionsRead, auth.SessionsWrite)
	if _, err := w.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	c := w.Connect(g, false, true)
	first := c.Join("agent:s", nil)["cursor"].(map[string]any)
	seen := first["seq"].(float64)
	var last int64
	for range 5 {
		last = write(t, w, "s", "x")
	}
	got := durable(t, c, float64(last))
	_ = c.WS.Close()
	for range 700 { // more than a queue holds
		last = write(t, w, "s", "while it is away")
	}
	addr := w.HTTP.Listener.Addr().String()
	w.Stop()
	w.Start(addr)
	c = w.Connect(g, true, true)
	res := c.Join("agent:s", map[string]any{"since": got[len(got)-1], "epoch": first["epoch"]})
	if res["resync"] != nil || res["cursor"].(map[string]any)["seq"].(float64) < float64(last) {
		t.Fatalf("got %v, want no resync and a cursor from %v on", res, last)
	}
	last = write(t, w, "s", "new")
	got = append(got, durable(t, c, float64(last))...)
	for i, seq := range got {
		if i > 0 && seq <= got[i-1] {
			t.Fatalf("%v comes after %v", seq, got[i-1])
		}
	}
	if len(got) != 706 {
		t.Errorf("%d events were delivered, from %v on", len(got), seen)
	}
	// Cursors that are worth nothing.
	for name, payload := range map[string]map[string]any{
		"ahead":       {"since": last + 1000, "epoch": first["epoch"]},
		"far ahead":   {"since": int64(1) << 62, "epoch": first["epoch"]},
		"other epoch": {"since": 1, "epoch": "another"},
	} {
		if res := c.Join("agent:s", payload); res["resync"] == nil || res["snapshot"] == nil {
			t.Errorf("%s: got %v, want a resync, a snapshot", name, res)
		}
	}
	for name, payload := range map[string]any{"negative": map[string]any{"since": -1}, "fraction": map[string]any{"since": 1.5}, "text": map[string]any{"since": "1"}, "huge": map[string]any{"since": json.RawMessage("9223372036854775808")}, "list": []int{1}} {
		if status, _ := c.Ask("agent:s", "phx_join", payload); status != "error" {
			t.Errorf(`%s: got %s, want "error"`, name, status)
		}
	}
	// From the beginning.
	c.Join("agent:s", map[string]any{"since": 0, "epoch": first["epoch"]})
	if got := durable(t, c, float64(last)); len(got) < 706 {
		t.Errorf("%d events from the beginning", len(got))
	}
}

// Under any interleaving of publishing, joining, leaving and coming back, every
// client sees every event behind its first cursor once and in order (R12).
func TestNoGapUnderAnyInterleaving(t *testing.T) {
	w := wiretest.New(t)
	noGap(t, w, w, w.Enroll("phone", auth.SessionsRead))
}

// noGap has clients of a node follow a session of the same or another one.
func noGap(t *testing.T, at, w *wiretest.World, g *wiretest.Gadget) {
	t.Helper()
	if _, err := w.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	const events = 3000
	// Where the tape will end is known before anybody reads: a client that found out
	// while the last event is under way could wait for one more.
	end := float64(write(t, w, "s", "x") + events - 1)
	var wg sync.WaitGroup
	wg.Go(func() {
		for range events - 1 {
			write(t, w, "s", "x")
			if rand.IntN(20) == 0 {
				time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
			}
		}
	})
	// each gets the whole from the beginning, in pieces
	follow := func(msgpack bool) (seqs []float64) {
		seen, epoch := 0.0, ""
		for {
			c := at.Connect(g, msgpack, true)
			payload := map[string]any{"since": seen}
			if epoch != "" {
				payload["epoch"] = epoch
			}
			res := c.Join("agent:s", payload)
			epoch = res["cursor"].(map[string]any)["epoch"].(string)
			if res["resync"] != nil {
				t.Errorf("got %v, want no resync", res)
				return seqs
			}
			for range 50 + rand.IntN(600) {
				m, err := c.Try()
				if websocket.IsCloseError(err, wire.CloseSlow) {
					break // it was, on a busy machine, and comes back
				}
				if err != nil {
					t.Errorf("Try = %v, want a message", err)
					return seqs
				}
				cur, ok := m.Payload["cursor"].(map[string]any)
				if !ok {
					continue
				}
				seen = cur["seq"].(float64)
				seqs = append(seqs, seen)
				if seen == end {
					_ = c.WS.Close()
					return seqs
				}
			}
			_ = c.WS.Close()
		}
	}
	for n := range 6 {
		wg.Go(func() {
			seqs := follow(n%2 == 0)
			for i := range seqs {
				if i > 0 && seqs[i] != seqs[i-1]+1 {
					t.Errorf("client %d: %v comes after %v", n, seqs[i], seqs[i-1])
					return
				}
			}
			if len(seqs) < events {
				t.Errorf("client %d has seen %d of %d", n, len(seqs), events)
			}
		})
	}
	wg.Wait()
}

// WS-12, LD-03: a client that does not read is closed with 4408, or cut off, soon;
// others do not notice, and it misses nothing when it comes back.
func TestSlowClient(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("phone", auth.SessionsRead)
	if _, err := w.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	slow, quick := w.Connect(g, false, true), w.Connect(g, false, true)
	cur := slow.Join("agent:s", nil)["cursor"].(map[string]any)
	start := cur["seq"].(float64)
	quick.Join("agent:s", nil)
	var last int64
	text := strings.Repeat("x", 20_000)
	done := make(chan []float64, 1)
	const events = 1200
	upTo := start + events
	go func() {
		var seqs []float64
		for len(seqs) < events {
			m, err := quick.Next()
			if err != nil {
				break
			}
			if at, ok := m.Payload["cursor"].(map[string]any); ok {
				seqs = append(seqs, at["seq"].(float64))
			}
		}
		done <- seqs
	}()
	for range events {
		last = write(t, w, "s", text)
		time.Sleep(time.Millisecond)
	}
	if seqs := <-done; len(seqs) != events || seqs[events-1] != upTo || last != int64(upTo) {
		t.Errorf("the quick one got %d events", len(seqs))
	}
	deadline := time.Now().Add(eventually.Limit)
	for {
		connections, slowOnes, _ := w.Wire.Stats()
		if connections == 1 && slowOnes == 1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections, %d were slow", connections, slowOnes)
		}
		time.Sleep(20 * time.Millisecond)
	}
	// The events that it reads now are in order, as far as they go; then it comes back.
	at := start
	for {
		m, err := slow.Next()
		if err != nil {
			break
		}
		if c, ok := m.Payload["cursor"].(map[string]any); ok {
			if c["seq"].(float64) != at+1 {
				t.Fatalf("%v comes after %v", c["seq"], at)
			}
			at++
		}
	}
	again := w.Connect(g, false, true)
	again.Join("agent:s", map[string]any{"since": at, "epoch": cur["epoch"]})
	if got := durable(t, again, upTo); len(got) != int(upTo-at) {
		t.Errorf("%d events were missing, and %d came", int(upTo-at), len(got))
	}
}

// USE-9: a client that reads, but too slowly, sees 4408 and the reason before it,
// if it reads on within the grace that it is given.
func TestTooSlowIsTold(t *testing.T) {
	t.Cleanup(wire.SetSlowGrace(5 * time.Minute)) // on a busy machine, reading takes its time
	w := wiretest.New(t)
	g := w.Enroll("phone", auth.SessionsRead)
	if _, err := w.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	c := w.Connect(g, false, true)
	c.Join("agent:s", nil)
	text := strings.Repeat("x", 50_000)
	for n := 0; ; n++ {
		if _, slow, _ := w.Wire.Stats(); slow > 0 {
			break
		}
		if n == 1000 {
			t.Fatalf("%d events that nobody reads are not too many", n)
		}
		write(t, w, "s", text)
	}
	told := false
	for {
		m, err := c.Next()
		if m.Event == "disconnect" && m.Payload["code"] == float64(4408) {
			told = true
		}
		if err == nil {
			continue
		}
		if !told || !websocket.IsCloseError(err, 4408) {
			t.Errorf("told: %v, closed with %v", told, err)
		}
		return
	}
}

// W-64…W-66: chunks are sent again when a client asks for them, and those that
// cannot be are named; a client that joins in the middle gets the stream from its
// start.
func TestStreamRetry(t *testing.T) {
	w := wiretest.New(t)
	script := `{"steps":[{"text":"` + strings.Repeat("word ", 300) + `","delay_ms":2}]}`
	if err := w.Kernel.Settings.Set("plugin.llm_echo.script", json.RawMessage(script)); err != nil {
		t.Fatal(err)
	}
	g := w.Enroll("phone", auth.SessionsRead, auth.SessionsWrite)
	if _, err := w.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	c := w.Connect(g, false, true)
	c.Join("agent:s", nil)
	if status, res := c.Ask("agent:s", "message", map[string]any{"content": "go"}); status != "ok" {
		t.Fatalf(`got %v, want status "ok"`, res)
	}
	third := c.Until(func(m wiretest.Message) bool { return m.Event == "stream_chunk" && m.Payload["seq"] == float64(3) })
	request := third.Payload["request_id"]
	late := w.Connect(g, true, true)
	late.Join("agent:s", nil)
	collect := func(c *wiretest.Client) map[float64]string {
		chunks := map[float64]string{}
		end := c.Until(func(m wiretest.Message) bool {
			if m.Event == "stream_chunk" {
				if _, twice := chunks[m.Payload["seq"].(float64)]; twice {
					t.Errorf("chunk %v comes twice", m.Payload["seq"])
				}
				chunks[m.Payload["seq"].(float64)] = m.Payload["chunk"].(string)
			}
			return m.Event == "stream_end"
		})
		if end.Payload["request_id"] != request {
			t.Errorf("got %+v, want request_id %v", end, request)
		}
		return chunks
	}
	rest, whole := collect(c), collect(late)
	total := len(whole)
	if len(rest) != total-4 {
		t.Errorf("%d and %d chunks", len(rest), total)
	}
	var text strings.Builder
	for i := range total {
		text.WriteString(whole[float64(i)])
	}
	if text.String() != strings.Repeat("word ", 300) && strings.TrimSpace(text.String()) != strings.TrimSpace(strings.Repeat("word ", 300)) {
		t.Errorf("the late client has %d bytes in %d chunks", text.Len(), total)
	}
	status, res := c.Ask("agent:s", "stream_retry", map[string]any{"type": "stream_retry", "request_id": request, "missing": []int{0, 2, total + 5}})
	if status != "ok" || fmt.Sprint(res["gone"]) != fmt.Sprint([]any{float64(total + 5)}) {
		t.Fatalf("got %s %v, want ok, and chunk %d gone", status, res, total+5)
	}
	for _, seq := range []float64{0, 2} {
		m := c.Until(func(m wiretest.Message) bool { return m.Event == "stream_chunk" })
		if m.Payload["seq"] != seq || m.Payload["chunk"] != whole[seq] {
			t.Errorf("chunk %v comes again as %+v", seq, m)
		}
	}
	if m := c.Until(func(m wiretest.Message) bool { return strings.HasPrefix(m.Event, "stream_") }); m.Event != "stream_end" || m.Payload["total_chunks"] != float64(total) {
		t.Errorf("got %+v, want a stream_end with %d chunks", m, total)
	}
	for name, payload := range map[string]any{
		"unknown": map[string]any{"request_id": "x", "missing": []int{0}}, "nothing": map[string]any{"request_id": request, "missing": []int{}},
		"too many": map[string]any{"request_id": request, "missing": make([]int, 1001)}, "no list": map[string]any{"request_id": request},
	} {
		if status, _ := c.Ask("agent:s", "stream_retry", payload); status != "error" {
			t.Errorf(`%s: got %s, want "error"`, name, status)
		}
	}
}

// W-63: a turn that fails in the middle of its text ends the stream with the error.
func TestStreamError(t *testing.T) {
	w := wiretest.New(t)
	script := `{"steps":[{"text":"half of it","error":{"kind":"other","message":"no more","after_text":true}}]}`
	if err := w.Kernel.Settings.Set("plugin.llm_echo.script", json.RawMessage(script)); err != nil {
		t.Fatal(err)
	}
	g := w.Enroll("phone", auth.SessionsRead, auth.SessionsWrite)
	if _, err := w.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	c := w.Connect(g, false, true)
	c.Join("agent:s", nil)
	if status, res := c.Ask("agent:s", "message", map[string]any{"content": "go"}); status != "ok" {
		t.Fatalf(`got %v, want status "ok"`, res)
	}
	start := c.Until(func(m wiretest.Message) bool { return m.Event == "stream_start" })
	fail := c.Until(func(m wiretest.Message) bool { return m.Event == "stream_error" })
	if fail.Payload["request_id"] != start.Payload["request_id"] || !strings.Contains(fail.Payload["error"].(string), "no more") {
		t.Errorf(`got %+v, want request_id %v, error with "no more"`, fail, start.Payload["request_id"])
	}
}

// A client that has the answer to its join gets what is published from then on,
// volatile events, too.
func TestLiveFromTheAnswerOn(t *testing.T) {
	w := wiretest.New(t)
	if _, err := w.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	c := w.Connect(w.Enroll("phone", auth.SessionsRead, auth.AgentsRead, auth.KernelAttach), false, true)
	for n := range 300 {
		for _, topic := range []string{"agent:s", "agent:lobby", "kernel:k1"} {
			c.Join(topic, nil)
			w.Wire.Publish(topic, wire.Event{Name: "ping", Payload: map[string]int{"n": n}})
			c.Until(func(m wiretest.Message) bool {
				return m.Topic == topic && m.Event == "ping" && m.Payload["n"] == float64(n)
			})
		}
	}
}
