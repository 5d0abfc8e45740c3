package session

import (
	"slices"
)

// ForkAgent is [Manager.Fork] for a sub-agent: its session is limited to the named tools, as far as
// its parent may call them; nil names all of those. The limit is part of the tape's beginning, so it
// holds after a restart, too, and in a session that is reset. A [Manager.Fork] has none.
func (m *Manager) ForkAgent(parentID, childID string, tools []string) (*Session, error) {
	p, err := m.Find(parentID, "")
	if err != nil {
		return nil, err
	}
	of, err := p.Tools()
	if err != nil {
		return nil, err
	}
	return m.fork(parentID, childID, "", within(of, tools))
}

// within returns the names that are in both lists; nil is a list of all names.
func within(of, names []string) []string {
	switch {
	case of == nil:
		return names
	case names == nil:
		return of
	}
	out := []string{} // not nil, which would be all
	for _, n := range names {
		if slices.Contains(of, n) {
			out = append(out, n)
		}
	}
	return out
}

// Tools returns the names of the tools that the session's agent may call; nil means all.
func (s *Session) Tools() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return nil, err
	}
	return s.only, nil
}
