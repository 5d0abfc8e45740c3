package intake

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

// FID-3: a caller that finds the budget used up waits instead of being refused;
// others are not affected.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(400)
		take := func(party string, n int64) (got func() *Share) {
			var s *Share
			var wg sync.WaitGroup
			wg.Go(func() { s, _ = q.Take(t.Context(), party, n) })
			synctest.Wait()
			return func() *Share { wg.Wait(); return s }
		}
		a := q.TryTake("a", 80)
		if a == nil {
			t.Fatal("TryTake(80) of an empty queue = nil, want a share")
		}
		if s := q.TryTake("a", 30); s != nil {
			t.Fatal("TryTake gave a party more than a quarter")
		}
		second, third := take("a", 30), take("a", 10)
		if s := q.TryTake("a", 10); s != nil {
			t.Error("TryTake overtook those of its party that wait")
		}
		b := q.TryTake("b", 250) // larger than its part: alone it may
		if b == nil {
			t.Fatal("TryTake(250) of a party that holds nothing = nil, want a share")
		}
		if got := q.InUse(); got != 330 {
			t.Errorf("in use %d, want 330", got)
		}
		whole := take("c", 100)
		if s := q.TryTake("d", 10); s != nil {
			t.Error("TryTake overtook one who waits for the whole")
		}
		a.Shrink(40)
		for name, s := range map[string]*Share{"second": second(), "third": third()} {
			if s == nil {
				t.Fatalf("the %s of the party got nothing", name)
			}
			s.Release()
			s.Release() // more than once does nothing more
		}
		b.Release()
		c := whole()
		if got := q.InUse(); got != 140 {
			t.Errorf("in use %d, want 140", got)
		}
		c.Release()
		a.Release()
		if got := q.InUse(); got != 0 || len(q.party) != 0 {
			t.Errorf("in use %d by %v, want nothing", got, q.party)
		}
	})
}

// A waiting caller leaves when its context ends, and those behind it move up.
func TestQueueCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(400)
		a := q.TryTake("a", 100)
		ctx, cancel := context.WithCancelCause(t.Context())
		late := errors.New("too late")
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := q.Take(ctx, "a", 90); !errors.Is(err, late) || !strings.Contains(err.Error(), "large messages in flight") {
				t.Errorf("Take = %v, want the cause and what it waited for", err)
			}
		})
		synctest.Wait()
		cancel(late)
		wg.Wait()
		a.Shrink(50)
		if s := q.TryTake("a", 50); s == nil {
			t.Error("one that has left is still waited for")
		}
	})
}

func TestShareMoves(t *testing.T) {
	q := newQueue(400, 200)
	a, b := q.TryTake("a", 150), q.TryTake("b", 100)
	if a.Move("b") {
		t.Error("Move gave b 250 of 200")
	}
	for n := range 2 { // more than once does nothing more
		if !b.Move("c") {
			t.Errorf("Move %d to c = false, want true", n+1)
		}
	}
	if q.TryTake("b", 150) == nil {
		t.Error("what has moved to c counts as that of b")
	}
	if q.TryTake("c", 150) != nil {
		t.Error("what has moved to c does not count there")
	}
	b.Release()
	a.Release()
	if got := q.InUse(); got != 150 {
		t.Errorf("in use %d, want 150", got)
	}
}
