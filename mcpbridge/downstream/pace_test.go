package downstream

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// REL-5, OP-122: a client that floods yaya with initialize is slowed down, not refused; others open their
// sessions without waiting, and so does the same client a while later.
func TestPaceOfSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(clientRate, principalRate)
		flood, other := kind{"owner", "flood"}, kind{"owner", "other"}
		begun := time.Now()
		for n := range 1256 {
			if err := p.wait(t.Context(), t.Context(), flood); err != nil {
				t.Fatalf("session %d: got %v, want nil", n, err)
			}
			if n == clientRate.burst-1 && time.Since(begun) != 0 {
				t.Errorf("the first %d sessions took %v, want no wait", n+1, time.Since(begun))
			}
		}
		if took := time.Since(begun); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("1,256 sessions took %v, want 10 s", took)
		}
		now := time.Now()
		for range 100 {
			if err := p.wait(t.Context(), t.Context(), other); err != nil || time.Since(now) != 0 {
				t.Fatalf("another client: got %v after %v, want no wait", err, time.Since(now))
			}
		}
		if d, _ := p.reserve(flood); d == 0 {
			t.Error("the flood need not wait, want it to")
		}
		time.Sleep(time.Duration(clientRate.burst+2) * time.Second / time.Duration(clientRate.perSecond))
		if d, _ := p.reserve(flood); d != 0 {
			t.Errorf("the same client later: got a wait of %v, want none", d)
		}
		// All clients of a principal together, whatever they call themselves.
		for n := range principalRate.burst {
			p.reserve(kind{"ada", string(rune(n + 1))})
		}
		if d, _ := p.reserve(kind{"ada", "new"}); d == 0 {
			t.Error("a principal that opens sessions under many names need not wait, want it to")
		}
		if d, _ := p.reserve(kind{"bob", "new"}); d != 0 {
			t.Errorf("another principal: got a wait of %v, want none", d)
		}
	})
}

// OP-122: the wait is bounded, ends with the client or the server, and nothing of those that need not
// wait is kept.
func TestPaceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(pacing{1, 1}, pacing{1000, 1000})
		who := kind{"owner", "flood"}
		for range 11 {
			p.reserve(who)
		}
		if err := p.wait(t.Context(), t.Context(), who); !errors.Is(err, errTooFast) {
			t.Errorf("behind 10 s of others: got %v, want %v", err, errTooFast)
		}
		time.Sleep(5 * time.Second)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.wait(gone, t.Context(), who); !errors.Is(err, errNoAnswer) {
			t.Errorf("its client has gone: got %v, want %v", err, errNoAnswer)
		}
		if err := p.wait(t.Context(), gone, who); !errors.Is(err, errSessionEnded) {
			t.Errorf("the server ends: got %v, want %v", err, errSessionEnded)
		}
		for n := range 3 * maxPaced {
			p.reserve(kind{"owner", string(rune(n + 1))})
			time.Sleep(2 * time.Second)
		}
		if len(p.parties) > maxPaced+2 {
			t.Errorf("%d clients are remembered, want at most about %d", len(p.parties), maxPaced)
		}
	})
}
