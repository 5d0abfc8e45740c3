package feature_test

import (
	"context"
	"errors"
	"strings"
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
}

func (b *boxed) Start(ctx context.Context, s feature.Signals) error {
	b.edit(func() { b.has = b.wants })
	if b.wants == b.refuses {
		return errors.New("refused")
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
			t.Errorf("status: %+v, want one restart that is no failure, and why", st)
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

// SET-1: no call keeps an outdated connection for ever.
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
		if got := r.call(t, snap, "p__slow"); got.OK || !strings.Contains(got.Text(), "started again once the calls that are in flight have ended; call again (old is to be new)") {
			t.Errorf("a call that has waited too long: %q", got.Text())
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

// SET-1: what is starting with a setting that has changed does not become ready with it.
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
