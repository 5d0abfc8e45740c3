package auth

import (
	"sync/atomic"
	"time"
)

// clock is the time by which tokens expire. It is the machine's clock, unless that
// was set back by more than the leeway: behind the newest entry of the control log,
// or behind its own later readings, by the monotonic clock. Then it continues from
// there, so that expired tokens stay expired.
//
// Only times at which entries were written count, so that a clock that was ahead for
// a moment leaves no trace. If an entry was written in that moment, tokens are dated
// by it until the machine's clock has caught up; dropping all tokens starts over with
// the machine's clock.
type clock struct {
	now  func() time.Time
	mark atomic.Pointer[mark]
}

// mark records that the time was at least at when now returned read.
type mark struct {
	at   time.Time
	read time.Time // with its monotonic reading
}

func newClock(now func() time.Time) *clock {
	c := &clock{now: now}
	c.reset()
	return c
}

// reset returns to the machine's clock.
func (c *clock) reset() {
	n := c.now()
	c.mark.Store(&mark{n, n})
}

// saw records the time at which an entry was written. It is not called
// concurrently.
func (c *clock) saw(at time.Time) {
	n := c.now()
	if f := c.floor(n); at.Before(f) {
		at = f
	}
	c.mark.Store(&mark{at, n})
}

// floor returns the earliest possible time.
func (c *clock) floor(n time.Time) time.Time {
	m := c.mark.Load()
	return m.at.Add(max(n.Sub(m.read), 0))
}

// Now returns the time.
func (c *clock) Now() time.Time {
	n := c.now()
	if f := c.floor(n); f.Sub(n) > leeway {
		return f
	}
	return n
}

// behind returns by how much the machine's clock is behind, 0 within the leeway.
func (c *clock) behind() time.Duration {
	n := c.now()
	if d := c.floor(n).Sub(n); d > leeway {
		return d
	}
	return 0
}
