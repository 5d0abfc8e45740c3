package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// quickFS does not wait for the disk.
type quickFS struct{ journal.FS }

func (q quickFS) SyncDir(string) error { return nil }

func (q quickFS) Open(name string, mode journal.Mode) (journal.File, error) {
	f, err := q.FS.Open(name, mode)
	return quickFile{f}, err
}

type quickFile struct{ journal.File }

func (quickFile) Sync() error { return nil }

// manySessions makes sessions as the API leaves them.
func manySessions(t *testing.T, dir string, n int) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "sessions"), 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	if err := root.WriteFile("VERSION", fmt.Appendln(nil, daemon.DataFormat), 0o600); err != nil { // no migration is to be measured
		t.Fatal(err)
	}
	m, err := session.OpenManager(session.Config{FS: quickFS{journal.Root(root)}, Workspace: "/ws", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	b := bus.New(bus.Config{Recorder: m})
	m.Bind(b)
	for i := range n {
		id, ws, at := fmt.Sprintf("sess_%026d", i), fmt.Sprint("/ws/", i%50), time.Now().UTC()
		_, err := m.Open(id, ws)
		if err == nil {
			_, err = bus.Publish(b.Kernel(), event.UserMessageReceived, id, event.UserMessage{Text: fmt.Sprint("message of session ", i)})
		}
		if err == nil {
			_, err = bus.Publish(b.Kernel(), event.TurnWasStarted, id, event.TurnStarted{TurnID: "turn_1"})
		}
		if err == nil {
			_, err = bus.Publish(b.Kernel(), event.TurnWasCompleted, id, event.TurnCompleted{TurnID: "turn_1"})
		}
		raw, jerr := json.Marshal(map[string]any{
			"id": id, "created_at": at, "updated_at": at, "changed": at, "status": "active", "workspace_path": ws, "auto_run": true,
			"title": fmt.Sprint("message of session ", i), "system_prompt": strings.Repeat("Be brief. ", 50),
		})
		folder := "sessions/" + id
		if err = errors.Join(err, jerr, root.Mkdir(folder, 0o700), root.WriteFile(folder+"/session.json", raw, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	since := time.Now()
	if err := m.Index(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("the index of %d sessions was made of their tapes in %v", n, time.Since(since).Round(time.Millisecond))
	if err := errors.Join(m.Close(context.Background()), b.Close(context.Background())); err != nil {
		t.Fatal(err)
	}
}

// rss is the memory of a process, in MiB.
func rss(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) //nolint:forbidigo // the system's file
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(raw), "VmRSS:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kb >> 10
}

// OP-11, OP-100, OP-101, REL-8: with 100,000 sessions yaya starts at once, even after an
// unclean end, a page comes from the index right after a start and later, and memory stays
// small after all pages. At full size, which is for a quiet machine, the times and the memory
// are limits.
func TestHundredThousandSessions(t *testing.T) {
	n, full := 2_000, os.Getenv("YAYA_TEST_SESSIONS")
	if full != "" {
		var err error
		if n, err = strconv.Atoi(full); err != nil {
			t.Fatal(err)
		}
	}
	b := newBox(t)
	manySessions(t, filepath.Join(b.dir, "d"), n)
	limit := func(what string, took, most time.Duration) {
		t.Helper()
		t.Logf("%s: %v", what, took.Round(time.Millisecond/10))
		if full != "" && took > 2*most { // other programs may be at work
			t.Errorf("%s took %v, want %v", what, took, most)
		}
	}
	for _, end := range []string{"clean", "unclean"} {
		since := time.Now()
		p := b.serve()
		limit("start after a "+end+" end, until ready", time.Since(since), 150*time.Millisecond)
		_, rows, took := b.sessionPage(t, "")
		limit("first page", took, 300*time.Millisecond)
		if rows != 100 {
			t.Errorf("the first page has %d rows, want 100", rows)
		}
		var all []time.Duration
		for range 50 {
			_, _, took := b.sessionPage(t, "")
			all = append(all, took)
		}
		slices.Sort(all)
		limit("warm page, median", all[len(all)/2], 20*time.Millisecond)
		total := 0
		for cursor := ""; ; {
			next, rows, _ := b.sessionPage(t, "?limit=1000"+cursor)
			total += rows
			if next == "" {
				break
			}
			cursor = "&cursor=" + next
		}
		if total != n {
			t.Errorf("all pages have %d sessions, want %d", total, n)
		}
		t.Logf("memory after all pages: %d MiB", rss(t, p.Process.Pid))
		if full != "" { // what the pages needed goes back within half a minute
			eventually.True(t, "memory at rest is at most 76 MiB", func() bool { return rss(t, p.Process.Pid) <= 76 })
			t.Logf("memory at rest: %d MiB", rss(t, p.Process.Pid))
		}
		if err := p.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "the killed yaya is gone", func() bool { return p.Process.Signal(syscall.Signal(0)) != nil })
	}
}

// sessionPage gets a page of the list of sessions.
func (b *box) sessionPage(t *testing.T, query string) (next string, rows int, took time.Duration) {
	t.Helper()
	since := time.Now()
	resp, err := http.Get("http://" + b.addr + "/v1/sessions" + query) //nolint:forbidigo,noctx // test
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(resp.Body) //nolint:forbidigo // test
	took = time.Since(since)
	if err = errors.Join(err, resp.Body.Close()); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET /v1/sessions%s = %d %s, %v; want status 200", query, resp.StatusCode, raw, err)
	}
	var body struct {
		Sessions []json.RawMessage `json:"sessions"`
		Next     string            `json:"next"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	return body.Next, len(body.Sessions), took
}
