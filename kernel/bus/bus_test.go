package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newBus(t *testing.T, cfg bus.Config) *bus.Bus {
	t.Helper()
	b := bus.New(cfg)
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Errorf("Close of the bus = %v, want no error", err)
		}
	})
	return b
}

func plugin(t *testing.T, b *bus.Bus, name string) *bus.Emitter {
	t.Helper()
	e, err := b.Plugin(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// collect subscribes to kinds and returns a function that yields what arrived.
func collect(t *testing.T, b *bus.Bus, kinds ...string) func() []event.Event {
	t.Helper()
	var mu sync.Mutex
	var got []event.Event
	_, err := b.Subscribe(bus.SubscribeOptions{Name: "collector", Limit: 1 << 20}, kinds, func(_ context.Context, ev event.Event) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, ev)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() []event.Event {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(got)
	}
}

// Y-14…Y-20: the envelope's members, and who assigns which.
func TestEnvelope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, bus.Config{})
		got := collect(t, b, "user.message.received", "x.stats.token")
		p := plugin(t, b, "web")
		if _, err := bus.Publish(p, event.UserMessageReceived, "s1", event.UserMessage{Text: "hi"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		data, err := json.Marshal(got()[0])
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(data, &members); err != nil {
			t.Fatal(err)
		}
		var names []string
		for k := range members {
			names = append(names, k)
		}
		slices.Sort(names)
		if want := []string{"id", "kind", "payload", "session_id", "source", "ts"}; !slices.Equal(names, want) { // Y-14
			t.Errorf("members: got %v, want %v", names, want)
		}
		var env struct {
			ID, Kind, Source string
			SessionID        string `json:"session_id"`
			TS               float64
		}
		if err := json.Unmarshal(data, &env); err != nil {
			t.Fatal(err)
		}
		if _, err := uuid.Parse(env.ID); err != nil { // Y-15
			t.Errorf("id %q is not a UUID", env.ID)
		}
		if now := float64(time.Now().UnixNano()) / 1e9; env.TS < now-1 || env.TS > now { // Y-18
			t.Errorf("ts: got %f, want about %f", env.TS, now)
		}
		if env.Source != "web" || env.SessionID != "s1" || env.Kind != "user.message.received" { // Y-16, Y-17, Y-19
			t.Errorf("got %+v, want user.message.received of web in s1", env)
		}
		var back event.Event
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		if m, ok := back.Payload.(event.UserMessage); !ok || m.Text != "hi" {
			t.Errorf("payload came back as %#v", back.Payload)
		}
	})
}

// Y-15, Y-16, Y-19, Y-33, Y-37, Y-44, Y-51…Y-60, Y-66: the bus refuses invalid events.
func TestRefusals(t *testing.T) {
	t.Run("messages outside conversations", func(t *testing.T) {
		b := newBus(t, bus.Config{})
		for _, session := range []string{"kernel", "_bridge:mcp-bridge"} {
			if _, err := bus.Publish(plugin(t, b, "web"), event.UserMessageReceived, session, event.UserMessage{Text: "x"}); !errors.Is(err, bus.ErrRefused) {
				t.Errorf("%s: got %v, want %v", session, err, bus.ErrRefused)
			}
		}
	})
	b := newBus(t, bus.Config{})
	seen := collect(t, b, "plugin.error", "tool.error", "approval.request", "user.message.received", "config.updated")
	p := plugin(t, b, "evil")
	for _, tc := range []struct{ name, kind, session, payload string }{
		{"unknown kind (Y-16)", "user.message.invented", "s", `{}`},
		{"kind without a dot (Y-16)", "hello", "s", `{}`},
		{"plugin.error from a plugin (Y-44)", "plugin.error", "s", `{"name":"web","error":"x"}`},
		{"kernel.error from a plugin (Y-44)", "kernel.error", "kernel", `{"source":"kernel","message":"x"}`},
		{"tool.error from a plugin (Y-33)", "tool.error", "s", `{"id":"1","kind":"rejected","brief":"x"}`},
		{"approval.request from a plugin", "approval.request", "kernel", `{}`},
		{"approval.response off the kernel session (Y-37)", "approval.response", "s", `{"id":"1","response":"approve"}`},
		{"config.updated from a plugin", "config.updated", "kernel", `{}`},
		{"session.started from a plugin", "session.started", "s", `{}`},
		{"session id with a slash (Y-17)", "user.message.received", "a/b", `{"text":"x"}`},
		{"empty session id (Y-17)", "user.message.received", "", `{"text":"x"}`},
		{"malformed bridge session (Y-65)", "x.a.b", "_bridge:../x", `{}`},
		{"payload of the wrong shape (Y-20)", "user.message.received", "s", `{"text":1}`},
		{"payload that is not an object (Y-20)", "user.message.received", "s", `[]`},
		{"extension without a plugin (Y-63)", "x.alone", "s", `{}`},
		{"payload above the limit", "x.a.b", "s", `"` + strings.Repeat("x", bus.MaxPayload) + `"`},
	} {
		if _, err := p.Emit(tc.kind, tc.session, json.RawMessage(tc.payload)); !errors.Is(err, bus.ErrRefused) {
			t.Errorf("%s: got %v, want ErrRefused", tc.name, err)
		}
	}
	for _, name := range []string{"", "kernel"} { // Y-19
		if _, err := b.Plugin(name); !errors.Is(err, bus.ErrRefused) {
			t.Errorf("a plugin may call itself %q", name)
		}
	}
	for _, k := range []*event.Kind{event.SessionCompactionStarted.Kind(), event.SessionReplayDone.Kind(), event.SessionContextEvicted.Kind()} {
		if _, err := b.Kernel().Emit(k.Name, "s", json.RawMessage(`{}`)); !errors.Is(err, bus.ErrRefused) {
			t.Errorf("%s was accepted off the kernel session", k.Name)
		}
	}
	if got := seen(); len(got) != 0 {
		t.Errorf("refused events were delivered: %v", got)
	}
}

// Y-63, Y-65: private events use the same bus, on any stable session.
func TestExtensionsAreRoutedNotInterpreted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, bus.Config{})
		got := collect(t, b, "x.stats.token.counted")
		p := plugin(t, b, "stats")
		if _, err := p.Emit("x.stats.token.counted", "_bridge:stats", json.RawMessage(`{"n":123456789012345678901}`)); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		evs := got()
		if len(evs) != 1 {
			t.Fatalf("got %d events, want 1", len(evs))
		}
		if raw, ok := evs[0].Payload.(json.RawMessage); !ok || string(raw) != `{"n":123456789012345678901}` {
			t.Errorf("payload: got %T %s", evs[0].Payload, evs[0].Payload)
		}
	})
}

// Every subscriber sees one session's events in one order, across kinds, while
// other sessions and subscribers go their own way.
func TestOrderWithinASession(t *testing.T) {
	b := newBus(t, bus.Config{})
	const sessions, publishers, each = 8, 4, 200
	kinds := []string{"x.t.a", "x.t.b"}
	var mu sync.Mutex
	orders := map[string][2][]string{}
	var left sync.WaitGroup
	left.Add(2 * sessions * publishers * each)
	for i := range 2 {
		if _, err := b.Subscribe(bus.SubscribeOptions{Name: fmt.Sprint("s", i), Limit: 1 << 20}, kinds, func(_ context.Context, ev event.Event) error {
			defer left.Done()
			mu.Lock()
			defer mu.Unlock()
			o := orders[ev.SessionID]
			o[i] = append(o[i], ev.ID)
			orders[ev.SessionID] = o
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	e := plugin(t, b, "t")
	var wg sync.WaitGroup
	for s := range sessions {
		for range publishers {
			wg.Go(func() {
				for n := range each {
					if _, err := e.Emit(kinds[n%2], fmt.Sprint("s", s), nil); err != nil {
						t.Errorf("Emit of event %d = %v, want no error", n, err)
					}
				}
			})
		}
	}
	wg.Wait()
	left.Wait()
	mu.Lock()
	defer mu.Unlock()
	for s, o := range orders {
		if len(o[0]) != publishers*each || !slices.Equal(o[0], o[1]) {
			t.Errorf("session %s: the two subscribers saw different orders", s)
		}
	}
}

// R36: a stuck subscriber delays neither publishers nor others, and ends with
// ErrLagging; lossy events are dropped before and counted.
func TestSlowSubscriberPaysAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, bus.Config{})
		got := collect(t, b, "user.interrupt", "assistant.message.delta")
		release := make(chan struct{})
		slow, err := b.Subscribe(bus.SubscribeOptions{Name: "slow", Limit: 10}, []string{"user.interrupt", "assistant.message.delta"},
			func(context.Context, event.Event) error { <-release; return nil })
		if err != nil {
			t.Fatal(err)
		}
		k := b.Kernel()
		for range 8 {
			if _, err := bus.Publish(k, event.AssistantMessageDelta, "s", event.Delta{Content: "x"}); err != nil {
				t.Fatal(err)
			}
		}
		if lost := slow.Lost(); lost != 3 {
			t.Errorf("lost %d lossy events, want 3 of 8 with a limit of 10", lost)
		}
		for range 5 {
			if _, err := bus.Publish(k, event.UserInterrupt, "s", event.Empty{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := slow.Err(); err != nil {
			t.Errorf("ended at the limit already: %v", err)
		}
		if _, err := bus.Publish(k, event.UserInterrupt, "s", event.Empty{}); err != nil {
			t.Fatal(err)
		}
		if err := slow.Err(); !errors.Is(err, bus.ErrLagging) {
			t.Errorf("got %v, want ErrLagging", err)
		}
		synctest.Wait()
		if n := len(got()); n != 14 {
			t.Errorf("the other subscriber got %d events, want 14", n)
		}
		close(release)
		<-slow.Done()
	})
}

// Y-164, Y-166, Y-170: errors, panics and deadlines are reported; the bus lives.
func TestHandlerFailuresAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var errs []error
		b := newBus(t, bus.Config{OnOutcome: func(o bus.Outcome) {
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, o.Err)
		}})
		boom := errors.New("boom")
		_, err := bus.On(b, bus.SubscribeOptions{Name: "p"}, event.UserMessageReceived, func(ctx context.Context, _ event.Event, m event.UserMessage) error {
			switch m.Text {
			case "error":
				return boom
			case "panic":
				panic("aaah")
			case "hang":
				<-ctx.Done()
				time.Sleep(time.Minute) // does not obey
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"fine", "error", "panic", "hang"} {
			if _, err := bus.Publish(b.Kernel(), event.UserMessageReceived, "s", event.UserMessage{Text: text}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(29 * time.Second)
		synctest.Wait()
		mu.Lock()
		if len(errs) != 3 || errs[0] != nil || !errors.Is(errs[1], boom) || !strings.Contains(fmt.Sprint(errs[2]), "aaah") {
			t.Errorf("after 29 s: got %v", errs)
		}
		mu.Unlock()
		time.Sleep(2 * time.Second)
		mu.Lock()
		if len(errs) != 4 || !errors.Is(errs[3], bus.ErrHandlerTimeout) {
			t.Errorf("after 31 s: got %v, want a reported timeout", errs)
		}
		mu.Unlock()
		time.Sleep(2 * time.Minute)
	})
}

// Y-162, Y-163: concurrent requests find their own answers by request_id.
func TestRequestsAreCorrelated(t *testing.T) {
	b := newBus(t, bus.Config{})
	mem := plugin(t, b, "memory")
	if _, err := bus.On(b, bus.SubscribeOptions{Name: "memory", Limit: 1 << 16}, event.MemoryQueried, func(_ context.Context, ev event.Event, q event.MemoryQuery) error {
		if q.Query == "unanswered" {
			return nil
		}
		// An answer of another kind, or to nobody, must not resolve anything.
		_, err1 := bus.Publish(mem, event.MemoryAnswered, ev.SessionID, event.MemoryResult{})
		_, err3 := bus.Publish(mem, event.LLMCallError, ev.SessionID, event.LLMError{Error: "x", Request: event.Request{RequestID: ev.ID}})
		_, err2 := bus.Publish(mem, event.MemoryAnswered, ev.SessionID, event.MemoryResult{
			Hits: []event.MemoryEntry{{Text: q.Query}}, Request: event.Request{RequestID: ev.ID},
		})
		return errors.Join(err1, err2, err3)
	}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Go(func() {
			want := fmt.Sprint("q", i)
			ev, err := bus.Request(t.Context(), b.Kernel(), event.MemoryQueried, "s", event.MemoryQuery{Query: want}, event.MemoryAnswered.Kind())
			if err != nil {
				t.Errorf("Request for %s = %v, want an answer", want, err)
				return
			}
			if got, ok := ev.Payload.(event.MemoryResult); !ok || got.Hits[0].Text != want {
				t.Errorf("got %+v, want the answer to %s", ev.Payload, want)
			}
		})
	}
	wg.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := bus.Request(ctx, b.Kernel(), event.MemoryQueried, "s", event.MemoryQuery{Query: "unanswered"}, event.MemoryAnswered.Kind()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
}

func TestCloseDeliversWhatWasAccepted(t *testing.T) {
	b := bus.New(bus.Config{})
	var n atomic.Int32
	if _, err := b.Subscribe(bus.SubscribeOptions{Name: "s"}, []string{"user.interrupt"}, func(context.Context, event.Event) error {
		time.Sleep(time.Millisecond)
		n.Add(1)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if _, err := bus.Publish(b.Kernel(), event.UserInterrupt, fmt.Sprint("s", i%5), event.Empty{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n.Load() != 50 {
		t.Errorf("handled %d of 50 accepted events", n.Load())
	}
	if _, err := bus.Publish(b.Kernel(), event.UserInterrupt, "s", event.Empty{}); !errors.Is(err, bus.ErrClosed) {
		t.Errorf("publish after close: got %v", err)
	}
}

func TestClosedSubscriptionGetsNothing(t *testing.T) {
	b := newBus(t, bus.Config{})
	var n atomic.Int32
	s, err := b.Subscribe(bus.SubscribeOptions{Name: "s"}, []string{"user.interrupt"}, func(context.Context, event.Event) error { n.Add(1); return nil })
	if err != nil {
		t.Fatal(err)
	}
	if !b.Wanted("user.interrupt") {
		t.Error("a subscribed kind is not wanted")
	}
	s.Close()
	<-s.Done()
	if b.Wanted("user.interrupt") {
		t.Error("a kind without subscribers is wanted")
	}
	if _, err := bus.Publish(b.Kernel(), event.UserInterrupt, "s", event.Empty{}); err != nil {
		t.Fatal(err)
	}
	if n.Load() != 0 {
		t.Error("a closed subscription got an event")
	}
}
