package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/journal/journaltest"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		crashingChild(spec)
	}
	if spec := os.Getenv(mendChild); spec != "" {
		mendingChild(spec)
	}
	goleak.VerifyTestMain(m)
}

// world is a data directory with a bus and sessions on it.
type world struct {
	t   testing.TB
	dir string
	fs  journal.FS
	bus *bus.Bus
	*session.Manager
	stop func()

	mu        sync.Mutex
	events    []event.Event
	forgetful bool
}

func rootFS(t testing.TB, dir string) journal.FS {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return journal.Root(root)
}

// watched are the kinds that a world remembers.
var watched = []string{
	"session.started", "session.handoff", "session.reset", "session.archived", "session.forked",
	"session.compaction.started", "session.compaction.completed", "session.compaction.failed",
	"session.context.attached", "session.context.detached", "plugin.error", "user.message.received", "x.test.note",
}

func newWorld(t testing.TB, dir string, change ...func(*session.Config)) *world {
	t.Helper()
	w := &world{t: t, dir: dir}
	cfg := session.Config{FS: rootFS(t, dir), Workspace: "/ws", Log: zerolog.Nop()}
	for _, c := range change {
		c(&cfg)
	}
	w.fs = cfg.FS
	m, err := session.OpenManager(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.Manager = m
	w.bus = bus.New(bus.Config{Recorder: m})
	m.Bind(w.bus)
	_, err = w.bus.Subscribe(bus.SubscribeOptions{Name: "world", Limit: 1 << 20}, watched, func(_ context.Context, ev event.Event) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.forgetful {
			w.events = append(w.events, ev)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := errors.Join(<-done, m.Close(context.Background()), w.bus.Close(context.Background())); err != nil {
			t.Errorf("the end of Run, and Close of the sessions and the bus = %v, want no error", err)
		}
	})
	t.Cleanup(w.stop)
	return w
}

// settle waits until the bus has delivered what was published.
func (w *world) seen(kind string) (out []event.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ev := range w.events {
		if ev.Kind == kind {
			out = append(out, ev)
		}
	}
	return out
}

func (w *world) wait(kind string, n int) []event.Event {
	w.t.Helper()
	for deadline := time.Now().Add(eventually.Limit); time.Now().Before(deadline); {
		if got := w.seen(kind); len(got) >= n {
			return got
		}
		time.Sleep(time.Millisecond)
	}
	w.t.Fatalf("%d of %d %s", len(w.seen(kind)), n, kind)
	return nil
}

func publish[P any](w *world, t event.Topic[P], session string, p P) event.Event {
	w.t.Helper()
	ev, err := bus.Publish(w.bus.Kernel(), t, session, p)
	if err != nil {
		w.t.Fatal(err)
	}
	return ev
}

func (w *world) say(session, text string) event.Event {
	return publish(w, event.UserMessageReceived, session, event.UserMessage{Text: text})
}

func (w *world) open(id string) *session.Session {
	w.t.Helper()
	s, err := w.Open(id, "")
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

func entries(t testing.TB, s *session.Session) (out []session.Entry) {
	t.Helper()
	if err := s.Entries(0, func(e session.Entry) error { out = append(out, e); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// brief writes an entry as kind and the parts that matter.
func brief(e session.Entry) string {
	var p struct {
		Role, Content, Name, ID string
		ToolCallID              string `json:"tool_call_id"`
	}
	_ = json.Unmarshal(e.Payload, &p)
	return strings.Join(strings.Fields(strings.Join([]string{e.Kind, p.Role, p.Content, p.Name, p.ID, p.ToolCallID}, " ")), " ")
}

func briefs(es []session.Entry) (out []string) {
	for _, e := range es {
		out = append(out, brief(e))
	}
	return out
}

func history(t testing.TB, s *session.Session) (out []string) {
	t.Helper()
	msgs, err := s.Messages()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range msgs {
		line := m.Role + ": " + m.Content
		for _, c := range m.ToolCalls {
			line += " [" + c.ID + "]"
		}
		if m.ToolCallID != "" {
			line = m.Role + " " + m.ToolCallID + ": " + m.Content
		}
		out = append(out, line)
	}
	return out
}

func equal(t testing.TB, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// Y-173, Y-174, Y-175, Y-177: which events are written, in which form, and which
// are not.
func TestWhatIsWritten(t *testing.T) {
	w := newWorld(t, t.TempDir())
	s := w.open("s1")
	w.say("s1", "hello")
	publish(w, event.TurnWasStarted, "s1", event.TurnStarted{TurnID: "t1"})
	publish(w, event.AssistantMessageDelta, "s1", event.Delta{Content: "h"})
	publish(w, event.LLMCallDelta, "s1", event.LLMDelta{Content: "h"})
	publish(w, event.ToolCallRequest, "s1", event.ToolRequest{ID: "c1", Name: "echo", Args: []byte(`{"n":12345678901234567890}`)})
	publish(w, event.ToolCallResult, "s1", event.ToolResult{ID: "c1", OK: true, Value: []byte(`1`)})
	publish(w, event.MemoryQueried, "s1", event.MemoryQuery{Query: "q", K: 1})
	publish(w, event.AssistantMessageDone, "s1", event.AssistantMessage{Content: "hi", ToolCalls: []event.ToolCall{}})
	publish(w, event.ConfigWasUpdated, event.KernelSession, event.ConfigUpdated{Key: "k"})
	publish(w, event.SessionHandedOff, "s1", event.SessionHandoff{SessionID: "s1", Name: "n", State: []byte(`{}`)})
	got := entries(t, s)
	equal(t, briefs(got), "anchor session/start", "message user hello", "event turn.started", "tool_call echo c1",
		"tool_result c1", "event memory.query", "message assistant hi")
	for i, e := range got {
		if e.ID != int64(i+1) {
			t.Errorf("entry %d has id %d", i, e.ID)
		}
	}
	if !bytes.Contains(got[3].Payload, []byte(`12345678901234567890`)) {
		t.Errorf("an integer changed: %s", got[3].Payload)
	}
	if !bytes.Contains(got[5].Payload, []byte(`"data":{"query":"q","k":1}`)) { // Y-175: {name, data}
		t.Errorf(`got %s, want "data":{"query":"q","k":1} in it`, got[5].Payload)
	}
}

// Y-183: writing publishes nothing: subscribers see what was published, once.
func TestWritingIsSilent(t *testing.T) {
	w := newWorld(t, t.TempDir())
	w.open("s1")
	for range 10 {
		w.say("s1", "hello")
	}
	if err := w.bus.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := len(w.seen("user.message.received")); n != 10 || len(w.seen("plugin.error")) != 0 || len(w.seen("session.started")) != 1 {
		t.Errorf("subscribers saw %d messages", n)
	}
}

// Y-176: an event can be kept off the tape, unless it is a message, a call or a
// result; the wish is not part of the payload that plugins see.
func TestOptingOut(t *testing.T) {
	w := newWorld(t, t.TempDir())
	s := w.open("s1")
	p, err := w.bus.Plugin("web")
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{`{"a":1}`, `{"a":2,"persist":false}`, `{"a":3,"__persist__":false}`, `{"a":4,"persist":true}`} {
		if _, err := p.Emit("x.test.note", "s1", json.RawMessage(raw)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Emit("user.message.received", "s1", json.RawMessage(`{"text":"kept","persist":false}`)); err != nil {
		t.Fatal(err)
	}
	if _, err := bus.Publish(w.bus.Kernel().Unrecorded(), event.MemoryQueried, "s1", event.MemoryQuery{Query: "q"}); err != nil {
		t.Fatal(err)
	}
	equal(t, briefs(entries(t, s)), "anchor session/start", "event x.test.note", "event x.test.note", "message user kept")
	for i, ev := range w.wait("x.test.note", 4) {
		if want := fmt.Sprintf(`{"a":%d}`, i+1); string(ev.Payload.(json.RawMessage)) != want {
			t.Errorf("plugins see %s, want %s", ev.Payload, want)
		}
	}
}

// Y-171, Y-178, Y-181: open, anchor, fork, reset and archive say so; tapes are
// named after workspace and id.
func TestLifecycle(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	s, err := w.Open("s1", "/ws")
	if err != nil {
		t.Fatal(err)
	}
	// md5 of "/ws" and of "s1", 16 digits each.
	if got := session.TapeName("/ws", "s1"); got != "948361d435417485__8ddf878039b70767" {
		t.Errorf("the tape's name is %s", got)
	}
	started := w.wait("session.started", 1)[0].Payload.(event.SessionStarted)
	if started.SessionID != "s1" || started.TapeName != s.Tape() || started.Workspace != "/ws" {
		t.Errorf("got %+v, want s1 started in /ws with the tape %s", started, s.Tape())
	}
	w.say("s1", "one")
	if _, err := s.Handoff("phase/2", map[string]int{"a": 1}); err != nil {
		t.Fatal(err)
	}
	if h := w.wait("session.handoff", 1)[0].Payload.(event.SessionHandoff); h.Name != "phase/2" || string(h.State) != `{"a":1}` {
		t.Errorf(`got %+v, want phase/2 with {"a":1}`, h)
	}
	if _, err := w.Fork("s1", "s2"); err != nil {
		t.Fatal(err)
	}
	if f := w.wait("session.forked", 1)[0].Payload.(event.SessionForked); f.ParentID != "s1" || f.ChildID != "s2" {
		t.Errorf("got %+v, want s2 forked from s1", f)
	}
	path, err := s.Reset(true)
	if err != nil {
		t.Fatal(err)
	}
	if ok, _ := regexp.MatchString(`^tapes/\.archive/`+s.Tape()+`\.jsonl\.[0-9T.]+Z\.bak$`, path); !ok {
		t.Errorf("archived as %s", path)
	}
	if r := w.wait("session.reset", 1)[0].Payload.(event.SessionReset); r.ArchivePath == nil || *r.ArchivePath != path {
		t.Errorf("got %+v, want the archive %s", r, path)
	}
	if a := w.wait("session.archived", 1)[0].Payload.(event.SessionArchived); a.ArchivePath != path || a.SessionID != "s1" {
		t.Errorf("got %+v, want s1 archived as %s", a, path)
	}
	if data, err := os.ReadFile(filepath.Join(dir, path)); err != nil || !bytes.Contains(data, []byte(`"one"`)) {
		t.Errorf("the archive holds %q, %v", data, err)
	}
	equal(t, briefs(entries(t, s)), "anchor session/start") // re-seeded
	w.say("s1", "two")
	equal(t, history(t, s), "user: two")

	if _, err := s.Reset(false); err != nil {
		t.Fatal(err)
	}
	if r := w.wait("session.reset", 2)[1].Payload.(event.SessionReset); r.ArchivePath != nil {
		t.Errorf("got %+v, want no archive", r)
	}
	if _, err := w.Archive("s1", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Find("s1", ""); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an archived session is still there: %v", err)
	}
	if _, err := s.Messages(); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("an archived session can be read: %v", err)
	}
}

// Y-178: the same id in two workspaces is two sessions.
func TestSameIDInTwoWorkspaces(t *testing.T) {
	dir := t.TempDir()
	for _, ws := range []string{"/a", "/b"} {
		w := newWorld(t, dir, func(c *session.Config) { c.Workspace = ws })
		if _, err := w.Open("s1", ws); err != nil {
			t.Fatal(err)
		}
		w.say("s1", "in "+ws)
		if _, err := w.Open("s1", "/other"); err == nil {
			t.Error("an open session changed its workspace")
		}
		w.stop()
	}
	w := newWorld(t, dir, func(c *session.Config) { c.Workspace = "/c" })
	if _, err := w.Open("s1", ""); err == nil || !strings.Contains(err.Error(), "2 workspaces") {
		t.Errorf(`got %v, want "2 workspaces" in it`, err)
	}
	s, err := w.Open("s1", "/b")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, history(t, s), "user: in /b")
	list, err := w.List()
	if err != nil || len(list) != 2 || list[0].ID != "s1" || list[0].Title == list[1].Title {
		t.Errorf("got %+v, %v; want 2 sessions with different titles, s1 first", list, err)
	}
}

// Y-66, Y-172: invalid session ids.
func TestRefusedIDs(t *testing.T) {
	w := newWorld(t, t.TempDir())
	for _, id := range []string{"kernel", "_bridge:x", "", "../x", "a/b", "p::agent::c"} {
		if _, err := w.Open(id, ""); err == nil {
			t.Errorf("%q was opened", id)
		}
	}
}

// Y-179: a fork reads its parent's entries and its own, and writes only its own;
// resetting either leaves the other alone. It survives restarts, and a fork of a
// fork does.
func TestFork(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	p := w.open("p")
	w.say("p", "one")
	c, err := w.Fork("p", "p::agent::c1")
	if err != nil {
		t.Fatal(err)
	}
	w.say("p", "parent's")
	w.say(c.ID(), "child's")
	g, err := w.Fork(c.ID(), "g")
	if err != nil {
		t.Fatal(err)
	}
	w.say("g", "grandchild's")
	check := func() {
		t.Helper()
		equal(t, history(t, p), "user: one", "user: parent's")
		equal(t, history(t, c), "user: one", "user: child's")
		equal(t, history(t, g), "user: one", "user: child's", "user: grandchild's")
		equal(t, briefs(entries(t, g)), "anchor session/start", "message user one", "anchor session/start", "message user child's", "anchor session/start", "message user grandchild's")
		last := int64(0)
		for _, e := range entries(t, g) {
			if e.ID != last+1 {
				t.Errorf("entry %d follows %d", e.ID, last)
			}
			last = e.ID
		}
	}
	check()
	w.stop()
	w = newWorld(t, dir)
	p, c, g = w.open("p"), w.open("p::agent::c1"), w.open("g")
	check()
	if path, err := p.Reset(false); err != nil || path == "" {
		t.Fatalf("a tape that forks read was thrown away: %q, %v", path, err)
	}
	w.say("p", "one")
	w.say("p", "parent's")
	check()
	w.stop()
	w = newWorld(t, dir)
	p, c, g = w.open("p"), w.open("p::agent::c1"), w.open("g")
	check()
	if _, err := c.Reset(true); err != nil {
		t.Fatal(err)
	}
	equal(t, history(t, c))
	equal(t, history(t, p), "user: one", "user: parent's")
	equal(t, history(t, g), "user: one", "user: child's", "user: grandchild's")
	if _, err := w.Fork("p", "g"); err == nil {
		t.Error("a fork took over a session")
	}
	if _, err := w.Fork("nobody", "x"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("got %v, want %v", err, session.ErrNotFound)
	}
	if c.ParentID() != "" || g.ParentID() != "p::agent::c1" {
		t.Errorf("parents: %q, %q", c.ParentID(), g.ParentID())
	}
}

func toolCalls(ids ...string) (out []event.ToolCall) {
	for _, id := range ids {
		out = append(out, event.ToolCall{ID: id, Name: "echo", Args: []byte(`{}`)})
	}
	return out
}

// Y-159, Y-172: the model's history follows from the tape: results sit behind
// their call in call order, what came meanwhile behind them, and a call without
// result has a synthetic one, which says whether it began.
func TestHistory(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	s := w.open("s1")
	w.say("s1", "go")
	publish(w, event.LLMCallResponse, "s1", event.LLMResponse{Text: "let me see", ToolCalls: toolCalls("c1", "c2", "c3", "c4")})
	publish(w, event.ToolCallRequest, "s1", event.ToolRequest{ID: "c3", Name: "echo", Args: []byte(`{}`)})
	msgs, err := s.Messages()
	if err != nil {
		t.Fatal(err)
	}
	w.say("s1", "and hurry") // steers
	publish(w, event.ToolCallError, "s1", event.ToolError{ID: "c2", Kind: event.ToolRejected, Brief: "rejected", Detail: []byte(`{"message":"rejected: use the other file"}`)})
	publish(w, event.ToolCallResult, "s1", event.ToolResult{ID: "c1", OK: true, Envelope: []byte(`{"ok":true,"brief":"b","display":[{"kind":"text","text":"A"},{"kind":"json","data":{"x":1}}]}`)})
	publish(w, event.ToolCallResult, "s1", event.ToolResult{ID: "c1", OK: true, Value: []byte(`"a second answer"`)})
	publish(w, event.ToolCallResult, "s1", event.ToolResult{ID: "nobody", OK: true, Value: []byte(`"forged"`)})
	publish(w, event.LLMCallResponse, "s1", event.LLMResponse{Text: "done"})
	publish(w, event.AssistantMessageDone, "s1", event.AssistantMessage{Content: "done", ToolCalls: toolCalls("c1")})
	want := []string{
		"user: go", "assistant: let me see [c1] [c2] [c3] [c4]",
		"tool c1: A\n{\"x\":1}", "tool c2: rejected: use the other file", "tool c3: " + session.Interrupted, "tool c4: " + session.NotBegun,
		"user: and hurry", "assistant: done",
	}
	equal(t, history(t, s), want...)
	if msgs[2].Content != session.NotBegun || msgs[4].Content != session.Interrupted || len(msgs) != 6 {
		t.Errorf("a history that was handed out has changed: %+v", msgs)
	}
	w.stop()
	w = newWorld(t, dir)
	equal(t, history(t, w.open("s1")), want...)
}

// A message that arrives at the end of a turn follows the answer; an answer that
// became a message appears once.
func TestSpeakingIntoTheEnd(t *testing.T) {
	w := newWorld(t, t.TempDir())
	s := w.open("s1")
	w.say("s1", "go")
	publish(w, event.LLMCallResponse, "s1", event.LLMResponse{Text: "an answer"})
	w.say("s1", "wait")
	publish(w, event.LLMCallResponse, "s1", event.LLMResponse{Text: "another"})
	publish(w, event.AssistantMessageDone, "s1", event.AssistantMessage{Content: "another", ToolCalls: []event.ToolCall{}})
	w.say("s1", "thanks")
	equal(t, history(t, s), "user: go", "assistant: an answer", "user: wait", "assistant: another", "user: thanks")
}

// ST-05, ST-15: nothing depends on data that a power cut may destroy: a file and
// its name reach the disk before anything is acknowledged, and a new tape before it
// replaces the old one.
func TestOrderOfSyncs(t *testing.T) {
	var steps []string
	faults := &journaltest.Faults{Before: func(s journaltest.Step) error {
		name := s.Name
		for _, part := range []string{".new", ".bak", ".jsonl", ".archive", "tapes"} {
			if strings.HasSuffix(name, part) {
				name = part
			}
		}
		steps = append(steps, s.Op+" "+name)
		return nil
	}}
	w := newWorld(t, t.TempDir(), func(c *session.Config) { faults.FS = c.FS; c.FS = faults })
	s := w.open("s1")
	if err := s.Sync(t.Context(), w.say("s1", "one").Entry); err != nil {
		t.Fatal(err)
	}
	equal(t, steps, "mkdir .archive", "open .jsonl", "write .jsonl", "write .jsonl", "sync .jsonl", "syncdir tapes")
	w.say("s1", "two")
	steps = nil
	if _, err := s.Reset(true); err != nil {
		t.Fatal(err)
	}
	equal(t, steps, "remove .new", "open .new", "write .new", "sync .new", "syncdir tapes",
		"sync .jsonl", "link .bak", "syncdir .archive", "rename .jsonl", "syncdir tapes")
	w.say("s1", "three")
	steps = nil
	if _, err := w.Fork("s1", "s2"); err != nil {
		t.Fatal(err)
	}
	equal(t, steps, "sync .new", "open .jsonl", "write .jsonl") // the parent, by the name that it was opened under
	steps = nil
	if _, err := w.Archive("s1", ""); err != nil {
		t.Fatal(err)
	}
	equal(t, steps, "link .bak", "syncdir .archive", "remove .jsonl", "syncdir tapes", "remove tapes/.queued/"+session.TapeName("/ws", "s1"))
}

// Y-160, Y-180, Y-51, Y-52: a compaction hides the prefix behind a summary and
// removes nothing.
func TestCompaction(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	s := w.open("s1")
	long := strings.Repeat("word ", 400) // 500 tokens
	for i := range 10 {
		w.say("s1", fmt.Sprint(i, long))
		publish(w, event.AssistantMessageDone, "s1", event.AssistantMessage{Content: "ok", ToolCalls: []event.ToolCall{}})
	}
	o := session.CompactOptions{Threshold: 6000, Target: 2000}
	fail := func(context.Context, []event.Message, int) (session.Summary, error) {
		return session.Summary{}, errors.New("not asked")
	}
	if done, err := s.Compact(t.Context(), o, fail); done || err != nil {
		t.Fatalf("compacted below the threshold: %v, %v", done, err)
	}
	o.Threshold = 5000
	var old []event.Message
	done, err := s.Compact(t.Context(), o, func(_ context.Context, m []event.Message, tokens int) (session.Summary, error) {
		if tokens != 1000 {
			t.Errorf("asked for %d tokens", tokens)
		}
		old = m
		return session.Summary{Text: "they counted"}, nil
	})
	if !done || err != nil {
		t.Fatalf("got %v, %v, want done, no error", done, err)
	}
	if len(old) != 18 && len(old) != 16 {
		t.Errorf("%d messages were summed up", len(old))
	}
	got := history(t, s)
	if got[0] != "system: they counted" || len(got) != 20-len(old)+1 || !strings.HasPrefix(got[1], fmt.Sprintf("user: %d", len(old)/2)) {
		t.Errorf("history of %d: %.60q", len(got), got)
	}
	started := w.wait("session.compaction.started", 1)[0]
	completed := w.wait("session.compaction.completed", 1)[0]
	if started.SessionID != event.KernelSession || completed.SessionID != event.KernelSession { // Y-51, Y-52
		t.Error("not on the kernel session")
	}
	c := completed.Payload.(event.CompactionCompleted)
	if c.TargetSessionID != "s1" || c.TokensBefore < 5000 || c.TokensAfter >= c.TokensBefore || c.TokensAfter > 2000 {
		t.Errorf("got %+v, want s1 brought from 5000 tokens or more to at most 2000", c)
	}
	if n := len(entries(t, s)); n != 22 {
		t.Errorf("%d entries, want all 21 and an anchor", n)
	}
	w.say("s1", "more")
	want := history(t, s)
	w.stop()
	w = newWorld(t, dir)
	s = w.open("s1")
	equal(t, history(t, s), want...)
	if done, err := s.Compact(t.Context(), o, fail); done || err != nil {
		t.Errorf("compacted again: %v, %v", done, err)
	}
	c2, err := w.Fork("s1", "f") // the fork starts from the summary, too
	if err != nil {
		t.Fatal(err)
	}
	w.stop()
	w = newWorld(t, dir)
	equal(t, history(t, w.open(c2.ID())), want...)
}

// Y-53: three tries, then it has failed and nothing has changed.
func TestCompactionFails(t *testing.T) {
	w := newWorld(t, t.TempDir())
	s := w.open("s1")
	for range 4 {
		w.say("s1", strings.Repeat("x", 4000))
	}
	tries := 0
	_, err := s.Compact(t.Context(), session.CompactOptions{Threshold: 1, Target: 10, Backoff: time.Millisecond}, func(context.Context, []event.Message, int) (session.Summary, error) {
		tries++
		return session.Summary{}, errors.New("no model")
	})
	if err == nil || tries != 3 {
		t.Errorf("%d tries, %v", tries, err)
	}
	f := w.wait("session.compaction.failed", 1)[0]
	if p := f.Payload.(event.CompactionFailed); f.SessionID != event.KernelSession || p.TargetSessionID != "s1" || !strings.Contains(p.Error, "no model") {
		t.Errorf(`got %+v; want the failure "no model" for s1, on the kernel session`, f)
	}
	if got := history(t, s); len(got) != 4 {
		t.Errorf("%d messages are left", len(got))
	}
}

// A turn that a crash cut off is ended before anybody sees it: its calls, asks
// and the turn itself, once.
func TestInterruptedTurnIsRepaired(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	s := w.open("s1")
	w.say("s1", "go")
	publish(w, event.TurnWasStarted, "s1", event.TurnStarted{TurnID: "t1"})
	publish(w, event.LLMCallResponse, "s1", event.LLMResponse{ToolCalls: toolCalls("c1", "c2")})
	publish(w, event.ToolCallRequest, "s1", event.ToolRequest{ID: "c1", Name: "echo", Args: []byte(`{}`)})
	publish(w, event.ToolCallRequest, "s1", event.ToolRequest{ID: "c2", Name: "echo", Args: []byte(`{}`)})
	publish(w, event.ToolCallResult, "s1", event.ToolResult{ID: "c2", OK: true, Value: []byte(`2`)})
	if _, err := s.Note(event.Event{Kind: "approval.request", ID: "e"}, session.Ask{ApprovalRequest: event.ApprovalRequest{ID: "a1", ToolName: "echo"}, SessionID: "s1"}); err != nil {
		t.Fatal(err)
	}
	sn, err := s.Snapshot()
	if err != nil || sn.TurnID != "t1" || len(sn.Asks) != 1 || sn.Asks[0].ID != "a1" || sn.AsOfSeq != 8 {
		t.Fatalf("got %+v, %v; want the turn t1, the ask a1 and entry 8", sn, err)
	}
	if _, err := s.Reset(true); !errors.Is(err, session.ErrBusy) {
		t.Errorf("reset in a turn: %v", err)
	}
	w.stop() // as a crash would: nothing was ended
	for range 2 {
		w = newWorld(t, dir)
		s = w.open("s1")
		got := briefs(entries(t, s))
		equal(t, got[8:], "event approval.cancelled", "tool_result c1", "event turn.failed")
		sn, err := s.Snapshot()
		if err != nil || sn.TurnID != "" || len(sn.Asks) != 0 {
			t.Errorf("got %+v, %v; want no turn and no ask", sn, err)
		}
		equal(t, history(t, s), "user: go", "assistant:  [c1] [c2]", "tool c1: "+session.Interrupted, "tool c2: 2")
		w.stop()
	}
	data, err := os.ReadFile(filepath.Join(dir, "tapes", s.Tape()+".jsonl"))
	if err != nil || !bytes.Contains(data, []byte(`"kind":"interrupted"`)) || !bytes.Contains(data, []byte(`"reason":"shutdown"`)) {
		t.Errorf("got %v and the tape\n%s\nwant an entry of the kind interrupted, and the reason shutdown", err, data)
	}
}

// The prompts that wait and the ids that clients gave survive a restart.
func TestQueueAndClientIDs(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	s := w.open("s1")
	if _, err := bus.Publish(w.bus.Kernel().ForClient("id-1"), event.UserMessageReceived, "s1", event.UserMessage{Text: "one"}); err != nil {
		t.Fatal(err)
	}
	q := []session.Prompt{{ID: "id-2", Text: "two"}, {ID: "id-3", Text: "three"}}
	if _, err := s.SetQueue(q, ""); err != nil {
		t.Fatal(err)
	}
	for range 300 {
		w.say("s1", "more")
	}
	if _, err := s.Handoff("compaction", session.Compaction{Kind: "compaction", Summary: "sum"}); err != nil {
		t.Fatal(err)
	}
	check := func(s *session.Session, ids ...string) {
		t.Helper()
		sn, err := s.Snapshot()
		if err != nil || len(sn.Queue) != 2 || sn.Queue[1].Text != "three" {
			t.Errorf(`got %+v, %v; want 2 prompts, the second of them "three"`, sn.Queue, err)
		}
		for _, id := range ids {
			a, ok, err := s.Admitted(id)
			if err != nil || !ok || a.Hash != (session.Prompt{Text: map[string]string{"id-1": "one", "id-2": "two"}[id]}).Hash() || (a.Entry > 0) != (id == "id-1") {
				t.Errorf("Admitted(%s) = %+v, %v, %v, want its hash, and an entry only for id-1", id, a, ok, err)
			}
		}
	}
	check(s, "id-1", "id-2")
	w.stop()
	w = newWorld(t, dir)
	check(w.open("s1"), "id-2")
}

// Y-182: a tape that cannot be written does not stop the session, is reported,
// and is the caller's error where somebody was promised that it is stored. When
// the disk is back, so is the tape.
func TestFullDisk(t *testing.T) {
	full := false
	faults := &journaltest.Faults{Before: func(s journaltest.Step) error {
		if full && s.Op == "write" {
			return syscall.ENOSPC
		}
		return nil
	}}
	w := newWorld(t, t.TempDir(), func(c *session.Config) { faults.FS = c.FS; c.FS = faults })
	s := w.open("s1")
	w.say("s1", "one")
	full = true
	if _, err := bus.Publish(w.bus.Kernel(), event.UserMessageReceived, "s1", event.UserMessage{Text: "lost"}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a message was accepted that is stored nowhere: %v", err)
	}
	publish(w, event.AssistantMessageDone, "s1", event.AssistantMessage{Content: "not on tape", ToolCalls: []event.ToolCall{}})
	pe := w.wait("plugin.error", 1)[0]
	if p := pe.Payload.(event.PluginError); pe.Source != session.Persister || p.Name != session.Persister || !strings.Contains(p.Error, "no space") {
		t.Errorf(`got %+v, want "no space" from %s`, pe, session.Persister)
	}
	full = false
	w.say("s1", "two")
	equal(t, history(t, s), "user: one", "user: two")
	if got := w.seen("user.message.received"); len(got) > 2 {
		t.Errorf("subscribers saw the message that was refused")
	}
}

// R29, ST-07: after a failed fsync readers start over, since entries that they saw
// may be lost.
func TestFailedFsync(t *testing.T) {
	broken := false
	faults := &journaltest.Faults{Before: func(s journaltest.Step) error {
		if broken && s.Op == "sync" {
			return syscall.EIO
		}
		return nil
	}}
	w := newWorld(t, t.TempDir(), func(c *session.Config) { faults.FS = c.FS; c.FS = faults })
	s := w.open("s1")
	if err := s.Sync(t.Context(), w.say("s1", "one").Entry); err != nil {
		t.Fatal(err)
	}
	sn, _ := s.Snapshot()
	broken = true
	if err := s.Sync(t.Context(), w.say("s1", "unsure").Entry); !errors.Is(err, syscall.EIO) {
		t.Fatalf("got %v, want %v", err, syscall.EIO)
	}
	broken = false
	w.say("s1", "two")
	equal(t, history(t, s), "user: one", "user: two")
	if now, _ := s.Snapshot(); now.Epoch == sn.Epoch {
		t.Error("the epoch is the same")
	}
}

// R36: a tape whose disk hangs delays its own session and no other.
func TestHangingDiskDelaysOneSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		hang := false
		faults := &journaltest.Faults{}
		w := newWorld(t, t.TempDir(), func(c *session.Config) { faults.FS = c.FS; c.FS = faults })
		slow := w.open("s1")
		for i := range 200 { // whatever shares a lock by chance would show
			w.open(fmt.Sprint("other-", i))
		}
		faults.Before = func(s journaltest.Step) error {
			if hang && s.Op == "write" && strings.Contains(s.Name, slow.Tape()) {
				<-release
			}
			return nil
		}
		hang = true
		done := make(chan struct{})
		go func() {
			w.say("s1", "slow")
			close(done)
		}()
		synctest.Wait()
		for i := range 200 {
			w.say(fmt.Sprint("other-", i), "quick")
		}
		publish(w, event.ConfigWasUpdated, event.KernelSession, event.ConfigUpdated{Key: "k"})
		select {
		case <-done:
			t.Error("it did not hang")
		default:
		}
		close(release)
		<-done
		equal(t, history(t, slow), "user: slow")
		w.stop()
	})
}

// roomyFS says how much space there is.
type roomyFS struct {
	journal.FS
	free int64
	err  error
}

func (r *roomyFS) Free() (journal.Space, error) {
	return journal.Space{Bytes: r.free, Files: -1}, r.err
}

// C.2: new work is refused below 64 MiB of free space; running turns continue.
func TestLittleSpace(t *testing.T) {
	disk := &roomyFS{free: session.MinFree}
	w := newWorld(t, t.TempDir(), func(c *session.Config) { disk.FS = c.FS; c.FS = disk })
	w.say("s1", "at the limit")
	disk.free++
	w.say("s1", "above")
	disk.free = session.MinFree - 1
	say := func() error {
		_, err := bus.Publish(w.bus.Kernel(), event.UserMessageReceived, "s1", event.UserMessage{Text: "below"})
		return err
	}
	if err := say(); !errors.Is(err, session.ErrDiskFull) || !strings.Contains(err.Error(), "63 MiB are free, and 64 MiB are kept for running turns") {
		t.Errorf("got %v; want %v, with 63 MiB free and 64 MiB kept", err, session.ErrDiskFull)
	}
	publish(w, event.AssistantMessageDone, "s1", event.AssistantMessage{Content: "done", ToolCalls: []event.ToolCall{}})
	disk.err = syscall.EIO
	if err := say(); !errors.Is(err, syscall.EIO) {
		t.Errorf("got %v, want %v", err, syscall.EIO)
	}
	equal(t, history(t, w.open("s1")), "user: at the limit", "user: above", "assistant: done")
}

// A disk that takes longer than two seconds is noticed.
func TestStalledDisk(t *testing.T) {
	for _, took := range []time.Duration{stallLimit - time.Millisecond, stallLimit} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			faults := &journaltest.Faults{Before: func(s journaltest.Step) error {
				if s.Op == "sync" {
					time.Sleep(took)
				}
				return nil
			}}
			w := newWorld(t, t.TempDir(), func(c *session.Config) { faults.FS = c.FS; c.FS = faults; c.Log = zerolog.New(&log) })
			s := w.open("s1")
			if err := s.Sync(t.Context(), w.say("s1", "x").Entry); err != nil {
				t.Fatal(err)
			}
			if warned := strings.Contains(log.String(), "the disk is slow"); warned != (took >= stallLimit) {
				t.Errorf("after %v: %s", took, log.String())
			}
			w.stop()
		})
	}
}

const stallLimit = 2 * time.Second

// ST-08: a data directory that cannot be written is a clear error.
func TestReadOnly(t *testing.T) {
	faults := &journaltest.Faults{Before: func(s journaltest.Step) error { return syscall.EROFS }}
	w := newWorld(t, t.TempDir(), func(c *session.Config) {
		faults.FS = c.FS
		if err := c.FS.MkdirAll("tapes/.archive"); err != nil {
			t.Fatal(err)
		}
		faults.Before = func(s journaltest.Step) error {
			if s.Op == "mkdir" {
				return nil
			}
			return syscall.EROFS
		}
		c.FS = faults
	})
	if _, err := w.Open("s1", ""); !errors.Is(err, syscall.EROFS) {
		t.Errorf("got %v, want %v", err, syscall.EROFS)
	}
	if _, err := bus.Publish(w.bus.Kernel(), event.UserMessageReceived, "s1", event.UserMessage{Text: "x"}); !errors.Is(err, syscall.EROFS) {
		t.Errorf("got %v, want %v", err, syscall.EROFS)
	}
}

// Verify names file and entry for every flipped bit, wherever the tape is.
func TestVerify(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	s := w.open("s1")
	w.say("s1", "one")
	if _, err := s.Reset(true); err != nil {
		t.Fatal(err)
	}
	w.say("s1", "two")
	w.stop()
	fsys := rootFS(t, dir)
	if n, f, err := session.Verify(fsys); n != 2 || len(f) != 0 || err != nil {
		t.Fatalf("%d files, %+v, %v", n, f, err)
	}
	files := []string{filepath.Join("tapes", s.Tape()+".jsonl")}
	archived, err := fs.Glob(os.DirFS(dir), "tapes/.archive/*")
	if err != nil || len(archived) != 1 {
		t.Fatalf("got %v, %v, want len(archived) 1", archived, err)
	}
	for _, name := range append(files, archived...) {
		path := filepath.Join(dir, name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole {
			bad := bytes.Clone(whole)
			bad[i] ^= 1 << (i % 8)
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			_, f, err := session.Verify(fsys)
			want := int64(bytes.Count(whole[:i], []byte("\n"))) + 1
			if err != nil || len(f) != 1 || f[0].File != name || f[0].Entry != want || !f[0].Damaged {
				t.Fatalf("byte %d of %s: %+v, %v; want entry %d", i, name, f, err, want)
			}
		}
		if err := os.WriteFile(path, whole[:len(whole)-1], 0o600); err != nil {
			t.Fatal(err)
		}
		if _, f, err := session.Verify(fsys); err != nil || len(f) != 1 || f[0].Damaged {
			t.Errorf("a torn tail: %+v, %v", f, err)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// A damaged tape is refused by name, and harms no other session.
func TestDamagedTapeIsRefused(t *testing.T) {
	dir := t.TempDir()
	w := newWorld(t, dir)
	w.say("s1", "one")
	w.say("s1", "two")
	w.say("s2", "other")
	w.stop()
	path := filepath.Join(dir, "tapes", session.TapeName("/ws", "s1")+".jsonl")
	data, _ := os.ReadFile(path)
	if err := os.WriteFile(path, bytes.Replace(data, []byte("one"), []byte("0ne"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	w = newWorld(t, dir)
	_, err := w.Open("s1", "")
	if d, ok := errors.AsType[*journal.DamageError](err); !ok || d.Entry != 2 || !strings.Contains(err.Error(), "session s1") {
		t.Errorf("got %v, want the damage at entry 2 of session s1", err)
	}
	equal(t, history(t, w.open("s2")), "user: other")
}

// R28: a tape of a newer yaya is refused, not misread (ST-16).
func TestNewerFormatIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "tapes"), 0o700); err != nil {
		t.Fatal(err)
	}
	fsys := rootFS(t, dir)
	j, err := journal.Open(fsys, "tapes/"+session.TapeName("/ws", "s1")+".jsonl", journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := j.Append([]byte(`"kind":"anchor","payload":{"name":"session/start","state":{"format":2,"session_id":"s1","workspace":"/ws","epoch":"e"}},"meta":{},"date":"2026-01-01T00:00:00Z"`)); err != nil {
		t.Fatal(err)
	}
	_ = j.Close()
	if _, err := newWorld(t, dir).Open("s1", ""); err == nil || !strings.Contains(err.Error(), "newer yaya") {
		t.Errorf(`got %v, want "newer yaya" in it`, err)
	}
}

// An unused tape is closed, and opens again by itself.
func TestIdleTapesAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opens := 0
		faults := &countingFS{opens: &opens}
		w := newWorld(t, t.TempDir(), func(c *session.Config) { faults.FS = c.FS; c.FS = faults })
		s := w.open("s1")
		w.say("s1", "one")
		before := opens
		time.Sleep(6 * time.Minute)
		equal(t, history(t, s), "user: one")
		if opens <= before {
			t.Error("the tape stayed open")
		}
		before = opens
		release := s.Pin()
		time.Sleep(time.Hour)
		if _, err := s.Messages(); err != nil || opens != before {
			t.Errorf("a pinned tape was closed: %v", err)
		}
		release()
		w.stop()
	})
}

type countingFS struct {
	journal.FS
	opens *int
}

func (c *countingFS) Open(name string, mode journal.Mode) (journal.File, error) {
	if mode == journal.Append {
		*c.opens++
	}
	return c.FS.Open(name, mode)
}
