package session

// Queued counts the queued prompts of all sessions whose tapes are open, for metrics. It
// does not wait for a disk: a session that is being written does not count.
func (m *Manager) Queued() int {
	m.mu.Lock()
	all := make([]*Session, 0, len(m.sessions))
	for _, s := range m.sessions {
		all = append(all, s)
	}
	m.mu.Unlock()
	n := 0
	for _, s := range all {
		if !s.mu.TryLock() {
			continue
		}
		if s.j != nil {
			n += len(s.st.queue)
		}
		s.mu.Unlock()
	}
	return n
}
