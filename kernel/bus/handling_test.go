package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// The context of a handler behaves as a standard one, whatever is asked of it first.
func TestContextOfAHandler(t *testing.T) {
	type key struct{}
	for _, tc := range []struct {
		name string
		use  func(ctx context.Context) error // runs before, during and after the deadline
		want [3]error                        // while it runs, after its deadline, after it returned
	}{
		{"Err", context.Context.Err, [3]error{nil, context.DeadlineExceeded, context.Canceled}},
		{"Cause", context.Cause, [3]error{nil, bus.ErrHandlerTimeout, context.Canceled}},
		{"Done", func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			default:
				return nil
			}
		}, [3]error{nil, context.DeadlineExceeded, context.Canceled}},
		{"child", func(ctx context.Context) error {
			child, cancel := context.WithCancel(context.WithValue(ctx, key{}, 1))
			defer cancel()
			if got := child.Value(key{}); got != 1 {
				return fmt.Errorf("value of the child: got %v, want 1", got)
			}
			return context.Cause(child)
		}, [3]error{nil, bus.ErrHandlerTimeout, context.Canceled}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBus(t, bus.Config{HandlerTimeout: time.Second})
				var kept context.Context
				var late error
				handle := func(ctx context.Context, ev event.Event, m event.UserMessage) error {
					if d, ok := ctx.Deadline(); !ok || !d.Equal(time.Now().Add(time.Second)) {
						t.Errorf("Deadline() = %v, %v; want in 1 s", d, ok)
					}
					switch m.Text {
					case "asks":
						if got := tc.use(ctx); !errors.Is(got, tc.want[0]) {
							t.Errorf("while it runs: got %v, want %v", got, tc.want[0])
						}
					case "late":
						time.Sleep(2 * time.Second)
						late = tc.use(ctx)
					}
					kept = ctx //nolint:fatcontext // the last one is looked at afterwards
					return nil
				}
				if _, err := bus.On(b, bus.SubscribeOptions{Name: "h"}, event.UserMessageReceived, handle); err != nil {
					t.Fatal(err)
				}
				for _, text := range []string{"asks", "does not", "late"} {
					if _, err := bus.Publish(b.Kernel(), event.UserMessageReceived, "s", event.UserMessage{Text: text}); err != nil {
						t.Fatal(err)
					}
					if text == "late" {
						time.Sleep(3 * time.Second)
					}
					synctest.Wait()
					if got := tc.use(kept); text != "late" && !errors.Is(got, tc.want[2]) {
						t.Errorf("after a handler that %s it returned: got %v, want %v", text, got, tc.want[2])
					}
				}
				if !errors.Is(late, tc.want[1]) {
					t.Errorf("after its deadline: got %v, want %v", late, tc.want[1])
				}
			})
		})
	}
}

// A context made from a handler's ends with the handler, and by its deadline, without
// anybody asking the handler's own.
func TestChildrenEndWithTheirHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBus(t, bus.Config{HandlerTimeout: time.Second})
		var got []string
		handle := func(ctx context.Context, _ event.Event, m event.UserMessage) error {
			begun := time.Now()
			child, cancel := context.WithTimeout(ctx, time.Minute)
			context.AfterFunc(child, func() {
				cancel()
				got = append(got, fmt.Sprintf("%s %v %v", m.Text, time.Since(begun), context.Cause(child)))
			})
			if m.Text == "late" {
				time.Sleep(5 * time.Second)
			}
			return nil
		}
		if _, err := bus.On(b, bus.SubscribeOptions{Name: "h"}, event.UserMessageReceived, handle); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"quick", "late"} {
			if _, err := bus.Publish(b.Kernel(), event.UserMessageReceived, "s", event.UserMessage{Text: text}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Second)
			synctest.Wait()
		}
		if want := []string{"quick 0s context canceled", "late 1s handler passed its deadline"}; !slices.Equal(got, want) {
			t.Errorf("contexts below ended as %q, want %q", got, want)
		}
	})
}

// Each handler that is overdue is reported at its own deadline, and once, although one
// timer serves all of a subscription.
func TestEachDeadlineIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var mu sync.Mutex
		var got []string
		b := newBus(t, bus.Config{OnOutcome: func(o bus.Outcome) {
			mu.Lock()
			defer mu.Unlock()
			word := "returned"
			if errors.Is(o.Err, bus.ErrHandlerTimeout) {
				word = "overdue"
			}
			got = append(got, fmt.Sprintf("%v %s %s", time.Since(start), o.Event.SessionID, word))
		}})
		opts := bus.SubscribeOptions{Name: "h", Timeout: 10 * time.Second}
		if _, err := bus.On(b, opts, event.UserMessageReceived, func(_ context.Context, _ event.Event, m event.UserMessage) error {
			d, err := time.ParseDuration(m.Text)
			time.Sleep(d)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		// Each second a message of another session comes, and takes this long.
		for i, takes := range []string{"30s", "2s", "11s", "10m", "3s", "15s"} {
			if _, err := bus.Publish(b.Kernel(), event.UserMessageReceived, fmt.Sprint("s", i), event.UserMessage{Text: takes}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(time.Hour)
		if _, err := bus.Publish(b.Kernel(), event.UserMessageReceived, "again", event.UserMessage{Text: "11s"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"3s s1 returned", "7s s4 returned", "10s s0 overdue", "12s s2 overdue", "13s s3 overdue", "15s s5 overdue", "1h0m16s again overdue"}
		if !slices.Equal(got, want) {
			t.Errorf("outcomes:\n got %s\nwant %s", strings.Join(got, ", "), strings.Join(want, ", "))
		}
	})
}

// Handlers that block hold up their own session and subscription only, however many
// they are.
func TestBlockedHandlersHoldUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const sessions = 200
		b := newBus(t, bus.Config{})
		blocked := make(chan struct{})
		if _, err := bus.On(b, bus.SubscribeOptions{Name: "blocks"}, event.UserMessageReceived, func(context.Context, event.Event, event.UserMessage) error {
			<-blocked
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		got := collect(t, b, event.UserMessageReceived.Name())
		for round := range 2 {
			for i := range sessions {
				if _, err := bus.Publish(b.Kernel(), event.UserMessageReceived, fmt.Sprint("s", i), event.UserMessage{}); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			if n, want := len(got()), (round+1)*sessions; n != want {
				t.Errorf("another subscription handled %d events while %d handlers were blocked, want %d", n, sessions, want)
			}
		}
		close(blocked)
	})
}
