package measure

import (
	"slices"
	"sync"
	"time"
)

// Limits for promoting and demoting a skill.
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

// Verdict is the consequence of an invocation.
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
