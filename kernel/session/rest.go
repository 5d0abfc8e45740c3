package session

import (
	"strings"
	"weak"

	"github.com/yaya-ai/yaya/kernel/bus"
)

// A session whose tape is closed and which nobody is attached to rests: the manager keeps a
// weak pointer to it, so that it costs nothing once nobody else holds it, and stays the one
// of its id while somebody does: two of them would keep each other from the tape.

// known returns the session of an id, nil if there is none in memory; mu is held. A session
// that rested is in use again.
func (m *Manager) known(id string) *Session {
	if s := m.sessions[id]; s != nil {
		return s
	}
	p, resting := m.resting[id]
	if !resting {
		return nil
	}
	delete(m.resting, id)
	s := p.Value()
	if s != nil {
		m.sessions[id] = s
	}
	return s
}

// rest lets a session rest that nobody uses.
func (m *Manager) rest(s *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.j != nil || s.gone || s.marked || s.pins > 0 || len(s.conns) > 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sessions[s.id] == s && !m.closed {
		delete(m.sessions, s.id)
		m.resting[s.id] = weak.Make(s)
	}
}

// awake has the manager keep a session that rested, and which somebody uses now; the
// session's lock is held. A manager that is closed wakes none.
func (m *Manager) awake(s *Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p, resting := m.resting[s.id]; !resting || p.Value() != s {
		return nil
	}
	if m.closed {
		return bus.ErrClosed
	}
	delete(m.resting, s.id)
	m.sessions[s.id] = s
	return nil
}

// revive opens a session that was in memory before, for an event that belongs to it.
func (m *Manager) revive(kind, id string) {
	if _, there := m.lookup(id); there || strings.HasPrefix(kind, "session.") || len(m.index.sameID(id)) == 0 {
		return
	}
	if _, err := m.Find(id, ""); err != nil {
		m.cfg.Log.Warn().Err(err).Str("session", id).Str("kind", kind).Msg("an event has no session")
	}
}

// forget forgets resting sessions that are no longer in memory.
func (m *Manager) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, p := range m.resting {
		if p.Value() == nil {
			delete(m.resting, id)
		}
	}
}
