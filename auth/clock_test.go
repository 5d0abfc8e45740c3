package auth_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/auth"
)

// AU-09: an expired token stays expired when the clock is set back, in this run and in the
// next; the error names the reason and the remedy.
func TestClockIsSetBack(t *testing.T) {
	w := newWorld(t)
	start := time.Now()
	now := start
	w.now = func() time.Time { return now }
	old := w.enroll(newGadget("phone"))
	now = start.Add(25 * time.Hour)
	g := newGadget("laptop")
	fresh := w.enroll(g)
	expired := func(when string, tok auth.Token, want string) {
		t.Helper()
		_, err := w.VerifyToken(tok.Token)
		if !errors.Is(err, auth.ErrToken) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: VerifyToken = %v, want %q", when, err, want)
		}
		if _, err := w.Refresh(t.Context(), tok.Token); !errors.Is(err, auth.ErrToken) {
			t.Errorf("%s: Refresh = %v, want it refused", when, err)
		}
	}
	expired("after its end", old, "has expired")
	for _, step := range []time.Duration{-30 * time.Second, 30 * time.Second} { // as NTP does
		now = now.Add(step)
		if err := w.ClockBehind(); err != nil {
			t.Errorf("a step of %v: got %v", step, err)
		}
		w.principal(fresh)
	}
	now = start
	expired("set back by 25 h", old, "rotate-keys --drop-earlier")
	w.principal(fresh)
	w.restart()
	expired("after a restart", old, "25h0m0s behind")
	w.principal(fresh)
	again := w.enrollAgain(g) // a clock that is behind locks nobody out
	w.principal(again)
	now = now.Add(24*time.Hour + 2*time.Minute)
	expired("a day after the restart", again, "has expired") // so time goes on
	now = start
	if _, err := w.RotateKeys(t.Context(), auth.LocalOwner, true); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"at once", "after a restart"} {
		if err := w.ClockBehind(); err != nil {
			t.Errorf("%s, without earlier tokens: got %v, want the machine's clock", when, err)
		}
		w.restart()
	}
	if tok := w.enrollAgain(g); tok.ExpiresAt.After(start.Add(24*time.Hour + time.Minute)) {
		t.Errorf("a token is good until %v, and now is %v", tok.ExpiresAt, start)
	}
}

// A clock that was ahead for a moment in which nothing was written leaves no trace.
func TestClockWasAhead(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.now = func() time.Time { return now }
	tok := w.enroll(newGadget("phone"))
	now = now.AddDate(1, 0, 0)
	if _, err := w.VerifyToken(tok.Token); !errors.Is(err, auth.ErrToken) {
		t.Errorf("a year later: got %v, want it expired", err)
	}
	now = now.AddDate(-1, 0, 0)
	w.principal(tok)
	w.restart()
	w.principal(tok)
}

// AU-12: fifty refreshes of one token at the same time end with one successor, which
// all of them hold and which lives; so does one whose reply was lost in a restart.
// Afterwards a second refresh ends the family (AU-11).
func TestParallelRefreshes(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.now = func() time.Time { return now }
	first := w.enroll(newGadget("phone"))
	var mu sync.Mutex
	got := map[string]int{}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			tok, err := w.Refresh(t.Context(), first.Token)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("Refresh = %v", err)
			}
			got[tok.Token]++
		})
	}
	wg.Wait()
	now = now.Add(28 * time.Second)
	w.restart()
	late, err := w.Refresh(t.Context(), first.Token)
	if err != nil {
		t.Fatalf("after a restart: Refresh = %v", err)
	}
	if got[late.Token]++; len(got) != 1 || got[late.Token] != 51 {
		t.Fatalf("%d successors, want 1 that all hold", len(got))
	}
	w.principal(late)
	issued := 0
	for _, e := range w.events() {
		if e == "device_token_issued" {
			issued++
		}
	}
	if issued != 2 {
		t.Errorf("the log has %d tokens, want 2", issued)
	}
	now = now.Add(2 * time.Second)
	if _, err := w.Refresh(t.Context(), first.Token); !errors.Is(err, auth.ErrToken) {
		t.Errorf("half a minute later: Refresh = %v, want it refused", err)
	}
	if _, err := w.VerifyToken(late.Token); !errors.Is(err, auth.ErrToken) {
		t.Errorf("the family lives on: %v", err)
	}
}
