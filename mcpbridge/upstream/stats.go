package upstream

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// stats counts what a server does. Latencies are those of the last calls.
type stats struct {
	calls   atomic.Uint64
	errors  atomic.Uint64
	dropped atomic.Uint64
	cut     atomic.Uint64 // results that were too large

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
