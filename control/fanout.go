package control

import (
	"slices"
	"sync"
)

// Fanout carries events to every node, the sender included. It may lose some: a
// subscriber that must not miss one reads the log.
type Fanout interface {
	// Publish sends an event to the subscribers of every node. It does not wait for
	// them; the caller must not modify the event afterwards.
	Publish(topic, event string, payload any)
	// Subscribe makes the fan-out call f with every later event, in the order in which
	// each publisher sends them. f must not block. cancel ends the subscription; f is
	// not called after it has returned.
	Subscribe(f func(topic, event string, payload any)) (cancel func())
}

// Loopback is the [Fanout] of one node: it calls the subscribers. Its zero value
// is ready for use.
type Loopback struct {
	mu   sync.RWMutex
	subs []*func(topic, event string, payload any)
}

var _ Fanout = (*Loopback)(nil)

// Publish implements [Fanout].
func (l *Loopback) Publish(topic, event string, payload any) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, f := range l.subs {
		(*f)(topic, event, payload)
	}
}

// Subscribe implements [Fanout].
func (l *Loopback) Subscribe(f func(topic, event string, payload any)) (cancel func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subs = append(slices.Clone(l.subs), &f)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.subs = slices.DeleteFunc(slices.Clone(l.subs), func(g *func(topic, event string, payload any)) bool { return g == &f })
	}
}
