package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/sse"
)

// restarted restarts the box's yaya and fails the test if that fails.
func (b *box) restarted() daemon.Restart {
	b.t.Helper()
	var r daemon.Restart
	out := b.must("restart", "--json", "--drain", "40s") // ends when the calls do, on a busy machine later
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		b.t.Fatalf("yaya restart --json: %v\n%s", err, out)
	}
	if r.State != daemon.RestartDone || !r.Drained {
		b.t.Errorf("yaya restart = %+v, want done and drained", r)
	}
	return r
}

// loaded are clients of a yaya that restarts.
type loaded struct {
	b    *box
	ctx  context.Context // ends the streams
	http *http.Client
	work sync.WaitGroup

	calls atomic.Int64
	stop  chan struct{} // ends the calls
	mu    sync.Mutex
	fails []string
}

func (l *loaded) fail(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails = append(l.fails, fmt.Sprintf(format, args...))
}

// mcp sends a message of a legacy session.
func (l *loaded) mcp(token, body string) (status int, header http.Header, answer string, err error) {
	req, err := http.NewRequestWithContext(context.WithoutCancel(l.ctx), http.MethodPost, l.b.url(), strings.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if token != "" {
		req.Header.Set("Mcp-Session-Id", token)
	}
	resp, err := l.http.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, string(raw), err
}

// session opens a legacy session.
func (l *loaded) session() (token string) {
	_, header, answer, err := l.mcp("", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}`)
	if err == nil {
		_, _, _, err = l.mcp(header.Get("Mcp-Session-Id"), `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	if err != nil || header.Get("Mcp-Session-Id") == "" {
		l.b.t.Fatalf("initialize = %s, %v; want a session", answer, err)
	}
	return header.Get("Mcp-Session-Id")
}

// call calls a tool again and again on one session; none may fail.
func (l *loaded) call(token string, pace time.Duration) {
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := 1; ; n++ {
		status, _, answer, err := l.mcp(token, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"one__echo","arguments":{"text":"call %[1]d"}}}`, n))
		if err != nil || status != http.StatusOK || !strings.Contains(answer, fmt.Sprintf("call %d", n)) || strings.Contains(answer, `"error"`) {
			l.fail("call %d: %d %s %v", n, status, answer, err)
			return
		}
		l.calls.Add(1)
		select {
		case <-l.stop:
			return
		case <-tick.C:
		}
	}
}

// streamed follows the stream of an MCP session, and again when it ends; it counts the
// notifications, and the times that it was opened.
func (l *loaded) streamed(token string, opened, noted *atomic.Int64) {
	last := ""
	l.follow(l.b.url(), func() []string { return []string{"Mcp-Session-Id", token, "Last-Event-ID", last} }, func() { opened.Add(1) }, func(ev sse.Event) {
		if ev.ID != "" {
			last = ev.ID
		}
		if strings.Contains(string(ev.Data), "list_changed") {
			noted.Add(1)
		}
	})
}

// follow follows a stream of events until the test ends.
func (l *loaded) follow(url string, header func() []string, opened func(), take func(sse.Event)) {
	for l.ctx.Err() == nil {
		req, err := http.NewRequestWithContext(l.ctx, http.MethodGet, url, nil)
		if err != nil {
			l.fail("%v", err)
			return
		}
		req.Header.Set("Accept", "text/event-stream")
		for h := header(); len(h) > 0; h = h[2:] {
			if h[1] != "" {
				req.Header.Set(h[0], h[1])
			}
		}
		resp, err := l.http.Do(req)
		if err != nil {
			if l.ctx.Err() == nil {
				l.fail("GET %s: %v", url, err)
			}
			return
		}
		if resp.StatusCode != http.StatusOK {
			l.fail("GET %s = %s", url, resp.Status)
		}
		opened()
		for r := sse.NewReader(resp.Body, 8<<20); ; {
			ev, err := r.Next()
			if err != nil {
				break
			}
			take(ev)
		}
		_ = resp.Body.Close()
	}
}

// replayedText is that of a message in an entry that is sent again.
var replayedText = regexp.MustCompile(`"(?:text|content)":"(m[0-9]+)"`)

// heard holds the events of a session that one client has received.
type heard struct {
	mu    sync.Mutex
	last  int64
	epoch string
	said  []string // by the user
	again int      // it came back
}

func (h *heard) note(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said = append(h.said, text)
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.said)
}

// events follows a session over server-sent events.
func (l *loaded) events(id string, h *heard) {
	last := ""
	l.follow("http://"+l.b.addr+"/v1/sessions/"+id+"/events", func() []string { return []string{"Last-Event-ID", last} }, func() { h.again++ }, func(ev sse.Event) {
		if ev.ID == "" {
			return
		}
		last = ev.ID
		_, n, _ := strings.Cut(ev.ID, ":")
		if seq, err := strconv.ParseInt(n, 10, 64); err != nil || seq < h.last {
			l.fail("event %s of %s comes after %d", ev.ID, id, h.last)
		} else {
			h.last = seq
		}
		if ev.Name == "message_added" && strings.Contains(string(ev.Data), `"role":"user"`) {
			_, text, _ := strings.Cut(string(ev.Data), `"text":"`)
			text, _, _ = strings.Cut(text, `"`)
			h.note(text)
		}
	})
}

// socket follows a session over a WebSocket.
func (l *loaded) socket(id string, h *heard) {
	for l.ctx.Err() == nil {
		url := "ws://" + l.b.addr + "/api/sessions/" + id + "/events?since_entry=" + strconv.FormatInt(h.last, 10)
		if h.epoch != "" {
			url += "&epoch=" + h.epoch
		}
		ws, resp, err := websocket.DefaultDialer.DialContext(l.ctx, url, nil)
		if err != nil {
			if l.ctx.Err() == nil {
				l.fail("WebSocket: %v", err)
			}
			return
		}
		_ = resp.Body.Close()
		h.again++
		end := context.AfterFunc(l.ctx, func() { _ = ws.Close() })
		for {
			_, raw, err := ws.ReadMessage()
			if err != nil {
				break
			}
			var f struct {
				Type, Kind string
				Payload    struct{ Text string }
				Cursor     struct {
					Epoch string
					Seq   int64
				}
			}
			if err := json.Unmarshal(raw, &f); err != nil {
				l.fail("WebSocket: %v: %s", err, raw)
				break
			}
			switch {
			case f.Kind == "session.replay.entry":
				if m := replayedText.FindSubmatch(raw); m != nil && bytes.Contains(raw, []byte(`"role":"user"`)) {
					h.note(string(m[1]))
				}
			case f.Type == "cursor" || f.Type == "attached":
				h.last, h.epoch = max(h.last, f.Cursor.Seq), f.Cursor.Epoch
			case f.Type == "resync":
				l.fail("WebSocket: %s", raw)
			case f.Kind == "user.message.received":
				h.note(f.Payload.Text)
			}
		}
		end()
		_ = ws.Close()
	}
}

// OP-70, OP-71: a restart under load fails no call and refuses no connection. 200 MCP sessions
// go on under their ids, 25 of their streams and 25 of sessions resume where they were, and 20
// WebSockets as well; the process stays the same one.
func TestRestartUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	b.edit("mcp.json", `{"mcpServers":{`+entryOf(fixture, "one", "")+`}}`)
	ws := filepath.Join(b.dir, "ws")
	if err := os.Mkdir(ws, 0o700); err != nil {
		t.Fatal(err)
	}
	p := b.serve()
	ctx, cancel := context.WithCancel(t.Context())
	// A connection that Go's client has opened in vain stays in its pool, and yaya closes it after
	// five seconds without a request: the client must not send one in that moment.
	tr := &http.Transport{MaxIdleConnsPerHost: 400, IdleConnTimeout: 2 * time.Second}
	defer tr.CloseIdleConnections()
	l := &loaded{b: b, ctx: ctx, http: &http.Client{Transport: tr, Timeout: 0}, stop: make(chan struct{})}
	defer l.work.Wait()
	defer cancel()

	const callers, streams, sockets, chats = 200, 25, 20, 5
	var calls sync.WaitGroup
	var opened, noted [streams]atomic.Int64
	for i := range callers {
		token := l.session()
		calls.Go(func() { l.call(token, time.Duration(20+i)*time.Millisecond) })
		if i < streams {
			l.work.Go(func() { l.streamed(token, &opened[i], &noted[i]) })
		}
	}
	var ids []string
	for range chats {
		status, made := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, ws))
		id, _ := made["session_id"].(string)
		if status != http.StatusCreated {
			t.Fatalf("POST /v1/sessions = %d %v", status, made)
		}
		ids = append(ids, id)
	}
	readers := make([]*heard, streams+sockets)
	for i := range readers {
		h := new(heard)
		readers[i] = h
		if i < streams {
			l.work.Go(func() { l.events(ids[i%chats], h) })
		} else {
			l.work.Go(func() { l.socket(ids[i%chats], h) })
		}
	}
	var posted [chats]atomic.Int64
	for i, id := range ids {
		calls.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for n := 0; ; n++ {
				req, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodPost, "http://"+b.addr+"/v1/sessions/"+id+"/messages", strings.NewReader(fmt.Sprintf(`{"role":"user","id":"m%d","delivery":"queue","parts":[{"type":"text","text":"m%[1]d"}]}`, n)))
				if err != nil {
					l.fail("%v", err)
					return
				}
				req.Header.Set("Content-Type", "application/json")
				resp, err := l.http.Do(req)
				if err != nil {
					l.fail("message %d: %v", n, err)
					return
				}
				raw, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if resp.StatusCode != http.StatusAccepted || err != nil {
					l.fail("message %d = %s %s, %v", n, resp.Status, raw, err)
					return
				}
				posted[i].Add(1)
				select {
				case <-l.stop:
					return
				case <-tick.C:
				}
			}
		})
	}
	more := func(what string) {
		t.Helper()
		from := l.calls.Load()
		eventually.True(t, "calls "+what, func() bool { return l.calls.Load() > from+2*callers })
	}
	more("before the restart")
	r := b.restarted()
	more("after the restart")
	close(l.stop)
	calls.Wait()
	if p.ProcessState != nil || r.TookMS <= 0 {
		t.Errorf("process ended: %v, took %d ms; want the same process, and its time", p.ProcessState, r.TookMS)
	}
	l.mu.Lock()
	if len(l.fails) > 0 {
		t.Errorf("%d calls and streams failed, want none: %q", len(l.fails), l.fails[:min(len(l.fails), 5)])
	}
	l.mu.Unlock()
	for i := range streams {
		eventually.True(t, "the stream of an MCP session resumes, and says that the lists have changed", func() bool { return opened[i].Load() >= 2 && noted[i].Load() > 0 })
	}
	for i, h := range readers {
		n := int(posted[i%chats].Load())
		var want []string
		for m := range n {
			want = append(want, fmt.Sprintf("m%d", m))
		}
		eventually.True(t, fmt.Sprintf("reader %d has heard %d messages, has %q", i, n, h.all()), func() bool { return len(h.all()) >= n })
		if got := h.all(); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
			t.Errorf("reader %d has heard %q, want each of %d messages once", i, got, n)
		}
	}
	t.Logf("%d calls on %d sessions, restarted in %d ms", l.calls.Load(), callers, r.TookMS)
}

// OP-72: a program or a configuration that cannot start is refused, with the reason, and the
// running yaya goes on.
func TestRestartIsChecked(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	own := copyBinary(t, b.bin)
	b.bin = own
	p := b.serve()
	b.edit("mcp.json", `{"mcpServers":`)
	out, err := b.run("restart")
	if err == nil || !strings.Contains(out, "mcp.json") || !strings.Contains(out, "goes on as before") {
		t.Errorf("yaya restart with a broken mcp.json = %v\n%s\nwant the file and that yaya goes on", err, out)
	}
	b.edit("mcp.json", `{"mcpServers":{}}`)
	for name, tt := range map[string]struct{ script, want string }{
		"a program that fails":         {"#!/bin/sh\necho broken >&2\nexit 3\n", "broken"},
		"a program that is not a yaya": {"#!/bin/sh\nexit 0\n", "not a yaya"},
		"a program that hangs":         {"#!/bin/sh\nexec sleep 600\n", "did not check its configuration within"}, // 20 s, in which nothing works
	} {
		spare := own + ".spare"
		if err := os.Rename(own, spare); err != nil {
			t.Fatal(err)
		}
		writeProgram(t, own, tt.script)
		b.bin = spare
		if out, err := b.run("restart"); err == nil || !strings.Contains(out, tt.want) {
			t.Errorf("yaya restart to %s = %v\n%s\nwant %q", name, err, out, tt.want)
		}
		if err := os.Rename(spare, own); err != nil {
			t.Fatal(err)
		}
		b.bin = own
	}
	if n := len(b.audited("restart_refused")); n != 4 {
		t.Errorf("the audit has %d refused restarts, want 4", n)
	}
	resp, err := http.Get("http://" + b.addr + "/health") //nolint:noctx // test
	if err != nil || p.ProcessState != nil {
		t.Fatalf("GET /health = %v, process %v; want the same yaya", err, p.ProcessState)
	}
	_ = resp.Body.Close()
	b.restarted()
	if n := len(b.audited("restarted")); n != 1 {
		t.Errorf("the audit has %d restarts, want 1", n)
	}
}

// OP-72: a program that passes the check and cannot start after all hands back to the program
// before it, which serves the connections that waited.
func TestRestartGoesBack(t *testing.T) {
	if _, err := os.Stat("/proc/self/exe"); errors.Is(err, os.ErrNotExist) {
		t.Skip("this system cannot run a program that was replaced")
	}
	t.Parallel()
	b := newBox(t)
	own, other := copyBinary(t, b.bin), copyBinary(t, b.bin)
	client := b.bin
	b.bin = own
	p := b.serve()
	spare := own + ".spare"
	if err := os.Rename(own, spare); err != nil {
		t.Fatal(err)
	}
	writeProgram(t, own, fmt.Sprintf("#!/bin/sh\nif [ -n \"$%s\" ]; then exec %s \"$@\"; fi\nexec %[2]s --config %s/none.toml \"$@\"\n", daemon.CheckEnv, other, b.dir))
	b.bin = client
	out, err := b.run("restart")
	if err == nil || !strings.Contains(out, "none.toml") || !strings.Contains(out, "goes on") {
		t.Errorf("yaya restart = %v\n%s\nwant the reason, and that the old one goes on", err, out)
	}
	if p.ProcessState != nil {
		t.Fatalf("the process ended: %v", p.ProcessState)
	}
	if n := len(b.audited("restart_failed")); n != 1 {
		t.Errorf("the audit has %d failed restarts, want 1", n)
	}
	resp, err := http.Get("http://" + b.addr + "/health") //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}
