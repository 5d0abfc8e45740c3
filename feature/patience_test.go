package feature_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/feature"
)

// knowing is a provider that knows when it is worth another look.
type knowing struct {
	mock
	stale, revived atomic.Bool
}

func (k *knowing) Stale() bool   { return k.stale.Load() }
func (k *knowing) Revived() bool { return k.revived.Load() }

type later struct{ wait time.Duration }

func (later) Error() string               { return "not now" }
func (l later) RetryAfter() time.Duration { return l.wait }

// A provider that asks to be left alone is; a call may try all the same, and so
// does a boundary once the provider knows better.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, allow{})
		p := &knowing{mock: mock{id: "p", tools: []*mockTool{newTool("a")}}}
		p.startErr = fmt.Errorf("start: %w", later{10 * time.Minute})
		r.install(t, p)
		synctest.Wait()
		time.Sleep(9 * time.Minute)
		if starts, _, _ := p.counts(); starts != 1 {
			t.Errorf("%d attempts in nine minutes", starts)
		}
		r.host.Boundary(t.Context())
		if starts, _, _ := p.counts(); starts != 1 {
			t.Errorf("a boundary tries without a reason: %d", starts)
		}
		p.edit(func() { p.startErr = nil })
		p.revived.Store(true)
		snap := r.host.Boundary(t.Context())
		if starts, _, _ := p.counts(); starts != 2 || names(snap) != "p__a" {
			t.Errorf("after %d attempts: %s", starts, names(snap))
		}
	})
}

// A provider whose tools have to be looked at again is asked at the next boundary,
// without a notification and without waiting.
func TestStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, allow{})
		p := &knowing{mock: mock{id: "p", tools: []*mockTool{newTool("a")}}}
		r.install(t, p)
		synctest.Wait()
		p.edit(func() { p.tools = append(p.tools, newTool("b")) })
		if got := names(r.host.Boundary(t.Context())); got != "p__a" {
			t.Errorf("at a boundary without a reason: %s", got)
		}
		p.stale.Store(true)
		if got := names(r.host.Boundary(t.Context())); got != "p__a p__b" {
			t.Errorf("got %s, want p__a p__b", got)
		}
	})
}

// The first change after a start is looked at without delay; a storm of them is
// not (UP-10).
func TestFirstChangeIsNotDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, allow{})
		p := &mock{id: "p", tools: []*mockTool{newTool("a")}}
		r.install(t, p)
		synctest.Wait()
		for range 3 {
			p.sig().Changed()
			synctest.Wait()
			r.host.Boundary(t.Context())
		}
		if _, _, n := p.counts(); n != 2 {
			t.Errorf("%d lists, want one at the start and one for the changes", n)
		}
		time.Sleep(6 * time.Second)
		r.host.Boundary(t.Context())
		if _, _, n := p.counts(); n != 3 {
			t.Errorf("%d lists later", n)
		}
	})
}

// Do reaches a provider as a call does: it waits for one that starts, and repeats
// what was never sent, once.
func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, allow{})
		r.install(t, &mock{id: "p"})
		synctest.Wait()
		for _, c := range []struct {
			err  error
			runs int
		}{{nil, 1}, {errors.New("no"), 1}, {fmt.Errorf("%w: lost", feature.ErrNotSent), 2}} {
			runs := 0
			err := r.host.Do(t.Context(), "p", func() error {
				runs++
				return c.err
			})
			if !errors.Is(err, c.err) || runs != c.runs {
				t.Errorf("%v: %v after %d runs", c.err, err, runs)
			}
		}
		if err := r.host.Do(t.Context(), "nobody", func() error { return nil }); err == nil {
			t.Error("nobody was reached")
		}
		bad := &mock{id: "bad", startErr: errors.New("broken")}
		r.install(t, bad)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.host.Do(ctx, "bad", func() error { t.Error("it ran"); return nil }); err == nil {
			t.Error("a provider that does not start was reached")
		}
	})
}
