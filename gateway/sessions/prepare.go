package sessions

// Prepare has a session's own strategy drive its turns, for turns that no request of this
// API starts: after a restart, a queue goes on by itself.
func (s *Service) Prepare(id string) {
	r, err := s.record(id)
	if err != nil {
		s.cfg.Log.Warn().Err(err).Str("session", id).Msg("the settings of a session cannot be read: its turns run without them")
	}
	if err != nil || r == nil {
		return
	}
	s.mu.Lock()
	rec := r.Session
	s.mu.Unlock()
	s.drive(rec)
}
