package upstream

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// stats counts calls, errors, dropped messages and truncated results, and keeps the latencies of
// the last calls.
type stats struct {
	calls   atomic.Uint64
	errors  atomic.Uint64
	dropped atomic.Uint64
	cut     atomic.Uint64 // results that were truncated

	mu   sync.Mutex
	ring [64]time.Duration
	n    int
}

func (s *stats) record(took time.Duration, ok bool) {
	s.calls.Add(1)
	if !ok {
		s.errors.Add(1)
	}
	s.mu.Lock()
	s.ring[s.n%len(s.ring)] = took
	s.n++
	s.mu.Unlock()
}

// load returns how many calls have a slot, and how many wait for one.
func (g *gate) load() (busy, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all.busy, g.all.waiting
}

// add counts the calls of one more session.
func (d *Detail) add(g *gate) {
	busy, waiting := g.load()
	d.InFlight += busy
	d.Waiting += waiting
}

// open reports whether calls are refused because the server has not answered.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.until.IsZero()
}

// median returns the median latency of the last calls, 0 when there were none.
func (s *stats) median() time.Duration {
	s.mu.Lock()
	last := slices.Clone(s.ring[:min(s.n, len(s.ring))])
	s.mu.Unlock()
	if len(last) == 0 {
		return 0
	}
	slices.Sort(last)
	return last[len(last)/2]
}
