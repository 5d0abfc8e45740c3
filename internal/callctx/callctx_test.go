package callctx_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/callctx"
)

// begin returns a child of parent and what ends it, in the form of the standard library.
type begin func(parent context.Context) (context.Context, context.CancelCauseFunc)

func ours(parent context.Context) (context.Context, context.CancelCauseFunc) {
	c := new(callctx.Context)
	c.Begin(parent)
	return c, c.Cancel
}

func detached(parent context.Context) (context.Context, context.CancelCauseFunc) {
	c := new(callctx.Context)
	c.BeginDetached(parent)
	return c, c.Cancel
}

func theirDetached(parent context.Context) (context.Context, context.CancelCauseFunc) {
	return context.WithCancelCause(context.WithoutCancel(parent))
}

type key string

var errWhy, errLater = errors.New("why"), errors.New("later")

// state lists what code can see of a context.
type state struct {
	Err, Cause         error
	Done, Deadline     bool
	Value              any
	Child, ChildCause  error
	Valued             error // of a child under a value
	Hook, AfterFunc    bool
	LateChild, LateFor error // of a child that begins at the end
}

// observed runs a scenario and returns what is to be seen at its end.
func observed(t *testing.T, mine, parents begin, scenario func(parent, ctx context.CancelCauseFunc)) (s state) {
	t.Helper()
	root, stop := context.WithDeadline(context.WithValue(t.Context(), key("k"), "v"), time.Now().Add(time.Minute))
	defer stop()
	parent, endParent := parents(root)
	defer endParent(nil)
	ctx, end := mine(parent)
	defer end(nil)
	child, endChild := context.WithCancel(ctx)
	defer endChild()
	valued, endValued := context.WithCancelCause(context.WithValue(ctx, key("l"), "w"))
	defer endValued(nil)
	var hooked, after atomic.Bool
	var hook callctx.Hook
	hook.Attach(ctx, callctx.Func(func() { hooked.Store(true) }))
	context.AfterFunc(ctx, func() { after.Store(true) })
	scenario(endParent, end)
	synctest.Wait()
	s = state{Err: ctx.Err(), Cause: context.Cause(ctx), Value: ctx.Value(key("k")), Child: child.Err(), ChildCause: context.Cause(child), Valued: context.Cause(valued), Hook: hooked.Load(), AfterFunc: after.Load()}
	select {
	case <-ctx.Done():
		s.Done = true
	default:
	}
	_, s.Deadline = ctx.Deadline()
	late, endLate := context.WithCancel(ctx)
	defer endLate()
	synctest.Wait()
	s.LateChild, s.LateFor = late.Err(), context.Cause(late)
	return s
}

// A Context is to be told apart from one of the standard library by nothing but its cost.
func TestLikeTheStandardLibrary(t *testing.T) {
	kinds := map[string][2]begin{"child": {ours, context.WithCancelCause}, "detached": {detached, theirDetached}}
	scenarios := map[string]func(parent, ctx context.CancelCauseFunc){
		"nothing":                func(_, _ context.CancelCauseFunc) {},
		"cancelled":              func(_, ctx context.CancelCauseFunc) { ctx(nil) },
		"cause":                  func(_, ctx context.CancelCauseFunc) { ctx(errWhy) },
		"first cause":            func(_, ctx context.CancelCauseFunc) { ctx(errWhy); ctx(errLater) },
		"parent":                 func(parent, _ context.CancelCauseFunc) { parent(nil) },
		"parent with a cause":    func(parent, _ context.CancelCauseFunc) { parent(errWhy) },
		"parent after the child": func(parent, ctx context.CancelCauseFunc) { ctx(errWhy); parent(errLater) },
		"parent after a plain child": func(parent, ctx context.CancelCauseFunc) {
			ctx(nil)
			parent(errLater)
		},
		"child after the parent": func(parent, ctx context.CancelCauseFunc) { parent(errWhy); ctx(errLater) },
		"deadline":               func(_, _ context.CancelCauseFunc) { time.Sleep(2 * time.Minute) },
	}
	for kind, pair := range kinds {
		for name, scenario := range scenarios {
			for over, parents := range map[string]begin{"ours": ours, "standard": context.WithCancelCause} {
				t.Run(kind+"/"+name+"/"+over, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						got, want := observed(t, pair[0], parents, scenario), observed(t, pair[1], context.WithCancelCause, scenario)
						if got != want {
							t.Errorf("got  %+v\nwant %+v", got, want)
						}
					})
				})
			}
		}
	}
}

// A Context over values over a Context ends with it.
func TestThroughValues(t *testing.T) {
	outer, inner := new(callctx.Context), new(callctx.Context)
	outer.BeginDetached(t.Context())
	inner.Begin(context.WithValue(outer, key("k"), "v"))
	outer.Cancel(errWhy)
	if got := context.Cause(inner); !errors.Is(got, errWhy) {
		t.Errorf("cause of the inner context: got %v, want %v", got, errWhy)
	}
}

func TestHooks(t *testing.T) {
	for name, root := range map[string]begin{"ours": ours, "standard": context.WithCancelCause} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := root(t.Context())
				var calls [3]atomic.Int32
				var hooks [3]callctx.Hook
				for i := range hooks {
					hooks[i].Attach(ctx, callctx.Func(func() { calls[i].Add(1) }))
				}
				if !hooks[1].Detach() {
					t.Error("Detach before the end = false, want true")
				}
				if hooks[1].Attach(ctx, callctx.Func(func() { calls[1].Add(10) })); !hooks[1].Detach() {
					t.Error("Detach after a second Attach = false, want true")
				}
				cancel(nil)
				synctest.Wait()
				if hooks[0].Detach() {
					t.Error("Detach after the end = true, want false")
				}
				for i, want := range [3]int32{1, 0, 1} {
					if got := calls[i].Load(); got != want {
						t.Errorf("hook %d was called %d times, want %d", i, got, want)
					}
				}
				var late callctx.Hook
				called := false
				if late.Attach(ctx, callctx.Func(func() { called = true })); !called || late.Detach() {
					t.Error("a hook on an ended context was not called at once")
				}
			})
		})
	}
	var h callctx.Hook
	if h.Attach(context.Background(), callctx.Func(func() { t.Error("called") })); !h.Detach() {
		t.Error("Detach from a context that never ends = false, want true")
	}
}

// An ended child leaves its parent, which may live on.
func TestChildrenLeave(t *testing.T) {
	parent := new(callctx.Context)
	parent.BeginDetached(t.Context())
	for range 3 {
		child := new(callctx.Context)
		child.Begin(parent)
		child.Cancel(errWhy)
		if got := context.Cause(child); !errors.Is(got, errWhy) {
			t.Errorf("cause: got %v, want %v", got, errWhy)
		}
	}
	if parent.Err() != nil {
		t.Errorf("the parent has ended with %v, want that it lives", parent.Err())
	}
	parent.Cancel(nil)
}

// Ends, hooks and children at the same time: run with the race detector.
func TestAtTheSameTime(t *testing.T) {
	for range 200 {
		parent := new(callctx.Context)
		parent.BeginDetached(t.Context())
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				child := new(callctx.Context)
				child.Begin(parent)
				std, cancel := context.WithCancel(child)
				defer cancel()
				var called atomic.Int32
				var h callctx.Hook
				h.Attach(child, callctx.Func(func() { called.Add(1) }))
				var inner sync.WaitGroup
				inner.Go(func() { child.Cancel(errWhy) })
				inner.Go(func() {
					<-std.Done()
					if err := context.Cause(std); !errors.Is(err, errWhy) && !errors.Is(err, errLater) {
						t.Errorf("cause: got %v, want one of both", err)
					}
				})
				stopped := h.Detach()
				inner.Wait()
				if stopped && called.Load() > 0 {
					t.Error("a detached hook was called")
				}
			})
		}
		wg.Go(func() { parent.Cancel(errLater) })
		wg.Wait()
	}
}

func TestAllocations(t *testing.T) {
	parent := new(callctx.Context)
	parent.BeginDetached(t.Context())
	nothing := callctx.Func(func() {})
	got := testing.AllocsPerRun(100, func() {
		var call struct {
			callctx.Context
			hook callctx.Hook
		}
		call.Begin(parent)
		call.hook.Attach(&call, nothing)
		call.hook.Detach()
		call.Cancel(nil)
	})
	if got > 1 {
		t.Errorf("a context with a hook allocates %v times, want once", got)
	}
}

type bell struct {
	callctx.Alarm
	rang func()
}

func (b *bell) Ring() { b.rang() }

func TestAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all callctx.Alarms
		begun := time.Now()
		var mu sync.Mutex
		rang := map[time.Duration]int{}
		bells := map[time.Duration]*bell{}
		set := func(d time.Duration) {
			b := &bell{rang: func() {
				mu.Lock()
				defer mu.Unlock()
				if got := time.Since(begun); got != d {
					t.Errorf("the alarm for %v rang after %v", d, got)
				}
				rang[d]++
			}}
			bells[d] = b
			all.Set(&b.Alarm, begun.Add(d), b)
		}
		for _, d := range []time.Duration{5 * time.Second, 9 * time.Second, 3 * time.Second, 7 * time.Second, 4 * time.Second} {
			set(d)
		}
		if !bells[3*time.Second].Stop() || bells[3*time.Second].Stop() {
			t.Error("an alarm that is set can be stopped once")
		}
		time.Sleep(6 * time.Second)
		if bells[5*time.Second].Stop() {
			t.Error("Stop after the alarm has rung = true, want false")
		}
		if b := bells[9*time.Second]; !b.Stop() {
			t.Error("Stop = false, want true")
		} else {
			b.rang = func() {
				mu.Lock()
				defer mu.Unlock()
				rang[9*time.Second]++
			}
			all.Set(&b.Alarm, begun.Add(time.Hour), b)
		}
		set(8 * time.Second)
		time.Sleep(2 * time.Hour)
		want := map[time.Duration]int{4 * time.Second: 1, 5 * time.Second: 1, 7 * time.Second: 1, 8 * time.Second: 1, 9 * time.Second: 1}
		mu.Lock()
		defer mu.Unlock()
		for d := range bells {
			if rang[d] != want[d] {
				t.Errorf("the alarm for %v rang %d times, want %d", d, rang[d], want[d])
			}
		}
		if new(callctx.Alarm).Stop() {
			t.Error("Stop of an alarm that was never set = true, want false")
		}
	})
}
