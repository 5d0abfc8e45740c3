package wire_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/wire/wiretest"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/racing"
)

// many connects n clients, of as many devices as it takes.
func many(t testing.TB, w *wiretest.World, n int, msgpack bool) []*wiretest.Client {
	t.Helper()
	hosttest.NeedFiles(t, uint64(2*n+200)) //nolint:gosec // a small number
	out := make([]*wiretest.Client, n)
	devices := make([]*wiretest.Gadget, (n+199)/200)
	for i := range devices {
		devices[i] = w.Enroll(fmt.Sprint("d", i), auth.SessionsRead)
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, 8) // fewer than one address may have before it is known
	for i := range n {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			out[i] = w.Connect(devices[i/200], msgpack, true)
			out[i].Join("agent:s", nil)
		})
	}
	wg.Wait()
	return out
}

// seqOf finds the cursor's seq in an event of JSON, without decoding all of it.
func seqOf(data []byte) int64 {
	i := bytes.LastIndex(data, []byte(`"seq":`))
	if i < 0 || !bytes.Contains(data, []byte(`turn.cancelled`)) {
		return 0
	}
	end := i + 6
	for end < len(data) && data[end] >= '0' && data[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(string(data[i+6:end]), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// LD-01, LD-03, WS-12, WS-25: two thousand clients on one topic get everything, once and in
// order; those that do not read are closed, do not hold up the others, and get the
// rest when they come back.
func TestTwoThousandClients(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	w := wiretest.New(t)
	if _, err := w.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	const stalled, events = 10, 100
	n := 2000
	if racing.Enabled {
		n = 50
	}
	clients := many(t, w, n, false)
	first := write(t, w, "s", "first") + 1
	last := first + events - 1
	var wg sync.WaitGroup
	var complete, gaps atomic.Int64
	for _, c := range clients[stalled:] {
		wg.Go(func() {
			want := first
			for want <= last {
				_ = c.WS.SetReadDeadline(time.Now().Add(eventually.Limit))
				_, data, err := c.WS.ReadMessage()
				if err != nil {
					return
				}
				if seq := seqOf(data); seq >= first {
					if seq != want {
						gaps.Add(1)
						return
					}
					want++
				}
			}
			complete.Add(1)
		})
	}
	text := string(bytes.Repeat([]byte("x"), 100))
	for range events {
		write(t, w, "s", text)
		time.Sleep(2 * time.Millisecond)
	}
	wg.Wait()
	if complete.Load() != int64(n-stalled) || gaps.Load() != 0 {
		t.Errorf("%d of %d clients have got everything, %d have a gap", complete.Load(), n-stalled, gaps.Load())
	}
	// Those that do not read, flooded until they are closed.
	var upTo int64
	large := string(bytes.Repeat([]byte("y"), 100_000))
	for _, c := range clients[stalled+10:] {
		_ = c.WS.Close()
	}
	for range 200 {
		upTo = write(t, w, "s", large)
		time.Sleep(time.Millisecond)
	}
	for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(20 * time.Millisecond) {
		if _, slow, _ := w.Wire.Stats(); slow >= stalled {
			break
		}
		if time.Now().After(deadline) {
			_, slow, _ := w.Wire.Stats()
			t.Fatalf("%d were closed because they did not keep up", slow)
		}
	}
	for i, c := range clients[:stalled] {
		at := first - 1
		for {
			_ = c.WS.SetReadDeadline(time.Now().Add(eventually.Limit))
			_, data, err := c.WS.ReadMessage()
			if err != nil {
				break
			}
			if seq := seqOf(data); seq > at {
				if seq != at+1 {
					t.Fatalf("%d comes after %d", seq, at)
				}
				at = seq
			}
		}
		again := w.Connect(w.Enroll(fmt.Sprint("again", i), auth.SessionsRead), false, true)
		again.Join("agent:s", map[string]any{"since": at})
		if got := durable(t, again, float64(upTo)); int64(len(got)) != upTo-at {
			t.Errorf("%d events were missing, and %d came", upTo-at, len(got))
		}
		_ = again.WS.Close()
	}
}

// WS-29, HT-12: connections that come and go leave nothing behind.
func TestNothingIsLeft(t *testing.T) {
	w := wiretest.New(t)
	if _, err := w.Kernel.Sessions.Open("s", ""); err != nil {
		t.Fatal(err)
	}
	g := w.Enroll("phone")
	for n := range 300 {
		c := w.Dial(n%2 == 0, n%3 == 0)
		if n%5 != 0 {
			c.Auth(g)
			c.Join("agent:s", nil)
		}
		switch n % 4 {
		case 0: // a close frame and then silence
			_ = c.WS.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(1001, ""), time.Now().Add(time.Second))
		case 1:
			_ = c.WS.NetConn().Close()
			continue
		case 2: // half a message
			_, _ = c.WS.NetConn().Write([]byte{0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 0, 1, 2, 3, 4, 'x'})
		}
		_ = c.WS.Close()
	}
	for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(20 * time.Millisecond) {
		connections, _, _ := w.Wire.Stats()
		if connections == 0 && w.Wire.Subscribers("agent:s") == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d connections, %d joins", connections, w.Wire.Subscribers("agent:s"))
		}
	}
}

// BenchmarkFanout measures the cost of delivering one event to one client, including
// the client's reading of it: processor time and allocations for each delivery, and
// memory for each connection while nothing happens. An iteration is one event.
func BenchmarkFanout(b *testing.B) {
	for _, n := range []int{1, 100, 1000, 5000} {
		for _, msgpack := range []bool{false, true} {
			b.Run(fmt.Sprintf("clients=%d/msgpack=%v", n, msgpack), func(b *testing.B) { benchmarkFanout(b, n, msgpack) })
		}
	}
}

func benchmarkFanout(b *testing.B, n int, msgpack bool) {
	w := wiretest.New(b)
	if _, err := w.Kernel.Sessions.Open("s", ""); err != nil {
		b.Fatal(err)
	}
	empty := inUse()
	clients := many(b, w, n, msgpack)
	each := float64(inUse()-empty) / float64(n) // with what the client's side of it takes
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			buf := make([]byte, 16<<10)
			for {
				if _, err := c.WS.NetConn().Read(buf); err != nil {
					return
				}
			}
		})
	}
	e := struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}{"stream_chunk", "a few words of text that a model has said"}
	var m0, m1 runtime.MemStats
	_, _, before := w.Wire.Stats()
	cpu := hosttest.ProcessorTime(b)
	runtime.ReadMemStats(&m0)
	events := 0
	for b.Loop() {
		w.Wire.Publish("agent:s", volatile("stream_chunk", e))
		if events++; events%32 == 0 { // a queue holds 256, and is written every 25 ms
			time.Sleep(26 * time.Millisecond)
		}
	}
	time.Sleep(60 * time.Millisecond)
	runtime.ReadMemStats(&m1)
	cpu = hosttest.ProcessorTime(b) - cpu
	_, slow, after := w.Wire.Stats()
	if after-before != int64(events)*int64(n) || slow > 0 {
		b.Errorf("%d were delivered, %d were slow", after-before, slow)
	}
	deliveries := float64(after - before)
	b.ReportMetric(float64(cpu.Nanoseconds())/deliveries, "cpu-ns/delivery")
	b.ReportMetric(float64(m1.Mallocs-m0.Mallocs)/deliveries, "allocs/delivery")
	if n >= 1000 {
		b.ReportMetric(each, "B/connection")
	}
	b.ReportMetric(0, "ns/op")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = w.Wire.Close(ctx)
	wg.Wait()
}

// inUse is how much memory is in use, stacks included.
func inUse() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// A whole handshake (dial, upgrade, challenge, signature, auth_ok) beside the bare
// cost of what is signed and verified in it, of a token that is known.
func BenchmarkHandshake(b *testing.B) {
	w := wiretest.New(b)
	g := w.Enroll("phone", auth.SessionsRead)
	b.Run("whole", func(b *testing.B) {
		for b.Loop() {
			c := w.Connect(g, false, true)
			_ = c.WS.Close()
		}
	})
	b.Run("crypto", func(b *testing.B) {
		for b.Loop() {
			c := w.Dev.NewChallenge("ws://yaya.example/ws")
			sig, _, err := auth.SignChallenge(g.Key, c.Bytes(), "ws://yaya.example/ws", "")
			if err != nil {
				b.Fatal(err)
			}
			if _, err := w.Dev.Prove(c, g.Token, sig); err != nil {
				b.Fatal(err)
			}
		}
	})
}
