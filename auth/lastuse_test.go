package auth_test

import (
	"testing"
	"time"

	"github.com/yaya-ai/yaya/auth"
)

// A device is seen when it makes a request; after a restart, when it was last given a token.
func TestLastSeen(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.now = func() time.Time { return now }
	w.restart()
	given := now
	token := w.enroll(newGadget("phone"))
	check := func(when string, want time.Time) {
		t.Helper()
		all, err := w.Devices(auth.LocalOwner)
		if err != nil || len(all) != 1 {
			t.Fatalf("Devices = %+v, %v, want one", all, err)
		}
		if got := all[0].LastSeen; got.Sub(want).Abs() > time.Minute {
			t.Errorf("%s: last seen at %v, want %v", when, got, want)
		}
	}
	check("enrolled", given)
	now = now.Add(2 * time.Hour)
	w.principal(token)
	check("after a request", now)
	w.restart()
	check("after a restart", given)
}
