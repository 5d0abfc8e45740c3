package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/feature"
)

// UP-36, OP-50: slots are given in turns, principal by principal and client by client; the queue is
// bounded, and who gives up leaves it.
func TestGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, false)
		held, err := g.enter(t.Context(), party{"ada", "flood", ""})
		if err != nil {
			t.Fatal(err)
		}
		order := make(chan string, 10)
		wait := func(ctx context.Context, principal, client string) {
			go func() {
				if q, err := g.enter(ctx, party{principal, client, ""}); err == nil {
					order <- client
					g.leave(q)
				}
			}()
			synctest.Wait()
		}
		wait(t.Context(), "ada", "flood")
		wait(t.Context(), "ada", "flood")
		gone, cancel := context.WithCancel(t.Context())
		wait(gone, "ada", "gone")
		wait(t.Context(), "ada", "flood")
		wait(t.Context(), "ada", "quiet")
		wait(t.Context(), "bob", "bob's")
		wait(t.Context(), "bob", "bob's")
		cancel()
		synctest.Wait()
		g.leave(held)
		synctest.Wait()
		close(order)
		var got []string
		for c := range order {
			got = append(got, c)
		}
		want := []string{"flood", "bob's", "quiet", "bob's", "flood", "flood"}
		if !slices.Equal(got, want) {
			t.Errorf("order %v, want %v", got, want)
		}
		idle(t, g)
	})
}

// idle fails the test if anything is left at a gate.
func idle(t *testing.T, g *gate) {
	t.Helper()
	if g.all.busy != 0 || g.all.waiting != 0 || len(g.all.below) != 0 || len(g.all.turns) != 0 {
		t.Errorf("left behind: %d in flight, %d waiting, %d principals, %d turns; want none", g.all.busy, g.all.waiting, len(g.all.below), len(g.all.turns))
	}
	for _, q := range g.spare {
		if q.busy != 0 || len(q.waiters) != 0 || len(q.below) != 0 {
			t.Errorf("a spare queue has %d in flight and %d waiting, want none", q.busy, len(q.waiters))
		}
	}
}

// REL-4, OP-50: a client with a thousand calls in flight leaves slots and waiting places to
// others: to other clients of its principal, and to other principals. It is the one that is
// refused, and the refusal says that yaya did not send the call.
func TestGateSharesPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(maxInFlight, false)
		release := make(chan struct{})
		var refused []error
		var mu sync.Mutex
		flood := func(who party, n int) {
			for range n {
				go func() {
					q, err := g.enter(t.Context(), who)
					if err != nil {
						mu.Lock()
						defer mu.Unlock()
						refused = append(refused, err)
						return
					}
					<-release
					g.leave(q)
				}()
			}
			synctest.Wait()
		}
		flood(party{"ada", "one", ""}, 1000)
		if want := maxInFlight * 7 / 8 * 3 / 4; g.all.busy != want || g.all.waiting != maxWaiting {
			t.Errorf("the flood has %d in flight and %d waiting, want %d and %d", g.all.busy, g.all.waiting, want, maxWaiting)
		}
		if want := 1000 - g.all.busy - maxWaiting; len(refused) != want {
			t.Errorf("%d calls of the flood were refused, want %d", len(refused), want)
		}
		for _, err := range refused {
			if _, ok := errors.AsType[*busyError](err); !ok || !unmade(err) || !strings.Contains(err.Error(), "yaya did not send the call") {
				t.Fatalf("got %v, want a refusal that says whose it is", err)
			}
		}
		for n, who := range []party{{"ada", "two", ""}, {"bob", "his", ""}, {"", "nobody's", ""}} {
			begun := time.Now()
			q, err := g.enter(t.Context(), who)
			if err != nil || time.Since(begun) != 0 {
				t.Errorf("the call of newcomer %d: got %v after %v, want a slot at once", n, err, time.Since(begun))
				continue
			}
			defer g.leave(q)
		}
		// Newcomers that have to wait get a place, and the flood loses one for each.
		before := len(refused)
		flood(party{"bob", "his", ""}, 60)
		flood(party{"eve", "hers", ""}, 60)
		if got := len(refused) - before; got == 0 || g.all.below["bob"].waiting+g.all.below["eve"].waiting != got {
			t.Errorf("%d were refused for %d that wait now, want as many", got, g.all.below["bob"].waiting+g.all.below["eve"].waiting)
		}
		if got := g.all.below["bob"].busy + g.all.below["bob"].waiting; got != 61 {
			t.Errorf("bob has %d calls under way, want all 61", got)
		}
		if got := g.all.below["eve"].busy + g.all.below["eve"].waiting; got != 60 {
			t.Errorf("eve has %d calls under way, want all 60", got)
		}
		close(release)
		synctest.Wait()
		if g.all.waiting != 0 || g.all.busy != 3 {
			t.Errorf("got %d waiting and %d in flight, want 0 and the three newcomers", g.all.waiting, g.all.busy)
		}
	})
}

// REL-4, OP-120: a flood from one client on many sessions, or from two clients of one principal,
// leaves a slot to the principal's other clients, and displaces none of their waiting calls.
func TestGateOfManySessions(t *testing.T) {
	for name, floods := range map[string][]string{"one client": {"flood"}, "two clients": {"flood", "other"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate(maxInFlight, false)
				ctx, cancel := context.WithCancel(t.Context())
				call := func(who party) (failed chan error) {
					failed = make(chan error, 1)
					go func() {
						q, err := g.enter(ctx, who)
						if failed <- err; err == nil {
							<-ctx.Done()
							g.leave(q)
						}
					}()
					return failed
				}
				for _, client := range floods {
					for n := range 1000 {
						call(party{"owner", client, fmt.Sprint(client, n)})
						synctest.Wait()
					}
				}
				quiet := party{"owner", "quiet", "its"}
				first := call(quiet)
				synctest.Wait()
				select {
				case err := <-first:
					if err != nil {
						t.Errorf("the newcomer's call: got %v, want a slot", err)
					}
				default:
					t.Errorf("the newcomer waits beside %d calls in flight, want a slot at once", g.all.busy)
				}
				var more []chan error
				for range 20 {
					more = append(more, call(quiet))
				}
				for n := range 1000 {
					call(party{"owner", floods[0], fmt.Sprint("late", n)})
				}
				synctest.Wait()
				for _, failed := range more {
					select {
					case err := <-failed:
						if err != nil {
							t.Fatalf("another call of the newcomer: got %v, want a place", err)
						}
					default: // it waits
					}
				}
				cancel()
				synctest.Wait()
				idle(t, g)
			})
		})
	}
}

// OP-121: a refusal takes longer the more of them there are, so that a client that makes its calls again
// at once gets 200 a second, however many it has in flight.
func TestRefusalsAreHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, false)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		var refused atomic.Int64
		for range 1000 {
			go func() {
				for ctx.Err() == nil {
					g.holdBack(ctx, &busyError{})
					refused.Add(1)
				}
			}()
		}
		<-ctx.Done()
		synctest.Wait()
		if got := refused.Load(); got < 2000 || got > 6500 {
			t.Errorf("%d calls were refused in 20 s, want about 4,000", got)
		}
		begun := time.Now()
		g.holdBack(t.Context(), &waitedError{})
		if time.Since(begun) != 0 {
			t.Errorf("another failure took %v, want none", time.Since(begun))
		}
		if g.refusing != 0 {
			t.Errorf("%d refusals are left, want none", g.refusing)
		}
	})
}

// OP-50: nobody shares the session of one client, so it has all slots; and a limit of one or two is
// the limit for one client, too.
func TestGateOfOne(t *testing.T) {
	for _, tc := range []struct {
		limit int
		alone bool
		want  int
	}{{64, true, 64}, {64, false, 42}, {1, false, 1}, {2, false, 2}, {3, false, 3}, {4, false, 3}, {8, false, 6}} {
		synctest.Test(t, func(t *testing.T) {
			g := newGate(tc.limit, tc.alone)
			ctx, cancel := context.WithCancel(t.Context())
			for range 100 {
				go func() {
					if q, err := g.enter(ctx, party{"ada", "one", ""}); err == nil {
						<-ctx.Done()
						g.leave(q)
					}
				}()
			}
			synctest.Wait()
			if g.all.busy != tc.want {
				t.Errorf("limit %d, alone %v: got %d in flight, want %d", tc.limit, tc.alone, g.all.busy, tc.want)
			}
			cancel()
			synctest.Wait()
			idle(t, g)
		})
	}
}

// OP-50: any mix of parties that come, wait, give up and leave keeps the limit, leaves nothing
// behind, and lets everybody through who waits.
func TestGateUnderAnyMix(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			g := newGate(1+r.IntN(20), r.IntN(4) == 0)
			var most atomic.Int64
			var in atomic.Int64
			for range 600 {
				who := party{fmt.Sprint("p", r.IntN(4)), fmt.Sprint("c", r.IntN(3)), fmt.Sprint("s", r.IntN(2))}
				begin, last, patience := time.Duration(r.IntN(1000))*time.Millisecond, time.Duration(r.IntN(200))*time.Millisecond, time.Duration(1+r.IntN(5000))*time.Millisecond
				go func() {
					time.Sleep(begin)
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					q, err := g.enter(ctx, who)
					if err != nil {
						return
					}
					if n := in.Add(1); n > most.Load() {
						most.Store(n)
					}
					time.Sleep(last)
					in.Add(-1)
					g.leave(q)
				}()
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if most.Load() > int64(g.limit) {
				t.Errorf("seed %d: %d in flight at once, want at most %d", seed, most.Load(), g.limit)
			}
			idle(t, g)
		})
	}
}

func TestGateIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, false)
		held, err := g.enter(t.Context(), party{name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		failed := make(chan error, maxWaiting)
		for range maxWaiting {
			go func() {
				_, err := g.enter(ctx, party{name: "a"})
				failed <- err
			}()
		}
		synctest.Wait()
		if _, err := g.enter(t.Context(), party{name: "a"}); err == nil {
			t.Error("the queue is not bounded")
		} else if _, ok := errors.AsType[*busyError](err); !ok || !unmade(err) {
			t.Errorf("got %v, want a busyError", err)
		}
		time.Sleep(time.Minute)
		cancel(errCallTimeout)
		synctest.Wait()
		for range maxWaiting {
			err := <-failed
			if !errors.Is(err, feature.ErrNotSent) || !errors.Is(err, errCallTimeout) || !strings.Contains(err.Error(), "yaya did not send the call: it waited 1m0s") {
				t.Fatalf("got %v, want one that says that the call was not sent", err)
			}
		}
		if g.all.waiting != 0 || len(g.all.turns) != 0 {
			t.Errorf("left behind: %d waiting, %d turns", g.all.waiting, len(g.all.turns))
		}
		g.leave(held)
		if _, err := g.enter(t.Context(), party{name: "b"}); err != nil {
			t.Errorf("enter after the queue has emptied = %v, want a turn", err)
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
			t.Errorf("allow once Retry-After is over = %v, want nil", err)
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

// REL-4, OP-51: neither an action of a client nor a bad answer opens the breaker, which all clients
// share; and a call that says nothing of the server does not close it.
func TestBreakerJudgesTheServerOnly(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	timedOut, stop := context.WithCancelCause(t.Context())
	stop(errCallTimeout)
	for _, tc := range []struct {
		name   string
		ctx    context.Context
		err    error
		answer bool
	}{
		{"the queue is full", t.Context(), &busyError{busy: 64}, false},
		{"the queue is full, and its caller has gone", canceled, &busyError{busy: 64}, false},
		{"its caller has gone", canceled, context.Canceled, false},
		{"its caller has gone while an answer came", canceled, errors.New("the server closed the connection"), false},
		{"there is no room for the answer", t.Context(), fmt.Errorf("%w: full", errNoRoom), false},
		{"nobody calls", t.Context(), errNoCaller, false},
		{"yaya has no descriptors left", t.Context(), &os.SyscallError{Syscall: "socket", Err: syscall.EMFILE}, false},
		{"this machine cannot start another process", t.Context(), &os.PathError{Op: "fork/exec", Path: "/x", Err: syscall.EAGAIN}, false},
		{"the disk is full", t.Context(), fmt.Errorf("write: %w", syscall.ENOSPC), false},
		{"the call waited in vain for a place", timedOut, &waitedError{64, time.Minute, errCallTimeout}, false},
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
