package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
)

// A turn that ends while it asks for the calls of an answer asks for no more of them: such a call would run on
// behind it, since the interrupt has passed. An adapter's interrupt may come between a look at the turn and
// the call, which is then behind it, and is ended, too.
func TestCancelAmongCalls(t *testing.T) {
	var calls []string
	for i := range 60 {
		calls = append(calls, fmt.Sprintf(`{"name":"work","args":{"name":"w%d","ms":30000}}`, i))
	}
	script := `{"steps":[{"tool_calls":[` + strings.Join(calls, ",") + `]}]}`
	for name, end := range map[string]func(w *world) error{
		"a cancel": func(w *world) error {
			w.Loop.Cancel("s1")
			return nil
		},
		"an interrupt": func(w *world) error {
			return w.web.ctx.Emit(event.UserInterrupt.Name(), "s1", event.Empty{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 { // one in three comes there
				inBubble(t, setup{script: script}, func(t *testing.T, w *world) { endAmongCalls(t, w, end) })
			}
		})
	}
}

// endAmongCalls ends a turn at the request of its first call.
func endAmongCalls(t *testing.T, w *world, end func(w *world) error) {
	var once sync.Once
	sub, err := w.Bus.Subscribe(bus.SubscribeOptions{Name: "test"}, []string{event.ToolCallRequest.Name()}, func(context.Context, event.Event) (err error) {
		once.Do(func() { err = end(w) })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	start := time.Now()
	out := w.run("s1", "go")
	if took := time.Since(start); took > 0 || !errors.Is(out.Err, loop.ErrInterrupted) {
		t.Errorf("took %v and ended with %v, want no time and %v", took, out.Err, loop.ErrInterrupted)
	}
	time.Sleep(time.Minute)
	synctest.Wait()
	if len(w.ran) > 0 {
		t.Errorf("%d calls of %d ran behind the end of the turn", len(w.ran), len(out.Calls))
	}
}

// A turn that is cancelled while its request is put together does not ask the model: nothing would end that
// call, which costs.
func TestCancelBeforeTheModel(t *testing.T) {
	inBubble(t, setup{script: `{"steps":[{"text":"a b c"}]}`}, func(t *testing.T, w *world) {
		var asked atomic.Int64
		sub, err := w.Bus.Subscribe(bus.SubscribeOptions{Name: "test"}, []string{event.LLMCallRequest.Name()}, func(context.Context, event.Event) error {
			asked.Add(1)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		w.AddNotes(func(session string, _ int, _ []string) string {
			w.Loop.Cancel(session)
			return ""
		})
		if out := w.run("s1", "go"); !errors.Is(out.Err, loop.ErrInterrupted) {
			t.Errorf("the turn ended with %v, want %v", out.Err, loop.ErrInterrupted)
		}
		synctest.Wait()
		if n := asked.Load(); n > 0 {
			t.Errorf("a model was asked %d times for a turn that was cancelled before", n)
		}
	})
}
