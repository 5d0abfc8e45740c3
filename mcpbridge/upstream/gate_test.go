package upstream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/feature"
)

// UP-36: places are given in turns, client by client; the queue is bounded, and
// who gives up leaves it.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		if err := g.enter(t.Context(), "flood"); err != nil {
			t.Fatal(err)
		}
		order := make(chan string, 10)
		wait := func(ctx context.Context, client string) {
			go func() {
				if g.enter(ctx, client) == nil {
					order <- client
					g.leave()
				}
			}()
			synctest.Wait()
		}
		wait(t.Context(), "flood")
		wait(t.Context(), "flood")
		gone, cancel := context.WithCancel(t.Context())
		wait(gone, "gone")
		wait(t.Context(), "flood")
		wait(t.Context(), "quiet")
		cancel()
		synctest.Wait()
		g.leave()
		synctest.Wait()
		close(order)
		var got []string
		for c := range order {
			got = append(got, c)
		}
		want := []string{"flood", "quiet", "flood", "flood"}
		if len(got) != len(want) {
			t.Fatalf("order %v", got)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("order %v, want %v", got, want)
				break
			}
		}
		if g.busy != 0 || g.waiting != 0 || len(g.queues) != 0 || len(g.turns) != 0 {
			t.Errorf("left behind: %+v", g)
		}
	})
}

func TestGateIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		if err := g.enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error, maxWaiting)
		for range maxWaiting {
			go func() { failed <- g.enter(ctx, "a") }()
		}
		synctest.Wait()
		if err := g.enter(t.Context(), "b"); err == nil {
			t.Error("the queue is not bounded")
		} else if _, ok := errors.AsType[*busyError](err); !ok || !unmade(err) {
			t.Errorf("got %v", err)
		}
		cancel()
		synctest.Wait()
		for range maxWaiting {
			if err := <-failed; !errors.Is(err, feature.ErrNotSent) {
				t.Fatalf("got %v", err)
			}
		}
		if g.waiting != 0 || len(g.queues) != 0 {
			t.Errorf("left behind: %d waiting, %d queues", g.waiting, len(g.queues))
		}
		g.leave()
		if err := g.enter(t.Context(), "b"); err != nil {
			t.Error(err)
		}
	})
}

// A server that does not answer is left alone for a while, then tried with one
// call; Retry-After counts, and so does nothing that its callers do.
func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b breaker
		late, stop := context.WithCancelCause(t.Context())
		stop(errCallTimeout)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for range breakAfter {
			if err := b.allow(); err != nil {
				t.Fatal(err)
			}
			b.settle(gone, context.Canceled) // says nothing
			b.settle(t.Context(), &statusError{code: 404})
		}
		for range breakAfter {
			if err := b.allow(); err != nil {
				t.Fatal(err)
			}
			b.settle(late, context.Canceled)
		}
		if err := b.allow(); err == nil || !unmade(err) {
			t.Fatalf("still open for calls: %v", err)
		}
		time.Sleep(breakFirst)
		if err := b.allow(); err != nil {
			t.Fatalf("nobody may try: %v", err)
		}
		if b.allow() == nil {
			t.Error("a second call tries, too")
		}
		b.settle(late, context.Canceled)
		time.Sleep(breakFirst)
		if b.allow() == nil {
			t.Error("the second pause is not longer")
		}
		time.Sleep(breakFirst)
		if err := b.allow(); err != nil {
			t.Fatal(err)
		}
		b.settle(t.Context(), nil)
		if err := b.allow(); err != nil {
			t.Errorf("an answer does not close it: %v", err)
		}
		b.settle(t.Context(), &statusError{code: 429, after: time.Minute})
		time.Sleep(59 * time.Second)
		if b.allow() == nil {
			t.Error("Retry-After is not respected")
		}
		time.Sleep(time.Second)
		if err := b.allow(); err != nil {
			t.Error(err)
		}
		b.settle(t.Context(), patientError{}) // waits for a person: not the server's fault
		if err := b.allow(); err != nil {
			t.Errorf("a login keeps calls away: %v", err)
		}
	})
}

type patientError struct{}

func (patientError) Error() string             { return "log in" }
func (patientError) RetryAfter() time.Duration { return time.Minute }

// Neither what a client does nor an answer that is no good one opens the breaker, which
// is everybody's; and a call that says nothing of the server does not close it.
func TestBreakerJudgesTheServerOnly(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name   string
		ctx    context.Context
		err    error
		answer bool
	}{
		{"the queue is full", t.Context(), &busyError{64}, false},
		{"the queue is full, and its caller has gone", canceled, &busyError{64}, false},
		{"its caller has gone", canceled, context.Canceled, false},
		{"its caller has gone while an answer came", canceled, errors.New("the server closed the connection"), false},
		{"there is no room for the answer", t.Context(), fmt.Errorf("%w: full", errNoRoom), false},
		{"an answer that is malformed", t.Context(), malformed(errIDType), true},
		{"an answer that is too large", t.Context(), tooLarge(1 << 20), true},
		{"a task in an unknown state", t.Context(), odd("unknown"), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b breaker
				fail := func() { b.settle(context.Background(), errors.New("the server closed the connection")) }
				for range 2 * breakAfter {
					if err := b.allow(); err != nil {
						t.Fatalf("got %v, want the server to be called", err)
					}
					b.settle(tc.ctx, tc.err)
				}
				for range breakAfter - 1 {
					fail()
				}
				b.settle(tc.ctx, tc.err)
				fail()
				if open := b.allow() != nil; open == tc.answer {
					t.Errorf("open %v, want %v", open, !tc.answer)
				}
			})
		})
	}
}
