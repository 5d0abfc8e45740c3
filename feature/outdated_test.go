package feature_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// boxed is a provider that is started with a setting, and outdated when that has changed.
type boxed struct {
	mock
	wants, has string
	refuses    string // a setting that it does not start with
	final      bool   // it says that trying again does not help
	takes      time.Duration
	tries      atomic.Int32
}

// Info lets a start take its time.
func (b *boxed) Info() feature.Info {
	info := b.mock.Info()
	info.InstallTimeout = 10 * time.Minute
	return info
}

func (b *boxed) Start(ctx context.Context, s feature.Signals) error {
	b.edit(func() { b.has = b.wants })
	b.tries.Add(1)
	if b.wants == b.refuses {
		if b.final {
			return &feature.RefusedError{Err: errors.New("refused")}
		}
		return errors.New("refused")
	}
	b.mu.Lock()
	takes := b.takes
	b.mu.Unlock()
	if takes > 0 {
		s.Installing("fetching")
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return b.mock.Start(ctx, s)
}

func (b *boxed) Outdated() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wants == b.has {
		return ""
	}
	return b.has + " is to be " + b.wants
}

// set changes the setting, and has the host look.
func (b *boxed) set(r *rig, to string) {
	b.edit(func() { b.wants = to })
	r.host.Reconsider()
	synctest.Wait()
}

// SET-1: a provider that is outdated is started again, once for each change: calls in
// flight finish first, and those that come meanwhile go to the next connection.
func TestOutdatedIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, allow{})
		p := &boxed{mock: mock{id: "p"}, wants: "old", refuses: "forbidden"}
		finish, results := make(chan struct{}), make(chan tool.Result, 2)
		slow, quick := newTool("slow"), newTool("quick")
		slow.run = func(context.Context, tool.Call) (tool.Result, error) {
			<-finish
			return tool.OK("slow", tool.Text("slow")), nil
		}
		quick.run = func(context.Context, tool.Call) (tool.Result, error) {
			return tool.OK("", tool.Text("with "+p.has)), nil
		}
		p.tools = []*mockTool{slow, quick}
		r.install(t, p)
		snap := r.host.Boundary(t.Context())
		check := func(what string, starts int, state feature.State, reason string) {
			t.Helper()
			st := r.host.Status()[0]
			if n, _, _ := p.counts(); n != starts || st.State != state || st.Reason != reason {
				t.Errorf("%s: %d starts, %s %q; want %d, %s %q", what, n, st.State, st.Reason, starts, state, reason)
			}
		}
		r.host.Reconsider()
		synctest.Wait()
		check("nothing has changed", 1, feature.Ready, "")

		begin := func(name string) {
			go func() { results <- r.call(t, snap, name) }()
			synctest.Wait()
		}
		begin("p__slow")
		p.set(r, "new")
		check("a call is in flight", 1, feature.Draining, "old is to be new")
		begin("p__quick")
		if n := quick.calls.Load(); n != 0 {
			t.Errorf("%d calls reached the old connection while it was draining", n)
		}
		p.set(r, "old")
		if got := <-results; got.Text() != "with old" {
			t.Errorf("back again: the call that waited says %q", got.Text())
		}
		check("back again", 1, feature.Ready, "")

		p.set(r, "new")
		begin("p__quick")
		close(finish)
		for range 2 {
			if got := <-results; !got.OK || got.Text() != "slow" && got.Text() != "with new" {
				t.Errorf("a call came to %v %q, want the slow one to finish and the quick one to wait", got.OK, got.Text())
			}
		}
		check("the calls have ended", 2, feature.Ready, "")
		if st := r.host.Status()[0]; st.Restarts != 1 || st.LastError != "" || !strings.Contains(strings.Join(st.Diagnostics, "\n"), "started again: old is to be new") {
			t.Errorf("status: %+v, want one restart that is not a failure, and why", st)
		}

		p.set(r, "forbidden")
		check("it is refused", 2, feature.Failed, "refused") // before it counts as a start
		if got := r.call(t, snap, "p__quick"); got.OK || !strings.Contains(got.Text(), "refused") {
			t.Errorf("a call to what was refused: %q", got.Text())
		}
		before := time.Now()
		p.set(r, "new")
		check("it is allowed again", 3, feature.Ready, "")
		if waited := time.Since(before); waited != 0 {
			t.Errorf("that took %v, want no pause", waited)
		}
	})
}

// A provider that the settings forbid to start is not tried again by itself: when
// it may start, and when a call asks for it.
func TestRefusedIsNotRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, allow{})
		p := &boxed{mock: mock{id: "p", tools: []*mockTool{newTool("a")}}, wants: "forbidden", refuses: "forbidden", final: true}
		r.install(t, p)
		time.Sleep(time.Hour)
		synctest.Wait()
		if st := r.host.Status()[0]; p.tries.Load() != 1 || st.State != feature.Failed || st.Reason != "refused" || st.Restarts > 1 {
			t.Errorf("after an hour: %d tries, %+v; want one, and failed", p.tries.Load(), st)
		}
		if err := r.host.Do(t.Context(), "p", func() error { return nil }); err == nil || p.tries.Load() != 2 {
			t.Errorf("a call: %v after %d tries; want a refusal after 2", err, p.tries.Load())
		}
		p.set(r, "allowed")
		if st := r.host.Status()[0]; p.tries.Load() != 3 || st.State != feature.Ready {
			t.Errorf("allowed: %d tries, %s; want 3, ready", p.tries.Load(), st.State)
		}
	})
}

// A call that waits while a provider is connected again waits for as long as that
// may take, and one that waits in vain does not quote a timer.
func TestCallsWaitForWhatIsOutdated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, allow{})
		p := &boxed{mock: mock{id: "p"}, wants: "old"}
		finish := make(chan struct{})
		slow, quick := newTool("slow"), newTool("quick")
		slow.run = func(context.Context, tool.Call) (tool.Result, error) {
			<-finish
			return tool.OK("slow"), nil
		}
		p.tools = []*mockTool{slow, quick}
		r.install(t, p)
		snap := r.host.Boundary(t.Context())
		p.edit(func() { p.takes = 90 * time.Second })
		results := make(chan tool.Result, 2)
		go func() { results <- r.call(t, snap, "p__slow") }()
		synctest.Wait()
		p.set(r, "new")
		go func() { results <- r.call(t, snap, "p__quick") }() // while it is draining
		time.Sleep(10 * time.Second)
		close(finish)
		if res := <-results; !res.OK || res.Brief != "slow" {
			t.Errorf("got %v %q, want the call in flight to finish", res.OK, res.Text())
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := r.host.Do(ctx, "p", func() error { return nil })
		if err == nil || !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "context deadline") || !strings.Contains(err.Error(), "call again when it is ready") {
			t.Errorf("a call that cannot wait: %v", err)
		}
		if res := <-results; !res.OK {
			t.Errorf("the call that waited: %s", res.Text())
		}
	})
}

// SET-1: no call keeps an outdated connection forever.
func TestDrainingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, allow{})
		p := &boxed{mock: mock{id: "p"}, wants: "old"}
		finish := make(chan struct{})
		slow := newTool("slow")
		slow.run = func(context.Context, tool.Call) (tool.Result, error) {
			<-finish
			return tool.OK("slow", tool.Text("slow")), nil
		}
		p.tools = []*mockTool{slow}
		r.install(t, p)
		snap := r.host.Boundary(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			r.call(t, snap, "p__slow")
		}()
		synctest.Wait()
		p.set(r, "new")
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if err := r.host.Do(ctx, "p", func() error { return nil }); err == nil || !strings.HasSuffix(err.Error(), "started again once the calls that are in flight have ended; call again (old is to be new)") {
			t.Errorf("a call that cannot wait so long: %v", err)
		}
		time.Sleep(4 * time.Minute)
		if starts, stops, _ := p.counts(); starts != 1 || stops != 0 {
			t.Errorf("%d starts and %d stops within the limit, want the call to go on", starts, stops)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if starts, stops, _ := p.counts(); starts != 2 || stops != 1 || p.has != "new" {
			t.Errorf("%d starts and %d stops after the limit, with %s; want another connection", starts, stops, p.has)
		}
		close(finish)
		<-ended
	})
}

// SET-1: a provider that starts with an outdated setting does not become ready with it.
func TestOutdatedStartIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, allow{})
		p := &boxed{mock: mock{id: "p", hang: true, tools: []*mockTool{newTool("a")}}, wants: "old"}
		r.install(t, p)
		synctest.Wait()
		r.host.Reconsider()
		synctest.Wait()
		if starts, _, _ := p.counts(); starts != 1 {
			t.Errorf("%d starts although nothing has changed", starts)
		}
		p.edit(func() { p.hang = false })
		before := time.Now()
		p.set(r, "new")
		starts, stops, _ := p.counts()
		if st := r.host.Status()[0]; starts != 2 || stops != 1 || st.State != feature.Ready || time.Since(before) != 0 {
			t.Errorf("%d starts, %d stops, %s after %v; want another start at once", starts, stops, st.State, time.Since(before))
		}
	})
}
