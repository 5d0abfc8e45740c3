package registry

import (
	"math"
	"slices"
	"sync"
	"time"
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

// What makes a skill be promoted or demoted.
const (
	fitnessWindow = 50 // invocations that count
	fitnessLeast  = 20 // below which nothing is said
	promoteAt     = 0.8
	demoteAt      = 0.5
	halfTime      = 10 * time.Second // a median that long halves the score
)

// Fitness measures how well a skill does. Its zero value is ready for use.
type Fitness struct {
	mu       sync.Mutex
	outcomes []outcome
	next     int
	promoted bool
}

type outcome struct {
	ok   bool
	took time.Duration
}

// Verdict is what an invocation has led to.
type Verdict int

// The verdicts.
const (
	Unchanged Verdict = iota
	Promote
	Demote
)

// Add counts one invocation, and reports whether the skill has become one that is
// promoted (its score has reached 0.8), or is so no longer (it has fallen to 0.5).
// Below 20 invocations it says nothing.
func (f *Fitness) Add(ok bool, took time.Duration) (Verdict, float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.outcomes) < fitnessWindow {
		f.outcomes = append(f.outcomes, outcome{ok, took})
	} else {
		f.outcomes[f.next] = outcome{ok, took}
		f.next = (f.next + 1) % fitnessWindow
	}
	score := f.score()
	switch {
	case len(f.outcomes) < fitnessLeast:
	case !f.promoted && score >= promoteAt:
		f.promoted = true
		return Promote, score
	case f.promoted && score <= demoteAt:
		f.promoted = false
		return Demote, score
	}
	return Unchanged, score
}

// Score is the share of the last 50 invocations that succeeded, times
// 1/(1 + median/10 s) of the time that those took:
//
//	fitness = successes/n · 1/(1 + t½/10 s)
func (f *Fitness) Score() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.score()
}

func (f *Fitness) score() float64 {
	var took []time.Duration
	for _, o := range f.outcomes {
		if o.ok {
			took = append(took, o.took)
		}
	}
	if len(took) == 0 {
		return 0
	}
	slices.Sort(took)
	median := took[len(took)/2]
	return float64(len(took)) / float64(len(f.outcomes)) / (1 + float64(median)/float64(halfTime))
}
