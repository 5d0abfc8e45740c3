package bus

import "sync"

// shard holds the locks of some sessions. They exist while they are in use.
type shard struct {
	mu    sync.Mutex
	locks map[string]*sessionLock
	spare *sessionLock // the last one that went out of use
}

type sessionLock struct {
	mu   sync.Mutex
	uses int
}

// lock takes the lock of a session, and returns it for [shard.unlock].
func (s *shard) lock(session string) *sessionLock {
	s.mu.Lock()
	l := s.locks[session]
	if l == nil {
		if s.locks == nil {
			s.locks = map[string]*sessionLock{}
		}
		if l, s.spare = s.spare, nil; l == nil {
			l = new(sessionLock)
		}
		s.locks[session] = l
	}
	l.uses++
	s.mu.Unlock()
	l.mu.Lock()
	return l
}

func (s *shard) unlock(session string, l *sessionLock) {
	l.mu.Unlock()
	s.mu.Lock()
	if l.uses--; l.uses == 0 {
		delete(s.locks, session)
		s.spare = l
	}
	s.mu.Unlock()
}
