package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// frame is whatever a client of a session is sent.
type frame struct {
	Type         string         `json:"type"`
	ConnectionID string         `json:"connection_id"`
	Cursor       session.Cursor `json:"cursor"`
	Reason       string         `json:"reason"`

	ID        string          `json:"id"`
	Kind      string          `json:"kind"`
	SessionID string          `json:"session_id"`
	TS        float64         `json:"ts"`
	Source    string          `json:"source"`
	Payload   json.RawMessage `json:"payload"`
	raw       string
}

func read(t *testing.T, ws *websocket.Conn) frame {
	t.Helper()
	if err := ws.SetReadDeadline(time.Now().Add(eventually.Limit)); err != nil {
		t.Fatal(err)
	}
	kind, data, err := ws.ReadMessage()
	if err != nil || kind != websocket.TextMessage {
		t.Fatalf("frame of type %d: %v", kind, err)
	}
	var f frame
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatalf("the frame %s: %v, want JSON", data, err)
	}
	f.raw = string(data)
	return f
}

// Y-192: envelopes as JSON over a WebSocket; the first reply has the connection
// id; a client that comes back with since_entry misses nothing.
func TestSessionOverWebSocket(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m, err := session.OpenManager(session.Config{FS: journal.Root(root), Workspace: "/ws", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	b := bus.New(bus.Config{Recorder: m})
	m.Bind(b)
	t.Cleanup(func() {
		if err := errors.Join(m.Close(context.Background()), b.Close(context.Background()), root.Close()); err != nil {
			t.Errorf("Close of the sessions and the bus = %v, want no error", err)
		}
	})
	detached := make(chan event.ContextDetached, 10)
	if _, err := bus.On(b, bus.SubscribeOptions{Name: "t"}, event.SessionContextDetached, func(_ context.Context, _ event.Event, d event.ContextDetached) error {
		detached <- d
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	say := func(text string) {
		t.Helper()
		if _, err := bus.Publish(b.Kernel(), event.UserMessageReceived, "s1", event.UserMessage{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	say("one")
	r := run(t, gateway.Config{Sessions: m})
	url := "ws://" + r.srv.Addr() + "/api/sessions/s1/events"
	dial := func(query string) *websocket.Conn {
		t.Helper()
		ws, resp, err := websocket.DefaultDialer.DialContext(t.Context(), url+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		t.Cleanup(func() { _ = ws.Close() })
		return ws
	}
	ws := dial("")
	hello := read(t, ws)
	if hello.Type != "attached" || len(hello.ConnectionID) != 32 || hello.Cursor.Seq != 2 || hello.Cursor.Epoch == "" {
		t.Fatalf("got %s; want attached at 2, with an id and an epoch", hello.raw)
	}
	say("two")
	ev := read(t, ws)
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(ev.raw), &members); err != nil || len(members) != 6 || ev.Kind != "user.message.received" || ev.SessionID != "s1" || ev.Source != "kernel" || ev.TS == 0 || ev.ID == "" || string(ev.Payload) != `{"text":"two"}` {
		t.Errorf(`got %s, want the 6 members of the message "two"`, ev.raw)
	}
	at := read(t, ws)
	if at.Type != "cursor" || at.Cursor.Seq != 3 {
		t.Errorf("got %s, want a cursor at 3", at.raw)
	}
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`{"type":"heartbeat"}`)); err != nil {
		t.Fatal(err)
	}
	say("still there")
	if f := read(t, ws); !strings.Contains(f.raw, "still there") {
		t.Errorf(`got %s, want "still there" in it`, f.raw)
	}
	_ = ws.Close()
	if d := <-detached; d.ConnectionID != hello.ConnectionID || d.Reason != "client_close" {
		t.Errorf("got %+v, want client_close of %s", d, hello.ConnectionID)
	}
	say("while away")
	ws = dial("?since_entry=3&epoch=" + at.Cursor.Epoch)
	read(t, ws)
	var got []string
	for range 3 {
		f := read(t, ws)
		var p event.ReplayEntry
		if f.Kind == "session.replay.done" {
			got = append(got, "done")
			break
		}
		if err := json.Unmarshal(f.Payload, &p); err != nil || f.Kind != "session.replay.entry" || f.SessionID != "kernel" {
			t.Fatalf("got %s, want an entry of the replay", f.raw)
		}
		got = append(got, string(p.Payload))
	}
	if len(got) != 3 || !strings.Contains(got[0], "still there") || !strings.Contains(got[1], "while away") || got[2] != "done" {
		t.Errorf("replayed %q", got)
	}
	// A cursor of another time gets a resync.
	ws = dial("?since_entry=3&epoch=gone")
	read(t, ws)
	if f := read(t, ws); f.Type != "resync" || f.Reason != "epoch" {
		t.Errorf("got %s, want a resync because of the epoch", f.raw)
	}
	// A message that is too large ends the connection.
	if err := ws.WriteMessage(websocket.TextMessage, []byte(strings.Repeat("x", 5000))); err != nil {
		t.Fatal(err)
	}
	if err := ws.SetReadDeadline(time.Now().Add(eventually.Limit)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.ReadMessage(); err == nil {
		t.Error("it goes on")
	}
	for query, want := range map[string]int{"?since_entry=x": 400, "?since_entry=-1": 400} {
		_, resp, err := websocket.DefaultDialer.DialContext(t.Context(), url+query, nil)
		if err == nil || resp.StatusCode != want {
			t.Errorf("%s: got %v, want status %d", query, err, want)
		}
		_ = resp.Body.Close()
	}
	_, resp, err := websocket.DefaultDialer.DialContext(t.Context(), strings.Replace(url, "s1", "nobody", 1), nil)
	if err == nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("got %v, want status %d", err, http.StatusNotFound)
	}
	_ = resp.Body.Close()
	// Another site's page cannot look (R16).
	_, resp, err = websocket.DefaultDialer.DialContext(t.Context(), url, http.Header{"Origin": {"https://evil.example"}})
	if err == nil || resp.StatusCode != http.StatusForbidden {
		t.Errorf("got %v, want status %d", err, http.StatusForbidden)
	}
	_ = resp.Body.Close()
	// Stopping the surface ends what hangs on it, says so to the client, and says
	// why to the kernel (Y-57, Y-191).
	ws = dial("")
	hello = read(t, ws)
	if err := r.stop(); err != nil {
		t.Errorf("Run = %v after the stop, want no error", err)
	}
	if err := ws.SetReadDeadline(time.Now().Add(eventually.Limit)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseServiceRestart) {
		t.Errorf("got %v, want a close with code %d", err, websocket.CloseServiceRestart)
	}
	for d := range detached {
		if d.ConnectionID == hello.ConnectionID {
			if d.Reason != "shutdown" {
				t.Errorf(`got %+v, want the reason "shutdown"`, d)
			}
			break
		}
	}
}
