package callctx

import (
	"sync"
	"time"
)

// Alarms are alarms that share a timer. It is set for the earliest of them, and stays set when
// that one is stopped: most calls end long before their limit, and neither set nor stop a timer.
// The zero value is ready for use.
type Alarms struct {
	mu    sync.Mutex
	first *Alarm
	timer *time.Timer
	wakes time.Time // zero while the timer is not set
}

// Ringer is who an alarm is for. Ring may be called from any goroutine, and must not block.
type Ringer interface{ Ring() }

// Alarm is one of [Alarms]; it rings once for each time that it is set.
type Alarm struct {
	of         *Alarms
	who        Ringer
	due        time.Time
	set        bool // guarded by of.mu, as prev and next are
	prev, next *Alarm
}

// Set makes a ring at a time. An alarm that is set must be stopped before it is set again.
func (s *Alarms) Set(a *Alarm, due time.Time, who Ringer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.of, a.who, a.due, a.set = s, who, due, true
	a.prev, a.next = nil, s.first
	if a.next != nil {
		a.next.prev = a
	}
	s.first = a
	s.wake(due)
}

// wake sets the timer, unless it is set for an earlier time; mu is held.
func (s *Alarms) wake(due time.Time) {
	switch {
	case !s.wakes.IsZero() && !due.Before(s.wakes):
		return
	case s.timer == nil:
		s.timer = time.AfterFunc(time.Until(due), s.ring)
	default:
		s.timer.Reset(time.Until(due))
	}
	s.wakes = due
}

// Stop reports whether it has prevented the alarm from ringing.
func (a *Alarm) Stop() bool {
	s := a.of
	if s == nil { // it was never set
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !a.set {
		return false
	}
	s.remove(a)
	return true
}

func (s *Alarms) remove(a *Alarm) {
	a.set = false
	if a.prev != nil {
		a.prev.next = a.next
	} else {
		s.first = a.next
	}
	if a.next != nil {
		a.next.prev = a.prev
	}
	a.prev, a.next = nil, nil
}

// ring rings the alarms that are due, and sets the timer for the next one. A timer that was
// reset at the moment when it fired rings twice, and the second time finds nothing to do.
func (s *Alarms) ring() {
	s.mu.Lock()
	now := time.Now()
	s.wakes = time.Time{}
	var due []Ringer
	var next time.Time
	for a := s.first; a != nil; {
		after := a.next
		switch {
		case !a.due.After(now):
			s.remove(a)
			due = append(due, a.who)
		case next.IsZero() || a.due.Before(next):
			next = a.due
		}
		a = after
	}
	if !next.IsZero() {
		s.wake(next)
	}
	s.mu.Unlock()
	for _, who := range due {
		who.Ring()
	}
}
