//go:build unix

package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"testing"
	"testing/synctest"
	"time"
)

// The time of a command stands still while somebody is asked for it, also about two
// hosts at once, and goes on when all of them have an answer.
func TestClockStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		over := make(chan time.Duration, 1)
		c := newClock(10*time.Second, func() { over <- time.Since(began) })
		time.Sleep(4 * time.Second)
		c.pause()
		time.Sleep(time.Hour)
		c.pause()
		c.resume()
		time.Sleep(time.Hour)
		c.resume()
		time.Sleep(time.Minute)
		if got, want := <-over, 2*time.Hour+10*time.Second; got != want || !c.stop() {
			t.Errorf("the time was up after %v, want %v", got, want)
		}
		c = newClock(10*time.Second, func() { t.Error("a clock that was stopped said that the time was up") })
		c.pause()
		if c.stop() {
			t.Error("stop of a clock that stands = late, want in time")
		}
		c.resume()
		time.Sleep(time.Minute)
	})
}
