package tool_shell //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"sync"
	"time"
)

// clock measures the time limit of a command. It stands still while a person is asked on behalf
// of the command. It is safe for concurrent use.
type clock struct {
	mu    sync.Mutex
	left  time.Duration
	since time.Time // when it last resumed
	waits int
	timer *time.Timer // nil while it stands still
	over  func()
	state clockState
}

type clockState int

const (
	going clockState = iota
	late
	stopped
)

// newClock returns a running clock, which calls over when the time is up.
func newClock(limit time.Duration, over func()) *clock {
	c := &clock{left: limit, over: over}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start()
	return c
}

// start resumes the clock; the caller holds mu.
func (c *clock) start() {
	c.since = time.Now()
	c.timer = time.AfterFunc(c.left, func() {
		c.mu.Lock()
		up := c.state == going && c.waits == 0
		if up {
			c.state = late
		}
		c.mu.Unlock()
		if up {
			c.over()
		}
	})
}

func (c *clock) pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits++; c.waits == 1 && c.state == going {
		c.timer.Stop()
		c.left = max(0, c.left-time.Since(c.since))
	}
}

func (c *clock) resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waits--; c.waits == 0 && c.state == going {
		c.start()
	}
}

// stop ends the clock and reports whether the time was already up.
func (c *clock) stop() (wasLate bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == going {
		c.timer.Stop()
		c.state = stopped
	}
	return c.state == late
}
