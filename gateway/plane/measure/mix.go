// Package measure says how evenly a kernel uses its tools and skills and how that
// changes ([Mix]), and how well a skill does ([Fitness]).
//
// Nothing here starts a goroutine. All types are safe for concurrent use.
package measure

import (
	"math"
	"sync"
)

// window is how many of the last calls count as the present.
const window = 256

// maxKinds bounds the kinds that are told apart; the rest is one more.
const maxKinds = 1024

// Mix measures which tools and skills a kernel uses. Its zero value is ready for
// use.
type Mix struct {
	mu     sync.Mutex
	recent []string // the last calls, as a ring
	next   int
	now    map[string]int
	all    map[string]int
	total  int
}

// Add counts one call of a tool or a skill.
func (m *Mix) Add(kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.now, m.all = map[string]int{}, map[string]int{}
	}
	if _, known := m.all[kind]; !known && len(m.all) >= maxKinds {
		kind = ""
	}
	if len(m.recent) < window {
		m.recent = append(m.recent, kind)
	} else {
		old := m.recent[m.next]
		if m.now[old]--; m.now[old] == 0 {
			delete(m.now, old)
		}
		m.recent[m.next] = kind
		m.next = (m.next + 1) % window
	}
	m.now[kind]++
	m.all[kind]++
	m.total++
}

// Entropy is the Shannon entropy of the last 256 calls over the kinds that they
// are of, divided by its greatest possible value:
//
//	H = -Σ p·log₂ p / log₂ n
//
// It is 0 if there is one kind or none, and 1 if n kinds are used equally often.
func (m *Mix) Entropy() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.now) < 2 {
		return 0
	}
	var h float64
	for _, n := range m.now {
		p := float64(n) / float64(len(m.recent))
		h -= p * math.Log2(p)
	}
	return clamp(h / math.Log2(float64(len(m.now))))
}

// Drift is the Jensen–Shannon divergence between the mix of the last 256 calls, P,
// and that of all calls, Q:
//
//	D = ½ Σ P·log₂(P/M) + ½ Σ Q·log₂(Q/M),  M = ½ (P + Q)
//
// It is 0 as long as a kernel does what it always did, and 1 if it does nothing of
// that.
func (m *Mix) Drift() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.total == 0 {
		return 0
	}
	var d float64
	for kind, n := range m.all {
		q := float64(n) / float64(m.total)
		p := float64(m.now[kind]) / float64(len(m.recent))
		mid := (p + q) / 2
		if p > 0 {
			d += p * math.Log2(p/mid) / 2
		}
		d += q * math.Log2(q/mid) / 2
	}
	return clamp(d)
}

func clamp(x float64) float64 { return min(max(x, 0), 1) }
