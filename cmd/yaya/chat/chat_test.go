package chat

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/screen"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func ev(typ, turn, data string) Event {
	return Event{Type: typ, TurnID: turn, Data: json.RawMessage(data)}
}

// The transcript shows the events: text that is being written, tools, questions, the
// queue, the end of a turn.
func TestTranscript(t *testing.T) {
	var tr transcript
	tr.take(ev("message_added", "t1", `{"message":{"role":"user","parts":[{"type":"text","text":"hi"},{"type":"file","ref":"attachments/x","name":"x.txt"}]}}`))
	tr.take(ev("turn_started", "t1", `{}`))
	tr.take(ev("model_output_delta", "t1", `{"text":"hel","offset":0}`))
	tr.take(ev("model_output_delta", "t1", `{"text":"lo","offset":3}`))
	tr.take(ev("model_output_delta", "t1", `{"text":"lo!","offset":3}`)) // the same again, after a reconnect
	if tr.stream != "hello!" || !tr.running {
		t.Errorf(`got %+v; want the stream "hello!", and running`, tr)
	}
	tr.take(ev("model_output_completed", "t1", `{"text":"hello!","tool_calls":[]}`))
	tr.take(ev("tool_call_started", "t1", `{"tool_call":{"id":"c1","name":"shell","input":{"command":"x"}}}`))
	tr.take(ev("tool_progress", "t1", `{"tool_call_id":"c1","progress":1,"total":2,"message":"half"}`))
	if b := tr.tool("c1"); b == nil || b.tool.name != "shell" || b.tool.progress != "1 of 2 half" {
		t.Errorf(`got %+v, want shell with the progress "1 of 2 half"`, b)
	}
	tr.take(ev("approval_requested", "t1", `{"approval_id":"a1","tool_call_id":"c1","tool_name":"shell","input":{"command":"x"}}`))
	tr.take(ev("approval_requested", "t1", `{"approval_id":"a1","tool_call_id":"c1","tool_name":"shell","input":{"command":"x"}}`))
	if len(tr.asks) != 1 {
		t.Errorf("asks %+v", tr.asks)
	}
	tr.take(ev("approval_denied", "t1", `{"approval_id":"a1","tool_name":"shell","reason":"no"}`))
	tr.take(ev("tool_call_completed", "t1", `{"tool_result":{"id":"c1","ok":false,"error":"rejected: no","parts":[{"type":"text","text":"out"}]}}`))
	tr.take(ev("queue_changed", "t1", `{"queue":[{"message_id":"m","text":"later"}]}`))
	tr.take(ev("a_type_of_a_newer_yaya", "t1", `[1]`))
	tr.take(ev("session_failed", "t1", `{"error":"boom"}`))
	var heads []string
	for _, b := range tr.blocks {
		if c := b.tool; b.kind == fromTool {
			heads = append(heads, fmt.Sprintf("%s %s %v: %s", c.name, c.input, c.bad, c.brief))
		}
		heads = append(heads, b.text)
	}
	want := []string{"hi\n[file x.txt attachments/x]", "hello!", `shell {"command":"x"} true: rejected: no`, "out", "rejected shell: no", "the turn failed: boom"}
	if fmt.Sprintf("%q", heads) != fmt.Sprintf("%q", want) || tr.running || !tr.failed || tr.turn != "t1" || len(tr.queue) != 1 || len(tr.asks) != 0 {
		t.Errorf("got %q %+v; want %q, the failed turn t1 no longer running, one queued prompt and no ask", heads, tr, want)
	}
	// USE-6: text written before Esc stays, and the turn has not failed.
	tr.take(ev("turn_started", "t3", `{}`))
	tr.take(ev("model_output_delta", "t3", `{"text":"half","offset":0}`))
	tr.take(ev("model_output_completed", "t3", `{"text":"half","tool_calls":[]}`))
	tr.take(ev("session_canceled", "t3", `{"reason":"interrupted"}`))
	if b := tr.blocks[len(tr.blocks)-2]; b.kind != fromModel || b.text != "half" || tr.failed || !tr.stopped || tr.running {
		t.Errorf("after Esc: %+v, failed %v, stopped %v; want the text, and a turn that was stopped", b, tr.failed, tr.stopped)
	}
	tr.take(ev("resync", "", `{"reason":"epoch","current":{"turn_id":"t2","pending_approvals":[{"approval_id":"a2","tool_name":"y"}],"queue":[]}}`))
	if len(tr.blocks) != 1 || !tr.running || len(tr.asks) != 1 || tr.asks[0].ID != "a2" {
		t.Errorf("after a resync: %+v", tr)
	}
	for range maxBlocks + 1 { // what is kept is bounded
		tr.add(block{text: strings.Repeat("x", maxText+1)})
	}
	if len(tr.blocks) > maxBlocks || len(tr.blocks[0].text) > maxText+10 {
		t.Errorf("%d blocks", len(tr.blocks))
	}
}

// UI-10, R15: nothing controls the terminal, and no line is wider than it.
func TestTextIsSafe(t *testing.T) {
	bad := "a\x1b[31mb\u202ec\u009bd\x00e\u200bf\te\r\n" + strings.Repeat("wide 漢字 ", 40)
	for _, l := range screen.Lines(bad, 30) {
		if ansi.StringWidth(l) > 30 {
			t.Errorf("%q is %d wide", l, ansi.StringWidth(l))
		}
		if strings.ContainsAny(l, "\x1b\u202e\u009b\x00\u200b\r\t") {
			t.Errorf("got the line %q, want none that controls the terminal", l)
		}
	}
	if got := screen.Clean("x\ny\x1b\u202ez"+strings.Repeat("y", 50), 12); got != `x\ny\u{1b}\u{202e}zyyyyyy…` {
		t.Errorf("got %q, want %q", got, `x\ny\u{1b}\u{202e}zyyyyyy…`)
	}
}

// R18: a question shows all of what would run, whatever its length, and says that there
// is more than fits.
func TestQuestionShowsAll(t *testing.T) {
	m := newModel(t.Context(), nil, "/w")
	m.width, m.height = 60, 20
	long := strings.Repeat("word ", 400) + "THE END\u202e"
	in, _ := json.Marshal(map[string]string{"command": long})
	m.t.asks = []Ask{{ID: "a", Tool: "shell", Input: in}}
	all := strings.Join(m.question(), " ")
	if strings.Count(all, "word") != 400 || !strings.Contains(all, "THE END") || !strings.Contains(all, `\u{202e}`) {
		t.Error("something of it is missing")
	}
	if v := m.screen(); !strings.Contains(v, "PgUp") {
		t.Errorf(`the screen shows %s, want "PgUp" in it`, v)
	}
	m.up = 10_000
	if v := m.screen(); !strings.Contains(v, "may") || m.up >= 10_000 {
		t.Errorf("scrolled up: %s", v)
	}
}

// UI-07: a key in the first half second is not an answer, nor is typed text.
func TestArming(t *testing.T) {
	m := newModel(t.Context(), &Client{HTTP: http.DefaultClient, Base: "http://127.0.0.1:1"}, "/w")
	now := time.Now()
	m.now = func() time.Time { return now }
	m.id = "s"
	m.Update(happened{"s", []Event{ev("approval_requested", "t", `{"approval_id":"a","tool_call_id":"c","tool_name":"x","input":{}}`)}})
	now = now.Add(arming - time.Millisecond)
	if m.decide("approve", "") != nil || !m.isBad {
		t.Error("it was answered at once")
	}
	for _, k := range []tea.KeyPressMsg{{Code: 'y', Text: "y"}, {Code: tea.KeyEnter}, {Code: tea.KeySpace, Text: " "}} {
		m.Update(k)
	}
	if len(m.t.asks) != 1 {
		t.Error("what was typed has answered")
	}
	now = now.Add(time.Millisecond)
	if m.decide("approve", "") == nil {
		t.Error("it cannot be answered")
	}
	// Another question starts its own half second.
	m.Update(happened{"s", []Event{ev("approval_granted", "t", `{"approval_id":"a","tool_name":"x"}`), ev("approval_requested", "t", `{"approval_id":"b","tool_call_id":"d","tool_name":"y","input":{}}`)}})
	if m.decide("approve", "") != nil {
		t.Error("the next question is armed by the one before")
	}
}

// A stream that breaks is taken up where it was, and what an API refuses ends it.
func TestFollow(t *testing.T) {
	var n atomic.Int32
	var ids []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i := n.Add(1)
		ids = append(ids, r.Header.Get("Last-Event-ID"))
		if i == 3 {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":{"code":"not_found","message":"session not found"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "id: e:%d\ndata: {\"type\":\"turn_started\",\"turn_id\":\"t%d\"}\n\ndata: {\"type\":\"model_output_delta\",\"data\":{}}\n\n", i, i)
	}))
	defer srv.Close()
	c := &Client{HTTP: srv.Client(), Base: srv.URL}
	defer c.HTTP.CloseIdleConnections()
	var got []string
	var breaks int
	err := c.Follow(t.Context(), "s", "", func(e Event) { got = append(got, e.Type+e.ID) }, func(err error) {
		if err != nil {
			breaks++
		}
	})
	if err == nil || err.Error() != "session not found" || breaks != 2 || fmt.Sprint(ids) != "[ e:1 e:2]" || fmt.Sprint(got) != "[turn_startede:1 model_output_delta turn_startede:2 model_output_delta]" {
		t.Errorf("got %v, %v, %d breaks, ids %q", err, got, breaks, ids)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Follow(ctx, "s", "", func(Event) {}, func(error) {}); err == nil {
		t.Error("it goes on")
	}
}

// A program that is busy, and slow to take what it is told, gets every event once and in
// order; nothing goes on once the follower has been cancelled.
func TestFollowKeepsOrder(t *testing.T) {
	const n = 400
	done := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range n {
			fmt.Fprintf(w, "id: e:%d\ndata: {\"type\":\"x\",\"turn_id\":\"%d\"}\n\n", i, i)
			_ = http.NewResponseController(w).Flush()
			if i%20 == 0 {
				time.Sleep(2 * time.Millisecond) // they come over several frames
			}
		}
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}))
	defer srv.Close()
	defer close(done)
	msgs := make(chan tea.Msg)
	ctx, cancel := context.WithCancel(t.Context())
	f := follow(ctx, &Client{HTTP: srv.Client(), Base: srv.URL}, "s", func(m tea.Msg) {
		select {
		case msgs <- m:
		case <-ctx.Done():
		}
	})
	var got []string
	for len(got) < n {
		select {
		case m := <-msgs:
			if h, ok := m.(happened); ok {
				for _, e := range h.events {
					got = append(got, e.TurnID)
				}
				time.Sleep(3 * frame / 2) // busy
			}
		case <-time.After(eventually.Limit):
			t.Fatalf("%d events of %d came", len(got), n)
		}
	}
	for i, id := range got {
		if id != fmt.Sprint(i) {
			t.Fatalf("event %d is %s", i, id)
		}
	}
	cancel()
	f.done.Wait()
}

// Unknown commands, and commands that lack an argument, say so and change nothing.
func TestCommands(t *testing.T) {
	m := newModel(t.Context(), nil, "/w")
	for line, bad := range map[string]bool{"/nothing": true, "/open": true, "/title": true, "/steer": true, "/help": false, "/tool x {}": false, "/usr/bin/env": false, "/etc/hosts what is this": false, "/usr": false, "/mcp/tools": true, "/clear/model nope": true, "// a comment": false, "/*": false, "/": true, "hello": false, "/reject": false, "/new": false} {
		if _, err := m.parse(line); (err != nil) != bad {
			t.Errorf("%s: got %v, want %v", line, err, bad)
		}
	}
	for _, c := range commands() {
		if !strings.Contains(help(74), "/"+c.name) {
			t.Errorf("/help lacks %s", c.name)
		}
	}
}

// USE-4: a question shows a patch as lines with their colours, a command as sh takes it, and other
// arguments by name.
func TestQuestionIsReadable(t *testing.T) {
	m := newModel(t.Context(), nil, "/w")
	m.width, m.height = 90, 40
	red, green := m.palette.Bad, m.palette.Good
	for _, c := range []struct{ tool, args, want string }{
		{"shell", `{"command":"ls \u0026\u0026 git status","timeout_seconds":5}`, "  command: ls && git status\n  timeout_seconds: 5"},
		{"apply_patch", `{"patch":"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old \u001b[2J\n+new\n same\n"}`, "  patch:\n  │ " + screen.Paint(red, "--- a/x") + "\n  │ " + screen.Paint(green, "+++ b/x") + "\n  │ " + screen.Paint(screen.Faint, "@@ -1 +1 @@") + "\n  │ " + screen.Paint(red, `-old \u{1b}[2J`) + "\n  │ " + screen.Paint(green, "+new") + "\n  │  same"},
		{"edit", `{"path":"a.go","old_text":"5","new_text":"6\n7"}`, "  path: a.go\n  change:\n  │ " + screen.Paint(red, "-5") + "\n  │ " + screen.Paint(green, "+6") + "\n  │ " + screen.Paint(green, "+7")},
		{"other", `{"patch":"+a\nb","n":"5"}`, "  patch:\n  │ +a\n  │ b\n  n: \"5\""},
		{"other", `{"a":1,"a":2}`, `  {"a":1,"a":2}`},
	} {
		m.t.asks = []Ask{{ID: "a", Tool: c.tool, Input: []byte(c.args)}}
		q := m.question()
		if got := strings.Join(q[2:len(q)-1], "\n"); got != c.want {
			t.Errorf("the question of %s %s is\n%q, want\n%q", c.tool, c.args, got, c.want)
		}
	}
}
