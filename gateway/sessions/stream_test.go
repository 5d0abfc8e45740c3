package sessions_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/racing"
	"github.com/yaya-ai/yaya/internal/sse"
	"github.com/yaya-ai/yaya/kernel/session"
)

// durable are the events of a list that are on the tape.
func durable(events []seen) (out []string) {
	for _, e := range events {
		if e.Entry > 0 {
			out = append(out, fmt.Sprintf("%d %s", e.Seq, e.Type))
		}
	}
	return out
}

// S-13, S-31: a client that reconnects after every event sees each durable event once and
// in order, and in the end the same as one that has stayed.
func TestReconnectAtEveryEvent(t *testing.T) {
	w := newWorld(t, oneWrite)
	id := w.create()
	stays := w.follow(id, "")
	done := make(chan []seen, 1)
	go func() {
		var all []seen
		last := ""
		for {
			f := w.follow(id, last)
			s, err := f.try()
			for err == nil && s.Entry == 0 { // volatile
				s, err = f.try()
			}
			f.close()
			if err != nil {
				t.Errorf("a stream resumed after %q: %v, want an event", last, err)
				done <- all
				return
			}
			all, last = append(all, s), s.id
			if s.Type == "session_completed" {
				done <- all
				return
			}
		}
	}()
	for n := range 4 {
		w.say(id, fmt.Sprint("read ", n))
		w.idle(id)
		w.say(id, fmt.Sprint("slow ", n))
		w.idle(id)
	}
	w.must("POST", "/v1/sessions/"+id+"/close", "", 200)
	want := durable(stays.until("session_completed"))
	got := durable(<-done)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("who has come back sees\n%v\nwho has stayed\n%v", got, want)
	}
	if again := durable(w.follow(id, "").until("session_completed")); fmt.Sprint(again) != fmt.Sprint(want) {
		t.Errorf("read again it is\n%v", again)
	}
	if kept := durable(w.lines(id)); fmt.Sprint(kept) != fmt.Sprint(want) {
		t.Errorf("events.ndjson has\n%v", kept)
	}
}

// HT-11, WS-24: a cursor that cannot be honoured is said so, with the state; garbage is
// refused; another session's is of no use.
func TestCursors(t *testing.T) {
	w := newWorld(t, "")
	id, other := w.create(), w.create()
	w.say(id, "one")
	w.say(other, "the other's secret")
	w.idle(id)
	w.idle(other)
	epoch, _, _ := strings.Cut(fmt.Sprint(w.must("GET", "/v1/sessions/"+id+"/snapshot", "", 200)["cursor"]), ":")
	foreign := fmt.Sprint(w.must("GET", "/v1/sessions/"+other, "", 200)["cursor"])
	for cursor, reason := range map[string]string{foreign: "epoch", epoch + ":999999": "ahead", "00000000-0000:3": "epoch"} {
		f := w.follow(id, cursor)
		ev := f.next()
		now, _ := ev.Data["current"].(map[string]any)
		if ev.Type != "resync" || ev.Data["reason"] != reason || now["session_id"] != id || !strings.HasPrefix(fmt.Sprint(now["cursor"]), epoch) {
			t.Errorf(`%s: got %+v, want Type "resync", reason %v, session_id %v, cursor beginning with %v`, cursor, ev, reason, id, epoch)
		}
		w.say(id, "more")
		w.idle(id)
		if got := fmt.Sprint(f.until("turn_completed")); strings.Contains(got, "secret") || !strings.Contains(got, "more") {
			t.Errorf(`%s: got %s, want nothing of "secret", "more" in it`, cursor, got)
		}
		f.close()
	}
	// The cursor of what the session is now is good at once, whatever has been written
	// down by then.
	for n := range 20 {
		w.say(id, fmt.Sprint("again ", n))
		w.idle(id)
		f := w.follow(id, fmt.Sprint(w.must("GET", "/v1/sessions/"+id, "", 200)["cursor"]))
		w.say(id, fmt.Sprint("and again ", n))
		if ev := f.next(); ev.Type != "message_added" || !strings.Contains(fmt.Sprint(ev.Data), fmt.Sprint("and again ", n)) {
			t.Errorf(`got %+v, want Type "message_added", Data with %v`, ev, fmt.Sprint("and again ", n))
		}
		f.close()
		w.idle(id)
	}
	for _, bad := range []string{"x", "1", epoch, epoch + ":-1", epoch + ":1:1", strings.Repeat("x", 16<<10), epoch + ":99999999999999999999"} {
		if status, out := w.do("GET", "/v1/sessions/"+id+"/events", "", "Last-Event-ID", bad); status != 400 && status != 431 {
			t.Errorf("%.40s: got %d %v, want 400 or 431", bad, status, out)
		}
	}
	if status, out := w.do("GET", "/v1/sessions/"+id+"/events?after=x", ""); status != 400 {
		t.Errorf("got %v, %v, want status 400", status, out)
	}
}

// A session that comes back after a restart goes on where its clients were: the ask
// that waited is withdrawn, the turn is over, and it can be run again.
func TestRestartWithAnAsk(t *testing.T) {
	w := newWorld(t, oneWrite)
	id := w.create()
	f := w.follow(id, "")
	turn := fmt.Sprint(w.say(id, "write it")["turn_id"])
	events := f.until("approval_requested")
	last := events[len(events)-1].id
	call := events[len(events)-1].Data["tool_call_id"]
	w.stop()
	w.start(oneWrite)
	f = w.follow(id, last)
	events = f.until("session_canceled") // it was stopped, not killed
	if got := types(events); !strings.Contains(got, "approval_withdrawn") || events[0].Data["tool_call_id"] != call {
		t.Errorf(`got %v, %v, want "approval_withdrawn" in it, events[0].Data.tool_call_id %v`, got, events[0].Data, call)
	}
	if st := w.idle(id); st["status"] != "canceled" || len(st["pending_approvals"].([]any)) != 0 {
		t.Errorf(`got %v, want status "canceled", len(pending_approvals) 0`, st)
	}
	w.refused("POST", "/v1/sessions/"+id+"/approve", fmt.Sprintf(`{"tool_call_id":%q,"action":"approve"}`, call), 404, "not_pending")
	w.must("POST", "/v1/sessions/"+id+"/turns/"+turn+"/retry", "", 202)
	events = f.until("approval_requested")
	w.must("POST", "/v1/sessions/"+id+"/approve", fmt.Sprintf(`{"tool_call_id":%q,"action":"approve"}`, events[len(events)-1].Data["tool_call_id"]), 200)
	f.until("turn_completed")
	if got := durable(w.lines(id)); len(got) == 0 || fmt.Sprint(got) != fmt.Sprint(durable(w.follow(id, "").until("turn_completed"))) {
		t.Errorf("got %v in the file, want the events that a new reader gets", got)
	}
}

// Five hundred readers get everything, while one that does not read is disconnected,
// comes back, and misses nothing; when they have gone, nothing is left (HT-12).
func TestManyReaders(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	w := newWorld(t, "")
	id := w.create()
	before := runtime.NumGoroutine()
	n := 500
	if racing.Enabled {
		n = 40
	}
	var ready, readers sync.WaitGroup
	var whole atomic.Int64
	ready.Add(n)
	for range n {
		readers.Go(func() {
			f := w.follow(id, "")
			defer f.close()
			if s, err := f.try(); err != nil || s.Type != "session_created" {
				t.Errorf(`got %v, %v, want Type "session_created"`, s, err)
			}
			ready.Done()
			seq := int64(0)
			for {
				s, err := f.try()
				if err != nil {
					t.Errorf("a reader's stream after %d: %v, want an event", seq, err)
					return
				}
				if s.Entry > 0 && s.Seq <= seq {
					t.Errorf("%d after %d", s.Seq, seq)
				}
				seq = max(seq, s.Seq)
				if s.Type == "session_completed" {
					whole.Add(1)
					return
				}
			}
		})
	}
	ready.Wait()
	slow := stalled(t, w, id)
	for i := range 25 {
		w.say(id, fmt.Sprint(i, strings.Repeat(" word", 2000)))
		w.idle(id)
	}
	w.must("POST", "/v1/sessions/"+id+"/close", "", 200)
	readers.Wait()
	if whole.Load() != int64(n) {
		t.Errorf("%d of %d have seen the end", whole.Load(), n)
	}
	var got []string
	if err := slow.conn.SetReadDeadline(time.Now().Add(eventually.Limit)); err != nil {
		t.Fatal(err)
	}
	whole1 := false
	for slow.err == nil && !whole1 { // what was sent to it, up to the end or until it was disconnected
		var ev sse.Event
		if ev, slow.err = slow.r.Next(); slow.err == nil && ev.ID != "" && (len(got) == 0 || got[len(got)-1] != ev.ID) { // a volatile event keeps the id before it
			got = append(got, ev.ID)
			whole1 = ev.Name == "session_completed"
		}
	}
	if len(got) == 0 {
		t.Fatal("the slow one has got nothing")
	}
	_ = slow.conn.Close()
	if !whole1 {
		for _, e := range w.follow(id, got[len(got)-1]).until("session_completed") {
			if e.id != "" {
				got = append(got, e.id)
			}
		}
	}
	var want []string
	for _, e := range w.follow(id, "").until("session_completed") {
		want = append(want, e.id)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the slow one has %d of %d events, whole %v, %v:\n%v\n%v", len(got), len(want), whole1, slow.err, got, want)
	}
	w.http.CloseClientConnections()
	w.http.Client().CloseIdleConnections()
	for deadline := time.Now().Add(eventually.Limit); runtime.NumGoroutine() > before+20; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

type stalledReader struct {
	conn net.Conn
	r    *sse.Reader
	err  error
}

// stalled is a client with small buffers that does not read.
func stalled(t *testing.T, w *world, id string) *stalledReader {
	t.Helper()
	conn, err := net.Dial("tcp", w.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).SetReadBuffer(128 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(conn, "GET /v1/sessions/%s/events HTTP/1.0\r\nHost: x\r\n\r\n", id); err != nil {
		t.Fatal(err)
	}
	head := make([]byte, 1)
	for end := ""; !strings.HasSuffix(end, "\r\n\r\n"); end += string(head) {
		if _, err := io.ReadFull(conn, head); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &stalledReader{conn: conn, r: sse.NewReader(conn, 8<<20)}
}

// HT-12: streams that are opened and abandoned leave nothing behind.
func TestOpenAndAbandon(t *testing.T) {
	w := newWorld(t, "")
	id := w.create()
	before := runtime.NumGoroutine()
	for n := range 300 {
		f := w.follow(id, "")
		if n%3 == 0 {
			f.next()
		}
		f.close()
	}
	w.http.Client().CloseIdleConnections()
	for deadline := time.Now().Add(eventually.Limit); runtime.NumGoroutine() > before+10; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

// HT-10: foreign text arrives as data, whatever breaks lines in it.
func TestEventInjection(t *testing.T) {
	w := newWorld(t, "")
	id := w.create()
	f := w.follow(id, "")
	evil := "a\n\nevent: turn_completed\ndata: {}\r\rid: x\u2028\u0000 b"
	w.say(id, evil)
	events := f.until("turn_completed")
	if events[0].Type != "message_added" && events[1].Type != "message_added" {
		t.Errorf("got %s, want a message_added first or second", types(events))
	}
	for _, e := range events {
		if m, ok := e.Data["message"].(map[string]any); ok && m["role"] == "user" && m["parts"].([]any)[0].(map[string]any)["text"] != evil {
			t.Errorf("got %q, want the text %q", m, evil)
		}
		if e.SessionID != id {
			t.Errorf("got %+v, want SessionID %v", e, id)
		}
	}
}

// S-22: events.ndjson follows from the tape: when it is lost, or cut in a line, it is
// made again, and nothing is counted twice.
func TestEventsFileIsLost(t *testing.T) {
	w := newWorld(t, oneWrite)
	id := w.create()
	w.say(id, "read it")
	w.idle(id)
	want := durable(w.follow(id, "").until("turn_completed"))
	usage := fmt.Sprint(w.must("GET", "/v1/sessions/"+id, "", 200)["usage"])
	path := filepath.Join(w.dir, "sessions", id, "events.ndjson")
	for name, harm := range map[string]func(data []byte) []byte{
		"lost": func([]byte) []byte { return nil },
		"cut":  func(data []byte) []byte { return data[:len(data)/2] },
		"junk": func(data []byte) []byte { return append(data[:0:0], "{}\nnot JSON\n"...) },
	} {
		w.stop()
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, harm(data), 0o600); err != nil {
			t.Fatal(err)
		}
		w.start(oneWrite)
		if got := durable(w.follow(id, "").until("turn_completed")); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want got %v", name, got, fmt.Sprint(want))
		}
		if name == "junk" {
			continue // what it held is kept
		}
		if got := durable(w.lines(id)); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: the file has\n%v, want\n%v", name, got, want)
		}
		if got := fmt.Sprint(w.must("GET", "/v1/sessions/"+id, "", 200)["usage"]); got != usage {
			t.Errorf("%s: %s, and it was %s", name, got, usage)
		}
	}
}

// A comment comes when nothing else does.
func TestKeepAlive(t *testing.T) {
	w := newWorld(t, "", func(c *sessions.Config) { c.KeepAlive = 50 * time.Millisecond })
	resp, err := w.http.Client().Get(w.http.URL + "/v1/sessions/" + w.create() + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	timer := time.AfterFunc(20*time.Second, w.http.CloseClientConnections)
	defer timer.Stop()
	got := ""
	for buf := make([]byte, 4096); strings.Count(got, ": keep-alive\n\n") < 3; {
		n, err := resp.Body.Read(buf)
		if err != nil {
			t.Fatalf("%v after %q", err, got)
		}
		got += string(buf[:n])
	}
}

// LD-09: many clients that catch up with a long session read it at their own pace, and
// nothing of it is held in memory.
func TestManyCatchUp(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	w := newWorld(t, "")
	id := w.create()
	k, err := w.k.Sessions.Find(id, "")
	if err != nil {
		t.Fatal(err)
	}
	n, clients := 8_000, 16
	if racing.Enabled {
		n, clients = 2_000, 8
	}
	for i := range n {
		if _, err := k.SetQueue([]session.Prompt{{ID: fmt.Sprint("m", i), Text: strings.Repeat("x", 500)}}, ""); err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	var before, during runtime.MemStats
	runtime.ReadMemStats(&before)
	var reading sync.WaitGroup
	var most atomic.Uint64
	for range clients {
		reading.Go(func() {
			f := w.follow(id, "")
			defer f.close()
			last := int64(0)
			for got := 0; got < n; {
				s, err := f.try()
				if err != nil {
					t.Errorf("a reader's stream after %d: %v, want an event", last, err)
					return
				}
				if s.Type != "queue_changed" {
					continue
				}
				if s.Seq <= last {
					t.Errorf("%d after %d", s.Seq, last)
				}
				last = s.Seq
				if got++; got == n/2 {
					most.Add(1)
				}
			}
		})
	}
	for most.Load() < uint64(clients/2) {
		time.Sleep(10 * time.Millisecond)
	}
	runtime.GC()
	runtime.ReadMemStats(&during)
	reading.Wait()
	// The session is 5 MB, each client's events are 6.
	if grown := int64(during.HeapInuse) - int64(before.HeapInuse); grown > 32<<20 {
		t.Errorf("%d MiB more are in use while %d clients catch up", grown>>20, clients)
	}
}

// Closing the service ends every stream.
func TestCloseEndsStreams(t *testing.T) {
	w := newWorld(t, oneWrite)
	id := w.create()
	f := w.follow(id, "")
	w.say(id, "wait for it")
	f.until("tool_call_started")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		w.s.Close()
	}()
	select {
	case <-closed:
	case <-ctx.Done():
		t.Fatal("it does not close")
	}
	for {
		if _, err := f.try(); err != nil {
			break
		}
	}
	if status, out := w.do("GET", "/v1/sessions/"+id+"/events", ""); status != http.StatusServiceUnavailable {
		t.Errorf("got %v, %v, want status %d", status, out, http.StatusServiceUnavailable)
	}
}

// What /v1 costs beside the kernel: processor time of a turn with a reader, and of
// delivering an event to readers.
func BenchmarkReaders(b *testing.B) {
	for _, n := range []int{1, 100, 500} {
		b.Run(fmt.Sprint("readers=", n), func(b *testing.B) {
			w := newWorld(b, "")
			id := w.create()
			var readers sync.WaitGroup
			var got atomic.Int64
			ctx, cancel := context.WithCancel(b.Context())
			for range n {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.http.URL+"/v1/sessions/"+id+"/events", nil)
				if err != nil {
					b.Fatal(err)
				}
				resp, err := w.http.Client().Do(req)
				if err != nil {
					b.Fatal(err)
				}
				readers.Go(func() {
					defer func() { _ = resp.Body.Close() }()
					r := sse.NewReader(resp.Body, 1<<20)
					for {
						ev, err := r.Next()
						if err != nil {
							return
						}
						if ev.Name != "" {
							got.Add(1)
						}
					}
				})
			}
			w.say(id, "warm")
			w.idle(id)
			first, cpu := got.Load(), hosttest.ProcessorTime(b)
			turns := 0
			for b.Loop() {
				w.say(id, "hello there")
				w.idle(id)
				turns++
			}
			used := hosttest.ProcessorTime(b) - cpu
			time.Sleep(100 * time.Millisecond)
			b.ReportMetric(float64(used.Microseconds())/float64(turns), "cpu-µs/turn")
			b.ReportMetric(float64(used.Microseconds())/float64(got.Load()-first), "cpu-µs/event")
			b.ReportMetric(0, "ns/op")
			cancel()
			readers.Wait()
		})
	}
}

// The list of ten thousand sessions.
func BenchmarkList(b *testing.B) {
	w := newWorld(b, "")
	runtime.GC()
	var m0 runtime.MemStats
	runtime.ReadMemStats(&m0)
	before := m0.HeapInuse + m0.StackInuse
	for range 10_000 {
		w.create()
	}
	rec := func() {
		r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/v1/sessions?limit=100", nil)
		rr := httptest.NewRecorder()
		w.http.Config.Handler.ServeHTTP(rr, r)
		if rr.Code != 200 || rr.Body.Len() < 10_000 {
			b.Fatalf("got %v, %v, want Code 200, Len at least 10_000", rr.Code, rr.Body.Len())
		}
	}
	rec()
	time.Sleep(100 * time.Millisecond)
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.ResetTimer()
	for b.Loop() {
		rec()
	}
	b.ReportMetric(float64(m.HeapInuse+m.StackInuse-before)/10_000, "B/session")
}

// How long the first words of an answer take, from the request that asks for it.
func BenchmarkFirstDelta(b *testing.B) {
	w := newWorld(b, "")
	id := w.create()
	f := w.follow(id, "")
	f.next()
	var total time.Duration
	n := 0
	for b.Loop() {
		time.Sleep(60 * time.Millisecond) // as people do
		start := time.Now()
		w.say(id, "hello there")
		f.until("model_output_delta")
		total += time.Since(start)
		n++
		f.until("turn_completed")
	}
	b.ReportMetric(float64(total.Microseconds())/float64(n), "µs/first-delta")
	b.ReportMetric(0, "ns/op")
}
