package feature

// signals implements [Signals] for one attempt.
func (s *supervisor) signals(epoch int) Signals {
	current := func() bool { return s.epoch == epoch && s.ctx.Err() == nil }
	return Signals{
		Changed: func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if current() {
				s.dirty = true
				select {
				case s.poke <- struct{}{}:
				default:
				}
			}
		},
		Failed: func(err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if current() {
				select {
				case s.failed <- err:
					s.usable.Store(false)
				default:
				}
			}
		},
		Installing: func(line string) {
			s.mu.Lock()
			ok := current()
			s.mu.Unlock()
			if ok {
				s.move(Installing, line, func(now State) bool {
					return now == Starting || (now == Installing && s.st.Reason != s.host.clean(line))
				})
			}
		},
		Degraded: func(msg string) {
			s.mu.Lock()
			ok := current()
			s.mu.Unlock()
			if ok {
				s.adjust(Degraded, msg)
			}
		},
	}
}
