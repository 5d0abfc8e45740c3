package tunnel

import (
	"sync"
	"time"
)

// deadline is a time limit that can be moved while somebody waits. It works as that of [net.Pipe].
type deadline struct {
	mu    sync.Mutex
	timer *time.Timer
	over  chan struct{} // closed when the time has come
}

func newDeadline() *deadline { return &deadline{over: make(chan struct{})} }

// set moves the limit; the zero time removes it.
func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.over // the timer is about to close it
	}
	d.timer = nil
	closed := isClosed(d.over)
	if t.IsZero() {
		if closed {
			d.over = make(chan struct{})
		}
		return
	}
	left := time.Until(t)
	if left <= 0 {
		if !closed {
			close(d.over)
		}
		return
	}
	if closed {
		d.over = make(chan struct{})
	}
	over := d.over
	d.timer = time.AfterFunc(left, func() { close(over) })
}

// wait returns what is closed when the time has come.
func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.over
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
