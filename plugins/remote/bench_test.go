package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// BenchmarkPipe sends a line to another process and back, without a plugin: what the system
// alone takes for a round trip.
func BenchmarkPipe(b *testing.B) {
	cmd := exec.CommandContext(b.Context(), "cat")
	to, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	from, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	in, line := bufio.NewReader(from), []byte(strings.Repeat("x", 200)+"\n")
	for b.Loop() {
		if _, err := to.Write(line); err != nil {
			b.Fatal(err)
		}
		if _, err := in.ReadSlice('\n'); err != nil {
			b.Fatal(err)
		}
	}
	if err := errors.Join(to.Close(), cmd.Wait()); err != nil {
		b.Error(err)
	}
}

// BenchmarkEvent is the round trip of one event. Goal: 60 µs.
func BenchmarkEvent(b *testing.B) {
	w := newWorld(b)
	p := w.load("tool", "tool")
	ev := event.Event{ID: "e", Kind: "user.interrupt", SessionID: "s1", Time: time.Now(), Source: "kernel", Payload: event.Empty{}}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if err := p.OnEvent(ctx, ev, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCall is the round trip of one tool call. Goal: 60 µs.
func BenchmarkCall(b *testing.B) {
	w := newWorld(b)
	p := w.load("tool", "tool")
	call := tool.Call{ID: "c", Name: "upper", Args: json.RawMessage(`{"text":"abc"}`), SessionID: "s1"}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if res, err := p.invoke(ctx, call); err != nil || !res.OK {
			b.Fatal(res, err)
		}
	}
}

// BenchmarkEvents is the rate of events of 64 sessions through one plugin. Goal: 20,000/s.
func BenchmarkEvents(b *testing.B) {
	w := newWorld(b)
	p := w.load("tool", "tool")
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	const sessions = 64
	next := make(chan struct{}, 1024)
	var all sync.WaitGroup
	for n := range sessions {
		ev := event.Event{ID: "e", Kind: "user.interrupt", SessionID: fmt.Sprintf("s%d", n), Time: time.Now(), Source: "kernel", Payload: event.Empty{}}
		all.Go(func() {
			for range next {
				if err := p.OnEvent(ctx, ev, nil); err != nil {
					b.Error(err)
				}
			}
		})
	}
	began := time.Now()
	for b.Loop() {
		next <- struct{}{}
	}
	close(next)
	all.Wait()
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "events/s")
}

// BenchmarkGuard is the time that a guard adds to a call of a tool. Goal: 60 µs.
func BenchmarkGuard(b *testing.B) {
	b.Setenv("GUARDS", "yes")
	w := newWorld(b)
	w.load("skill", "skill", strings.Replace(guards, `"pre_tool"`, `"pre_tool", "prompt"`, 1))
	call := tool.Call{ID: "c", Name: "upper", Args: json.RawMessage(`{"text":"abc"}`), SessionID: "s1", Origin: tool.OriginLoop}
	def := tool.Definition{Name: "upper", Kind: tool.KindRead}
	b.ReportAllocs()
	for b.Loop() {
		if v, err := w.PreToolCall(context.Background(), call, def); err != nil || v.Decision != tool.Abstain {
			b.Fatal(v, err)
		}
	}
}
