package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// reader is a client: it keeps what it got, and its cursor.
type reader struct {
	mu      sync.Mutex
	items   []session.Item
	seen    []int64 // entries, anchors left out
	cursor  session.Cursor
	resyncs []string
	fail    error
	gate    chan struct{} // when set, each item waits for one
}

func (r *reader) send(ctx context.Context, it session.Item) error {
	r.mu.Lock()
	gate, fail := r.gate, r.fail
	r.mu.Unlock()
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if fail != nil {
		return fail
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.items = append(r.items, it)
	r.cursor = it.Cursor
	switch {
	case it.Resync != nil:
		r.resyncs = append(r.resyncs, it.Resync.Reason)
	case it.Snapshot != nil:
	default:
		if p, ok := it.Event.Payload.(event.ReplayEntry); ok && p.Kind != "anchor" {
			r.seen = append(r.seen, p.EntryID)
		}
		if it.Event.Entry > 0 {
			r.seen = append(r.seen, it.Event.Entry)
		}
	}
	return nil
}

func (r *reader) kinds() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, it := range r.items {
		switch {
		case it.Resync != nil:
			out = append(out, "resync "+it.Resync.Reason)
		case it.Snapshot != nil:
			out = append(out, "snapshot")
		default:
			out = append(out, it.Event.Kind)
		}
	}
	return out
}

func (r *reader) at() session.Cursor {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cursor
}

func (w *world) attach(id string, r *reader, since *int64, change ...func(*session.AttachOptions)) *session.Connection {
	w.t.Helper()
	o := session.AttachOptions{Adapter: "test", Send: r.send, Since: since}
	for _, c := range change {
		c(&o)
	}
	c, err := w.Attach(id, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// Y-184, Y-185, Y-187, Y-59, Y-60, Y-56: a replay from the start, from the
// middle, and none; then live.
func TestReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, t.TempDir())
		w.say("s1", "one")
		w.say("s1", "two")
		full, tail, live := new(reader), new(reader), new(reader)
		c := w.attach("s1", full, new(int64(0)))
		if ok, _ := regexp.MatchString(`^[0-9a-f]{32}$`, c.ID()); !ok {
			t.Errorf("connection id %q", c.ID())
		}
		w.attach("s1", tail, new(int64(2)))
		w.attach("s1", live, nil)
		synctest.Wait()
		equal(t, full.kinds(), "session.replay.entry", "session.replay.entry", "session.replay.entry", "session.replay.done")
		equal(t, tail.kinds(), "session.replay.entry", "session.replay.done")
		equal(t, live.kinds())
		first := full.items[0].Event
		if p := first.Payload.(event.ReplayEntry); first.SessionID != event.KernelSession || first.Source != "kernel-session-context" ||
			p.SessionID != "s1" || p.EntryID != 1 || p.Kind != "anchor" || !strings.Contains(string(p.Payload), "session/start") {
			t.Errorf("got %+v; want entry 1 of s1, the anchor session/start, on the kernel session", first)
		}
		if p := full.items[3].Event.Payload.(event.ReplayDone); p.SessionID != "s1" || p.ConnectionID != c.ID() || p.Replayed != 3 {
			t.Errorf("got %+v, want 3 entries of s1 replayed to %s", p, c.ID())
		}
		at := w.seen("session.context.attached")[0]
		if p := at.Payload.(event.ContextAttached); at.SessionID != event.KernelSession || at.Source != "kernel-session-context" ||
			p.SessionID != "s1" || p.ConnectionID != c.ID() || p.AdapterID != "test" {
			t.Errorf("got %+v; want s1 attached to %s of the adapter test, on the kernel session", at, c.ID())
		}
		w.say("s1", "three")
		synctest.Wait()
		for _, r := range []*reader{full, tail, live} {
			if k := r.kinds(); k[len(k)-1] != "user.message.received" || r.seen[len(r.seen)-1] != 4 || r.at().Seq != 4 {
				t.Errorf("got %v, %v; want user.message.received at entry 4", k, r.seen)
			}
		}
		w.stop()
	})
}

// Y-186, Y-188: events that are published during a replay come after it; a reader that
// fails or blocks is nobody else's problem.
func TestSlowAndFailingReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, t.TempDir())
		for range 5 {
			w.say("s1", "before")
		}
		slow, good, bad, rude := &reader{gate: make(chan struct{})}, new(reader), &reader{fail: errors.New("gone")}, new(reader)
		w.attach("s1", slow, new(int64(0)))
		w.attach("s1", good, nil)
		badConn := w.attach("s1", bad, nil)
		w.attach("s1", rude, nil, func(o *session.AttachOptions) {
			o.Send = func(context.Context, session.Item) error { panic("rude") }
		})
		synctest.Wait()
		slow.gate <- struct{}{} // it is in the middle of its replay
		for range 3000 {        // more than is held for those that lag
			w.say("s1", "during")
		}
		synctest.Wait()
		<-badConn.Done()
		if len(good.seen) != 3000 {
			t.Errorf("the good reader got %d", len(good.seen))
		}
		detached := w.seen("session.context.detached")
		if len(detached) != 2 {
			t.Fatalf("%d were detached", len(detached))
		}
		for _, ev := range detached { // Y-57
			if p := ev.Payload.(event.ContextDetached); p.Reason != "send_failed" || ev.SessionID != event.KernelSession || p.SessionID != "s1" {
				t.Errorf("got %+v; want s1 detached for send_failed, on the kernel session", ev)
			}
		}
		close(slow.gate)
		synctest.Wait()
		want := int64(2)
		for _, id := range slow.seen {
			if id != want {
				t.Fatalf("the slow reader got entry %d, want %d", id, want)
			}
			want++
		}
		if want != 3007 {
			t.Errorf("the slow reader ends at %d", want-1)
		}
		if i := slices.Index(slow.kinds(), "session.replay.done"); i != 6 {
			t.Errorf("the replay was done after %d items", i)
		}
		w.stop()
	})
}

// Y-189, Y-190: silence is found in [60 s, 65 s), or sooner with both tuned.
func TestHeartbeat(t *testing.T) {
	for name, c := range map[string]struct{ timeout, every, least, most time.Duration }{
		"default":    {0, 0, time.Minute, 65 * time.Second},
		"sub-second": {300 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, 400 * time.Millisecond},
		"half tuned": {300 * time.Millisecond, 0, 300 * time.Millisecond, 5*time.Second + 300*time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, t.TempDir(), func(cfg *session.Config) { cfg.HeartbeatTimeout, cfg.ReapInterval = c.timeout, c.every })
				w.open("s1")
				time.Sleep(7 * time.Millisecond) // off the beat of the reaper
				silent := w.attach("s1", new(reader), nil)
				alive := w.attach("s1", new(reader), nil)
				start := time.Now()
				beat := time.NewTicker(max(c.least/4, 50*time.Millisecond))
				for waiting := true; waiting; {
					select {
					case <-beat.C:
						if err := w.Heartbeat("s1", alive.ID()); err != nil {
							t.Fatal(err)
						}
					case <-silent.Done():
						waiting = false
					}
				}
				beat.Stop()
				if took := time.Since(start); took < c.least || took >= c.most {
					t.Errorf("found after %v, want within [%v, %v)", took, c.least, c.most)
				}
				synctest.Wait()
				got := w.seen("session.context.detached")
				if len(got) != 1 || got[0].Payload.(event.ContextDetached).Reason != "timeout" {
					t.Errorf(`got %+v, want one detached for "timeout"`, got)
				}
				if err := w.Heartbeat("s1", silent.ID()); err == nil {
					t.Error("a reaped connection has a heartbeat")
				}
				w.stop()
			})
		})
	}
}

// Y-191: detaching, and a shutdown that says so to every connection.
func TestDetach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, t.TempDir())
		w.open("s1")
		a := w.attach("s1", new(reader), nil)
		for range 3 {
			w.attach("s1", new(reader), nil)
		}
		if err := w.Detach("s1", a.ID()); err != nil {
			t.Fatal(err)
		}
		if err := w.Detach("s1", a.ID()); err == nil {
			t.Error("detached twice")
		}
		<-a.Done()
		if err := w.Close(t.Context()); err != nil {
			t.Errorf("Close of the sessions = %v, want no error", err)
		}
		synctest.Wait()
		var reasons []string
		for _, ev := range w.seen("session.context.detached") {
			reasons = append(reasons, ev.Payload.(event.ContextDetached).Reason)
		}
		equal(t, reasons, "client_close", "shutdown", "shutdown", "shutdown")
		if _, err := w.Attach("s1", session.AttachOptions{Send: new(reader).send}); err == nil {
			t.Error("attached after close")
		}
		w.stop()
	})
}

// An invalid cursor gets a resync with the state, never silence.
func TestResync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, t.TempDir())
		s := w.open("s1")
		w.say("s1", "one")
		sn, err := s.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		epoch := func(e string) func(*session.AttachOptions) { return func(o *session.AttachOptions) { o.Epoch = e } }
		good, ahead, foreign, reset := new(reader), new(reader), new(reader), new(reader)
		w.attach("s1", good, new(int64(1)), epoch(sn.Epoch))
		w.attach("s1", ahead, new(int64(3)), epoch(sn.Epoch))
		w.attach("s1", foreign, new(int64(1)), epoch("other"))
		w.attach("s1", reset, nil, func(o *session.AttachOptions) { o.Snapshot = true })
		synctest.Wait()
		equal(t, good.kinds(), "session.replay.entry", "session.replay.done")
		equal(t, ahead.kinds(), "resync ahead")
		equal(t, foreign.kinds(), "resync epoch")
		equal(t, reset.kinds(), "snapshot")
		if c := foreign.items[0].Resync.Current; c.Cursor() != sn.Cursor() || foreign.at() != sn.Cursor() {
			t.Errorf("got %+v, want %+v", c, sn)
		}
		if _, err := s.Reset(true); err != nil {
			t.Fatal(err)
		}
		w.say("s1", "two")
		synctest.Wait()
		for name, r := range map[string]*reader{"good": good, "snapshot": reset} {
			k := r.kinds()
			if !slices.Contains(k, "resync epoch") || r.at().Epoch == sn.Epoch || r.at().Seq != 2 {
				t.Errorf("%s: got %v at %+v", name, k, r.at())
			}
		}
		w.stop()
	})
}

// A reader can join in mid-stream: the snapshot has the text so far, deltas say
// where they belong, and those a slow reader missed come as one.
func TestJoiningMidStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, t.TempDir())
		w.say("s1", "go")
		delta := func(s string) { publish(w, event.AssistantMessageDelta, "s1", event.Delta{Content: s}) }
		delta("Hel")
		delta("lo, ")
		late, slow := new(reader), &reader{gate: make(chan struct{})}
		w.attach("s1", late, nil, func(o *session.AttachOptions) { o.Snapshot = true })
		w.attach("s1", slow, nil)
		synctest.Wait()
		delta("wor")
		delta("ld")
		synctest.Wait()
		text := late.items[0].Snapshot.Text
		for _, it := range late.items[1:] {
			if it.Offset != len(text) || it.Cursor.Seq != 2 {
				t.Errorf("a delta for %d with %d read, cursor %+v", it.Offset, len(text), it.Cursor)
			}
			text += it.Event.Payload.(event.Delta).Content
		}
		if text != "Hello, world" {
			t.Errorf(`got %q; want "Hello, world"`, text)
		}
		delta("!")
		close(slow.gate)
		synctest.Wait()
		if len(slow.items) > 2 || slow.items[len(slow.items)-1].Offset+len(slow.items[len(slow.items)-1].Event.Payload.(event.Delta).Content) != 13 {
			t.Errorf("got %+v; want at most 2 items, up to offset 13", slow.items)
		}
		publish(w, event.AssistantMessageDone, "s1", event.AssistantMessage{Content: "Hello, world!", ToolCalls: []event.ToolCall{}})
		synctest.Wait()
		if sn, _ := w.open("s1").Snapshot(); sn.Text != "" {
			t.Errorf("in flight after the end: %q", sn.Text)
		}
		w.stop()
	})
}

// Asks are delivered again to who comes later.
func TestAsksAreDeliveredOnAttach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, t.TempDir())
		s := w.open("s1")
		ask := session.Ask{ApprovalRequest: event.ApprovalRequest{ID: "a1", ToolName: "rm", Params: []byte(`{}`)}, SessionID: "s1"}
		if _, err := s.Note(event.Event{Kind: "approval.request", ID: "e", SessionID: event.KernelSession, Payload: ask.ApprovalRequest}, ask); err != nil {
			t.Fatal(err)
		}
		r := new(reader)
		w.attach("s1", r, nil)
		synctest.Wait()
		equal(t, r.kinds(), "approval.request")
		if p := r.items[0].Event.Payload.(event.ApprovalRequest); p.ID != "a1" || r.items[0].Event.SessionID != event.KernelSession {
			t.Errorf("got %+v, want the ask a1 on the kernel session", r.items[0].Event)
		}
		if _, err := s.Note(event.Event{Kind: "approval.response", ID: "e2", SessionID: event.KernelSession}, event.ApprovalResponse{ID: "a1", Response: event.Approve}); err != nil {
			t.Fatal(err)
		}
		after := new(reader)
		w.attach("s1", after, nil)
		synctest.Wait()
		equal(t, after.kinds())
		equal(t, r.kinds(), "approval.request", "approval.response")
		w.stop()
	})
}

// Y-186: under random publishing, attaching, detaching, slow reading and
// restarting, every reader gets every entry after its cursor once, in order.
func TestNoGapNoDuplicate(t *testing.T) {
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("12"); err != nil { // each restarts and floods a few times
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		w := newWorld(t, dir)
		defer func() { w.stop() }()
		w.open("s1")
		type client struct {
			r     *reader
			conn  *session.Connection
			start int64
		}
		var clients []*client
		total := int64(1)
		connect := func(c *client) {
			at := c.r.at()
			since := max(at.Seq, c.start)
			c.conn = w.attach("s1", c.r, &since, func(o *session.AttachOptions) { o.Epoch = at.Epoch })
		}
		leave := func(c *client) {
			if c.conn != nil {
				_ = w.Detach("s1", c.conn.ID())
				<-c.conn.Done()
				c.conn = nil
			}
		}
		rt.Repeat(map[string]func(*rapid.T){
			"publish": func(rt *rapid.T) {
				for range rapid.IntRange(1, 40).Draw(rt, "n") {
					w.say("s1", "x")
					total++
				}
			},
			"volatile": func(rt *rapid.T) {
				publish(w, event.AssistantMessageDelta, "s1", event.Delta{Content: "d"})
			},
			"flood": func(rt *rapid.T) {
				for range 1200 {
					w.say("s1", "x")
					total++
				}
			},
			"attach": func(rt *rapid.T) {
				if len(clients) > 5 {
					return
				}
				c := &client{r: &reader{}, start: rapid.Int64Range(0, total).Draw(rt, "since")}
				if rapid.Bool().Draw(rt, "slow") {
					c.r.gate = make(chan struct{}, 1<<16)
				}
				connect(c)
				clients = append(clients, c)
			},
			"detach": func(rt *rapid.T) {
				if len(clients) > 0 {
					leave(rapid.SampledFrom(clients).Draw(rt, "client"))
				}
			},
			"reattach": func(rt *rapid.T) {
				for _, c := range clients {
					if c.conn == nil {
						connect(c)
					}
				}
			},
			"let read": func(rt *rapid.T) {
				for _, c := range clients {
					for range rapid.IntRange(0, 50).Draw(rt, "n") {
						if c.r.gate != nil {
							c.r.gate <- struct{}{}
						}
					}
				}
			},
			"restart": func(rt *rapid.T) {
				w.stop()
				for _, c := range clients {
					if c.conn != nil {
						<-c.conn.Done()
						c.conn = nil
					}
				}
				w = newWorld(t, dir)
				for _, c := range clients {
					connect(c)
				}
			},
		})
		for _, c := range clients {
			if c.conn == nil {
				connect(c)
			}
			if c.r.gate != nil {
				close(c.r.gate)
			}
		}
		for i, c := range clients {
			for n := 0; c.r.at().Seq < total && n < 5000; n++ {
				time.Sleep(time.Millisecond)
			}
			leave(c)
			want := c.start + 1
			if want == 1 {
				want = 2 // entry 1 is an anchor
			}
			for _, id := range c.r.seen {
				if id != want {
					rt.Fatalf("client %d from %d: got entry %d, want %d", i, c.start, id, want)
				}
				want++
			}
			if want != total+1 || len(c.r.resyncs) > 0 {
				rt.Fatalf("client %d from %d ends at %d of %d, resyncs %v", i, c.start, want-1, total, c.r.resyncs)
			}
		}
	})
}

// Reading the tape returns the event that was published.
func TestEventsComeBackAsTheyWere(t *testing.T) {
	w := newWorld(t, t.TempDir())
	s := w.open("s1")
	p, err := w.bus.Plugin("web")
	if err != nil {
		t.Fatal(err)
	}
	var want []event.Event
	add := func(ev event.Event, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, ev)
	}
	add(bus.Publish(p.ForClient("c-1"), event.UserMessageReceived, "s1", event.UserMessage{Text: "hi", Attachments: []event.Attachment{{Ref: "r", MimeType: "m"}}}))
	add(bus.Publish(w.bus.Kernel(), event.ToolCallRequest, "s1", event.ToolRequest{ID: "c", Name: "n", Args: []byte(`{"a":1}`), SchemaVersion: "v1"}))
	add(bus.Publish(w.bus.Kernel(), event.ToolCallResult, "s1", event.ToolResult{ID: "c", OK: true, Envelope: []byte(`{}`), Request: event.Request{RequestID: "q"}}))
	add(bus.Publish(w.bus.Kernel(), event.AssistantMessageDone, "s1", event.AssistantMessage{Content: "x", ToolCalls: []event.ToolCall{}}))
	add(bus.Publish(w.bus.Kernel(), event.TurnWasCompleted, "s1", event.TurnCompleted{TurnID: "t", Steps: 2}))
	add(p.Emit("x.web.thing", "s1", json.RawMessage(`{"k":[1,2]}`)))
	i := 0
	for _, e := range entries(t, s)[1:] {
		got, ok := e.Event("s1")
		if !ok {
			t.Fatalf("entry %d has no event", e.ID)
		}
		if got.ClientID != want[i].ClientID || got.Entry != want[i].Entry {
			t.Errorf("got %+v, want %+v", got, want[i])
		}
		got.Time = want[i].Time
		a, _ := json.Marshal(got)
		b, _ := json.Marshal(want[i])
		if string(a) != string(b) {
			t.Errorf("got  %s\nwant %s", a, b)
		}
		i++
	}
	if i != len(want) {
		t.Errorf("got %d of %d, want i %v", i, len(want), len(want))
	}
}

// bench tapes: a session with n entries, compacted near the end.
func longTape(b *testing.B, n int) *world {
	b.Helper()
	w := newWorld(b, b.TempDir())
	w.mu.Lock()
	w.forgetful = true // a million remembered events would be the collector's work
	w.mu.Unlock()
	s := w.open("s1")
	for i := range n - 20 {
		if i%2 == 0 {
			w.say("s1", "a question of usual length, more or less")
		} else {
			publish(w, event.AssistantMessageDone, "s1", event.AssistantMessage{Content: "an answer", ToolCalls: []event.ToolCall{}})
		}
		if i == n-40 {
			if _, err := s.Handoff("compaction", session.Compaction{Kind: "compaction", Summary: "what was said before"}); err != nil {
				b.Fatal(err)
			}
		}
	}
	return w
}

// BenchmarkTurnStart measures the work of the tape at a turn's start: take the message
// in, and build the history.
func BenchmarkTurnStart(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := longTape(b, n)
			s := w.open("s1")
			b.ReportAllocs()
			for b.Loop() {
				w.say("s1", "hello")
				if m, err := s.Messages(); err != nil || len(m) == 0 {
					b.Fatalf("got %v, want len(m) not 0", err)
				}
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := longTape(b, n)
			w.stop()
			for b.Loop() {
				w2 := newWorld(b, w.dir)
				w2.open("s1")
				w2.stop()
			}
		})
	}
}
