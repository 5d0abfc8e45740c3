// Package agents is what a kernel and its gateway tell each other of agents and
// kernels, and the state of the agents that it adds up to ([Set]).
//
// Nothing here starts a goroutine. All types are safe for concurrent use.
package agents

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
)

// MaxContext bounds an agent's context, in bytes of JSON: what does not fit is
// left out, the oldest members of a patch last.
const MaxContext = 32 << 10

// Set is the agents that are known. Changes carry an index, and the last writer wins:
// what is not newer than what is there is ignored. Its zero value is ready for use.
type Set struct {
	mu     sync.RWMutex
	agents map[string]Agent
	// killed remembers the index at which an agent was killed, so that an older
	// change that comes late does not bring it back.
	killed map[string]int64
}

const maxKilled = 10_000 // that are remembered

// Register takes an agent in, or replaces it.
func (a *Set) Register(m RegisterAgent) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.Index <= a.agents[m.ID].Index || m.Index <= a.killed[m.ID] {
		return false
	}
	if a.agents == nil {
		a.agents = map[string]Agent{}
	}
	meta := m.Meta
	if meta == nil {
		meta = map[string]any{}
	}
	a.agents[m.ID] = Agent{ID: m.ID, KernelID: m.KernelID, Skill: m.Skill, Status: Idle, Meta: meta, Context: map[string]any{}, Index: m.Index, Time: m.Time}
	return true
}

// Update changes an agent: its status, and its context by a patch, whose null
// members remove (RFC 7386). It reports whether the update was newer.
func (a *Set) Update(m UpdateAgent) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, ok := a.agents[m.ID]
	if !ok || m.Index <= now.Index {
		return false
	}
	now.Status, now.Index, now.Time, now.Updated = m.Status, m.Index, m.Time, true
	now.Context = merge(now.Context, m.ContextPatch)
	if raw, err := json.Marshal(now.Context); err != nil || len(raw) > MaxContext {
		now.Context = a.agents[m.ID].Context // a patch too many changes nothing
	}
	a.agents[m.ID] = now
	return true
}

// merge applies a JSON merge patch to a copy.
func merge(to, patch map[string]any) map[string]any {
	out := maps.Clone(to)
	if out == nil {
		out = map[string]any{}
	}
	for k, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(out, k)
		case map[string]any:
			inner, _ := out[k].(map[string]any)
			out[k] = merge(inner, v)
		default:
			out[k] = v
		}
	}
	return out
}

// Kill removes an agent.
func (a *Set) Kill(m KillAgent) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now, ok := a.agents[m.ID]
	if !ok || m.Index <= now.Index {
		return false
	}
	delete(a.agents, m.ID)
	if a.killed == nil || len(a.killed) >= maxKilled {
		a.killed = map[string]int64{}
	}
	a.killed[m.ID] = m.Index
	return true
}

// Get returns an agent.
func (a *Set) Get(id string) (Agent, bool) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	got, ok := a.agents[id]
	return got, ok
}

// List returns all agents, by id.
func (a *Set) List() []Agent {
	a.mu.RLock()
	defer a.mu.RUnlock()
	out := slices.Collect(maps.Values(a.agents))
	slices.SortFunc(out, func(x, y Agent) int { return strings.Compare(x.ID, y.ID) })
	if out == nil {
		out = []Agent{}
	}
	return out
}

// Updated returns the agents whose newest change is an update with an index behind
// after, up to upTo, by index.
func (a *Set) Updated(after, upTo int64) (out []Agent) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, x := range a.agents {
		if x.Updated && x.Index > after && x.Index <= upTo {
			out = append(out, x)
		}
	}
	slices.SortFunc(out, byIndex)
	return out
}

// Renew makes every agent one that was updated: each gets an index of its own behind
// at, in the order of those before. It returns the last.
func (a *Set) Renew(at int64) int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, x := range slices.SortedFunc(maps.Values(a.agents), func(x, y Agent) int { return cmp.Or(byIndex(x, y), strings.Compare(x.ID, y.ID)) }) {
		at++
		x.Index, x.Updated = at, true
		a.agents[x.ID] = x
	}
	return at
}

func byIndex(x, y Agent) int { return cmp.Compare(x.Index, y.Index) }

// Count returns how many agents a kernel has; "" counts all.
func (a *Set) Count(kernel string) (n int) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if kernel == "" {
		return len(a.agents)
	}
	for _, x := range a.agents {
		if x.KernelID == kernel {
			n++
		}
	}
	return n
}

// Replace takes over a snapshot: what it does not have is gone.
func (a *Set) Replace(all []Agent) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.agents, a.killed = make(map[string]Agent, len(all)), nil
	for _, x := range all {
		a.agents[x.ID] = x
	}
}
