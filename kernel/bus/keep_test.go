package bus_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// OP-64: a reader that fell behind misses events and is not gone.
func TestKeep(t *testing.T) {
	b := bus.New(bus.Config{})
	var seen atomic.Int32
	held := make(chan struct{})
	stop, err := bus.Keep(b, bus.SubscribeOptions{Name: "slow", Limit: 2}, []string{event.KernelIsReady.Name()}, func(context.Context, event.Event) error {
		<-held
		seen.Add(1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	publish := func() {
		t.Helper()
		if _, err := bus.Publish(b.Kernel(), event.KernelIsReady, event.KernelSession, event.KernelReady{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		publish()
	}
	close(held)
	before := seen.Load()
	eventually.True(t, "the reader sees a later event", func() bool {
		publish()
		return seen.Load() > before+5
	})
	stop()
	if err := b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
