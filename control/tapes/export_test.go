package tapes

import "maps"

// Held returns the sessions that this node owns.
func (t *Tapes) Held() []string {
	t.mu.Lock()
	all := maps.Clone(t.sessions)
	t.mu.Unlock()
	var out []string
	for id, s := range all {
		s.mu.Lock()
		if s.ready {
			out = append(out, id)
		}
		s.mu.Unlock()
	}
	return out
}
