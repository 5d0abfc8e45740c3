package bus_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// BenchmarkPublish counts an operation as one event that all of its subscribers
// have handled.
func BenchmarkPublish(b *testing.B) {
	for _, sessions := range []int{1, 100, 10_000} {
		for _, subs := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("%d sessions, %d subscribers", sessions, subs), func(b *testing.B) {
				x := bus.New(bus.Config{})
				var handled atomic.Int64
				for range subs {
					if _, err := bus.On(x, bus.SubscribeOptions{Name: "s", Limit: 1 << 20}, event.UserMessageReceived, func(context.Context, event.Event, event.UserMessage) error {
						handled.Add(1)
						return nil
					}); err != nil {
						b.Fatal(err)
					}
				}
				ids := make([]string, sessions)
				for i := range ids {
					ids[i] = fmt.Sprint("s", i)
				}
				k := x.Kernel()
				n := int64(0)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := bus.Publish(k, event.UserMessageReceived, ids[n%int64(sessions)], event.UserMessage{Text: "x"}); err != nil {
						b.Fatal(err)
					}
					n++
					for handled.Load() < (n-256)*int64(subs) { // never far behind
						time.Sleep(10 * time.Microsecond)
					}
				}
				for handled.Load() < n*int64(subs) {
					time.Sleep(10 * time.Microsecond)
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
				if err := x.Close(context.Background()); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
