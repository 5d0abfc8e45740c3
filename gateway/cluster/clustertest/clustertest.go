// Package clustertest tests what every control log and every fan-out promises,
// whatever engine is behind it.
package clustertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/gateway/cluster"
	"github.com/yaya-ai/yaya/internal/control"
)

// Recorder is a projection that keeps what it is given.
type Recorder struct {
	mu      sync.Mutex
	entries []control.Entry
	// Hear is called with each entry first, if it is set.
	Hear func(control.Entry)
	// Fail is returned instead, if it is set.
	Fail func(control.Entry) error
}

// Apply implements [control.Projection].
func (r *Recorder) Apply(e control.Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Hear != nil {
		r.Hear(e)
	}
	if r.Fail != nil {
		if err := r.Fail(e); err != nil {
			return err
		}
	}
	r.entries = append(r.entries, e)
	return nil
}

// Entries returns what was applied.
func (r *Recorder) Entries() []control.Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]control.Entry(nil), r.entries...)
}

// Log tests a control log. open opens the same, at first empty, log again, with a
// projection; what it returned last has been closed by then.
func Log(t *testing.T, open func(t *testing.T, p control.Projection) (log control.Log, closeLog func())) {
	ctx := t.Context()
	change := func(n int) control.Change {
		return control.Change{Event: "test_event", Actor: "tester", Target: fmt.Sprint("t", n), Payload: map[string]int{"n": n}}
	}
	first := &Recorder{}
	l, closeLog := open(t, first)

	// W-31, W-44: indexes increase strictly, and entries are applied before Append returns.
	var last control.Entry
	for n := range 5 {
		e, err := l.Append(ctx, change(n), nil)
		if err != nil {
			t.Fatal(err)
		}
		if e.Index <= last.Index || e.Term < 1 || e.Time.IsZero() || e.Time.Location() != time.UTC {
			t.Fatalf("after %+v came %+v", last, e)
		}
		if got := first.Entries(); len(got) != n+1 || got[n].Index != e.Index || string(got[n].Payload) != fmt.Sprintf(`{"n":%d}`, n) {
			t.Fatalf("applied: %+v", got)
		}
		last = e
	}

	// What hears of an entry while it is applied can read it, or a reader that is told
	// of it would miss it; it counts as the last when it is applied.
	heard := 0
	first.Hear = func(e control.Entry) {
		if s := l.State(); s.Last >= e.Index {
			t.Errorf("entry %d is the last before it is applied", e.Index)
		}
		if err := l.Read(e.Index, func(got control.Entry) error {
			if got.Index == e.Index {
				heard++
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
	e, err := l.Append(ctx, change(5), nil)
	if err != nil || heard != 1 {
		t.Fatalf("it was read %d times: %v", heard, err)
	}
	first.Hear, last = nil, e

	// A refused check writes nothing, and neither does what is no change.
	refused := errors.New("refused")
	if _, err := l.Append(ctx, change(9), func() error { return refused }); !errors.Is(err, refused) {
		t.Errorf("a refused change: %v", err)
	}
	for _, c := range []control.Change{{}, {Event: "Bad Name", Actor: "a"}, {Event: "x"}, {Event: "x", Actor: "a", Payload: []int{1}}, {Event: "x", Actor: "a", Payload: func() {}}} {
		if _, err := l.Append(ctx, c, nil); !errors.Is(err, control.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if l.State().Last != last.Index || len(first.Entries()) != 6 {
		t.Errorf("something was written: %+v", l.State())
	}

	// R34: of many that check for the same thing, one gets it.
	var won, lost int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			_, err := l.Append(ctx, control.Change{Event: "taken", Actor: "tester"}, func() error {
				for _, e := range first.Entries() {
					if e.Event == "taken" {
						return refused
					}
				}
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if errors.Is(err, refused) {
				lost++
			}
		})
	}
	wg.Wait()
	if won != 1 || lost != 15 {
		t.Errorf("%d have got it and %d have not", won, lost)
	}

	// A follower sees what was, what is and what comes, each once and in order.
	var seen []int64
	fctx, stop := context.WithCancel(ctx)
	defer stop()
	followed := make(chan error, 1)
	want := l.State().Last + 20
	go func() {
		followed <- l.Follow(fctx, 2, func(e control.Entry) error {
			seen = append(seen, e.Index)
			if e.Index == want {
				stop()
			}
			return nil
		})
	}()
	for n := range 20 {
		if _, err := l.Append(ctx, change(n), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-followed; !errors.Is(err, context.Canceled) {
		t.Errorf("following ends with %v", err)
	}
	for i, index := range seen {
		if index != int64(i+2) {
			t.Fatalf("seen: %v", seen)
		}
	}
	if len(seen) == 0 || seen[len(seen)-1] != want {
		t.Errorf("seen: %v, want up to %d", seen, want)
	}

	// Everything is there after a restart, in a later term.
	before, state := first.Entries(), l.State()
	closeLog()
	if _, err := l.Append(ctx, change(1), nil); !errors.Is(err, control.ErrUnavailable) {
		t.Errorf("a closed log answers %v", err)
	}
	again := &Recorder{}
	l, closeLog = open(t, again)
	defer closeLog()
	if got := again.Entries(); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("after the restart:\n%v\nbefore:\n%v", got, before)
	}
	e, err = l.Append(ctx, change(100), nil)
	if err != nil || e.Index != state.Last+1 || e.Term <= state.Term {
		t.Errorf("the first of the next run: %+v, %v (was %+v)", e, err, state)
	}
	if s := l.State(); !s.Quorum || s.Leader == "" || s.Nodes < 1 {
		t.Errorf("state: %+v", s)
	}
	var read []control.Entry
	if err := l.Read(e.Index, func(e control.Entry) error { read = append(read, e); return nil }); err != nil || len(read) != 1 || read[0].Index != e.Index {
		t.Errorf("read %v, %v", read, err)
	}
}

// Fanout tests a fan-out.
func Fanout(t *testing.T, f cluster.Fanout) {
	got := make(chan string, 64)
	cancel := f.Subscribe(func(topic, event string, payload any) { got <- fmt.Sprint(topic, " ", event, " ", payload) })
	other := make(chan string, 64)
	cancelOther := f.Subscribe(func(topic, _ string, _ any) { other <- topic })
	for n := range 10 {
		f.Publish("topic", "event", n)
	}
	for n := range 10 {
		select {
		case s := <-got:
			if s != fmt.Sprint("topic event ", n) {
				t.Errorf("%d: %s", n, s)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("an event did not arrive")
		}
		<-other
	}
	cancel()
	f.Publish("topic", "event", "late")
	if <-other; len(got) != 0 {
		t.Error("an event came after the subscription had ended")
	}
	cancelOther()
}
