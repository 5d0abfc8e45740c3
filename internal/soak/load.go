//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/gorilla/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/internal/sse"
)

// Indexes of the load's counters, in the order of the table.
const (
	calls = iota
	turns
	pushes
	kills
	restarts
	works
)

var workNames = [works]string{"calls", "turns", "pushes", "kills and reloads", "restarts and backups"}

func workHeader() string { return strings.Join(workNames[:], " | ") }

// load is everything that uses yaya meanwhile.
type load struct {
	d     *daemon
	done  [works]atomic.Int64
	group sync.WaitGroup

	mu     sync.Mutex
	failed map[string]int // by what went wrong
}

func newLoad(d *daemon) *load { return &load{d: d, failed: map[string]int{}} }

func (l *load) wait() { l.group.Wait() }

func (l *load) row() string {
	var out []string
	for i := range l.done {
		out = append(out, fmt.Sprint(l.done[i].Load()))
	}
	return strings.Join(out, " | ")
}

// ids are those of sessions and requests: failures that differ in them alone are one.
var ids = regexp.MustCompile(`\b(sess|req)_\w+`)

// fail records a failure. Equal ones are counted, and different ones are bounded.
func (l *load) fail(who string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := who + ": " + ids.ReplaceAllString(strings.TrimSpace(err.Error()), "${1}_…")
	if _, known := l.failed[text]; !known && len(l.failed) >= 20 {
		text = "others"
	}
	l.failed[text]++
}

func (l *load) failures() (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for text, n := range l.failed {
		out = append(out, fmt.Sprintf("%d × %s", n, text))
	}
	return out
}

// run starts a worker that does something again and again until the end, with a pause.
func (l *load) run(ctx context.Context, who string, pause time.Duration, do func(ctx context.Context) error) {
	l.group.Go(func() {
		for ctx.Err() == nil {
			if err := do(ctx); err != nil && ctx.Err() == nil {
				l.fail(who, err)
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
}

// begin starts all workers. They end with ctx.
func (l *load) begin(ctx context.Context, lasts time.Duration) {
	for range 8 {
		l.run(ctx, "client", 10*time.Millisecond, l.client)
	}
	l.run(ctx, "client of the fragile server", time.Millisecond, l.fragile)
	for range 4 {
		l.run(ctx, "session", 50*time.Millisecond, l.session)
	}
	for range 4 {
		l.run(ctx, "dashboard", 100*time.Millisecond, l.dashboard)
	}
	l.run(ctx, "kill", 5*time.Second, func(context.Context) error {
		l.done[kills].Add(int64(l.d.killFragile()))
		return nil
	})
	more := false
	l.run(ctx, "reload", 15*time.Second, func(context.Context) error {
		more = !more
		if err := l.d.configure(more); err != nil {
			return err
		}
		l.done[kills].Add(1)
		return syscall.Kill(l.d.pid(), syscall.SIGHUP)
	})
	rest := func(context.Context) error { return nil }
	for i, step := range []func(context.Context) error{rest, l.restart, l.backup, l.restart, l.prune} {
		l.group.Go(func() {
			select {
			case <-ctx.Done():
			case <-time.After(lasts * time.Duration(i) / 5):
				if err := step(ctx); err != nil {
					l.fail("operator", err)
				}
			}
		})
	}
}

func (l *load) restart(ctx context.Context) error {
	l.done[restarts].Add(1)
	return l.d.command(ctx, "restart")
}

func (l *load) backup(ctx context.Context) error {
	l.done[restarts].Add(1)
	return l.d.command(ctx, "backup", filepath.Join(l.d.dir, fmt.Sprintf("backup-%d", time.Now().Unix())))
}

func (l *load) prune(ctx context.Context) error {
	return l.d.command(ctx, "session", "prune", "--older", "1d")
}

func (l *load) connect(ctx context.Context) (*sdk.ClientSession, error) {
	return sdk.NewClient(&sdk.Implementation{Name: "soak", Version: "1"}, nil).Connect(ctx, &sdk.StreamableClientTransport{Endpoint: "http://" + l.d.addr + "/mcp"}, nil)
}

// client opens a session, calls a tool in it, and closes it.
func (l *load) client(ctx context.Context) error {
	s, err := l.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = s.Close() }()
	for i := range 500 {
		text := fmt.Sprint("call ", i)
		res, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "steady__echo", Arguments: map[string]any{"text": text}})
		if err != nil {
			return fmt.Errorf("call: %w", err)
		}
		data, err := json.Marshal(res.Content)
		if err != nil {
			return err
		}
		if res.IsError || !bytes.Contains(data, []byte(text)) {
			return fmt.Errorf("call: got %.300s", data)
		}
		l.done[calls].Add(1)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(5 * time.Millisecond):
		}
	}
	return nil
}

// fragile calls the server whose process is killed. Its calls may fail; that yaya
// always answers, within a minute, is what counts.
func (l *load) fragile(ctx context.Context) error {
	s, err := l.connect(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = s.Close() }()
	for range 200 {
		within, cancel := context.WithTimeout(ctx, time.Minute)
		_, err := s.CallTool(within, &sdk.CallToolParams{Name: "fragile__echo", Arguments: map[string]any{"text": "x"}})
		timeout := errors.Is(err, context.DeadlineExceeded)
		cancel()
		if timeout {
			return errors.New("no answer within a minute")
		}
		l.done[calls].Add(1)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// session lets an agent take some turns, follows them, and deletes the session.
func (l *load) session(ctx context.Context) error {
	body, err := json.Marshal(map[string]any{"workspace_path": filepath.Join(l.d.dir, "w"), "auto_run": true})
	if err != nil {
		return err
	}
	raw, err := l.d.ask(ctx, http.MethodPost, "/v1/sessions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	var made struct {
		ID string `json:"session_id"`
	}
	if err := json.Unmarshal(raw, &made); err != nil {
		return err
	}
	for range 5 {
		if err := l.turn(ctx, made.ID); err != nil {
			return fmt.Errorf("turn: %w", err)
		}
		l.done[turns].Add(1)
	}
	_, err = l.d.ask(ctx, http.MethodDelete, "/v1/sessions/"+made.ID, nil)
	return err
}

// turn sends a message and follows the session's events until its turn has completed.
// A stream that ends is opened again after the last event.
func (l *load) turn(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	raw, err := l.d.ask(ctx, http.MethodPost, "/v1/sessions/"+id+"/messages", strings.NewReader(`{"role":"user","parts":[{"type":"text","text":"how are you?"}]}`))
	if err != nil {
		return err
	}
	var sent struct {
		Turn string `json:"turn_id"`
	}
	if err := json.Unmarshal(raw, &sent); err != nil {
		return err
	}
	for last := ""; ; {
		completed, err := l.follow(ctx, id, sent.Turn, &last)
		if err != nil || completed {
			return err
		}
	}
}

func (l *load) follow(ctx context.Context, id, turn string, last *string) (completed bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.d.addr+"/v1/sessions/"+id+"/events", nil)
	if err != nil {
		return false, err
	}
	if *last != "" {
		req.Header.Set("Last-Event-ID", *last)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return false, fmt.Errorf("events: %s", resp.Status)
	}
	for r := sse.NewReader(resp.Body, 8<<20); ; {
		ev, err := r.Next()
		if err != nil {
			return false, ctx.Err() // the stream ended: go on after the last event
		}
		if ev.ID != "" {
			*last = ev.ID
		}
		if ev.Name == "turn_completed" && bytes.Contains(ev.Data, []byte(turn)) {
			return true, nil
		}
	}
}

// dashboard watches on a WebSocket for a while. A restart ends the connection, and
// the next one takes its place.
func (l *load) dashboard(ctx context.Context) error {
	ws, _, err := websocket.DefaultDialer.DialContext(ctx, "ws://"+l.d.addr+"/api/live", nil) //nolint:bodyclose // of a connection that becomes another
	if err != nil {
		return err
	}
	defer func() { _ = ws.Close() }()
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`["1","1","dashboard:main","phx_join",{}]`)); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = ws.Close() })()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); l.done[pushes].Add(1) {
		if err := ws.SetReadDeadline(end); err != nil {
			return err
		}
		if _, _, err := ws.ReadMessage(); err != nil {
			return nil //nolint:nilerr // see above
		}
	}
	return nil
}
