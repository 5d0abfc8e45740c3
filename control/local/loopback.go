package local

import (
	"slices"
	"sync"

	"github.com/yaya-ai/yaya/control"
)

// Loopback is the [control.Fanout] of one node: it calls the subscribers. Its zero value
// is ready for use.
type Loopback struct {
	mu   sync.RWMutex
	subs []*func(topic, event string, payload any)
}

var _ control.Fanout = (*Loopback)(nil)

// Publish implements [control.Fanout].
func (l *Loopback) Publish(topic, event string, payload any) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, f := range l.subs {
		(*f)(topic, event, payload)
	}
}

// Subscribe implements [control.Fanout].
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
