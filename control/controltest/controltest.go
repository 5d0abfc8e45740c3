// Package controltest tests the promises of every control log and every fan-out,
// whatever the engine.
package controltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/control"
)

// Recorder is a projection that keeps all entries.
type Recorder struct {
	mu      sync.Mutex
	entries []control.Entry
	// Hear, if set, is called first with each entry.
	Hear func(control.Entry)
	// Fail, if set, is returned instead.
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

// Part implements [control.Stateful].
func (r *Recorder) Part() string { return "recorder" }

// Save implements [control.Stateful].
func (r *Recorder) Save() (json.RawMessage, error) {
	return json.Marshal(r.Entries()) //nolint:musttag // only Restore reads it
}

// Restore implements [control.Stateful].
func (r *Recorder) Restore(state json.RawMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return json.Unmarshal(state, &r.entries) //nolint:musttag // Save has written it
}

// Entries returns the applied entries.
func (r *Recorder) Entries() []control.Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]control.Entry(nil), r.entries...)
}

// Log tests a control log. open opens the same, initially empty, log again, with a
// projection; Log closes the previous one first.
func Log(t *testing.T, open func(t *testing.T, p control.Projection) (log control.Log, closeLog func())) {
	first := &Recorder{}
	l, closeLog := open(t, first)
	appends(t, l, first)
	refuses(t, l, first)
	decides(t, l, first)
	follows(t, l)

	// Everything is there after a restart, in a later term.
	before, state := first.Entries(), l.State()
	closeLog()
	if _, err := l.Append(t.Context(), change(1), nil); !errors.Is(err, control.ErrUnavailable) {
		t.Errorf("a closed log answers %v", err)
	}
	again := &Recorder{}
	l, closeLog = open(t, again)
	defer closeLog()
	if got := again.Entries(); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("after the restart:\n%v\nbefore:\n%v", got, before)
	}
	e, err := l.Append(t.Context(), change(100), nil)
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
	boom := errors.New("boom")
	for ends, want := range map[error]error{fs.SkipAll: nil, boom: boom} {
		visited := 0
		if err := l.Read(1, func(control.Entry) error { visited++; return ends }); !errors.Is(err, want) || visited != 1 {
			t.Errorf("Read whose first visit returns %v = %v after %d visits, want %v after 1", ends, err, visited, want)
		}
	}
}

// change returns a change with n for its payload.
func change(n int) control.Change {
	return control.Change{Event: "test_event", Actor: "tester", Target: fmt.Sprint("t", n), Payload: map[string]int{"n": n}}
}

// appends appends the first six entries.
func appends(t *testing.T, l control.Log, first *Recorder) {
	ctx := t.Context()
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

	// An entry can be read while it is applied, or a reader that is notified then
	// would miss it; it counts as the last when it is applied.
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
	if got := l.State().Last; got != e.Index {
		t.Errorf("State().Last = %d after an append, want %d", got, e.Index)
	}
	first.Hear = nil
}

// refuses asks for changes that the log has to refuse.
func refuses(t *testing.T, l control.Log, first *Recorder) {
	ctx, last := t.Context(), l.State().Last
	// A refused check writes nothing, nor does an invalid change.
	if _, err := l.Append(ctx, change(9), func() error { return errRefused }); !errors.Is(err, errRefused) {
		t.Errorf("a refused change: %v", err)
	}
	for _, c := range []control.Change{{}, {Event: "Bad Name", Actor: "a"}, {Event: "x"}, {Event: "x", Actor: "a", Payload: []int{1}}, {Event: "x", Actor: "a", Payload: func() {}}} {
		if _, err := l.Append(ctx, c, nil); !errors.Is(err, control.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if l.State().Last != last || len(first.Entries()) != 6 {
		t.Errorf("something was written: %+v", l.State())
	}
	// No payload is an empty one, a map that is nil, too.
	for _, none := range []any{nil, map[string]any(nil)} {
		c := control.Change{Event: "test_event", Actor: "tester", Payload: none}
		if raw, err := c.Marshal(); err != nil || string(raw) != "{}" {
			t.Errorf("the payload %#v is written as %s, %v, want {}", none, raw, err)
		}
	}
}

var errRefused = errors.New("refused")

// decides has many ask for the same thing at once.
func decides(t *testing.T, l control.Log, first *Recorder) {
	ctx := t.Context()
	// R34: of many changes with the same check, exactly one succeeds.
	var won, lost int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			_, err := l.Append(ctx, control.Change{Event: "taken", Actor: "tester"}, func() error {
				for _, e := range first.Entries() {
					if e.Event == "taken" {
						return errRefused
					}
				}
				return nil
			})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if errors.Is(err, errRefused) {
				lost++
			}
		})
	}
	wg.Wait()
	if won != 1 || lost != 15 {
		t.Errorf("%d have got it and %d have not", won, lost)
	}
}

// follows reads the log while it grows.
func follows(t *testing.T, l control.Log) {
	ctx := t.Context()
	// A follower sees past, present and future entries, each once and in order.
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
}

// Fanout tests a fan-out.
func Fanout(t *testing.T, f control.Fanout) {
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
