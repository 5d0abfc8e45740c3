package session

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/openfiles"
)

// maxOpen is how many tapes may be open before those that nobody uses are closed.
var maxOpen = int64(openfiles.Of(openfiles.Limit()).Tapes)

// trim closes unused tapes, but not that of except, whose lock is held; it does not
// wait for any other.
func (m *Manager) trim(except *Session) {
	m.mu.Lock()
	all := slices.Collect(maps.Values(m.sessions))
	m.mu.Unlock()
	used := make(map[*Session]int64, len(all))
	for _, s := range all {
		used[s] = s.used.Load()
	}
	slices.SortFunc(all, func(a, b *Session) int { return cmp.Compare(used[a], used[b]) })
	for _, s := range all { // the one used longest ago first
		if m.opened.Load() <= maxOpen/2 {
			return
		}
		if s == except || !s.mu.TryLock() {
			continue
		}
		if err := s.idle(time.Now()); err != nil {
			m.cfg.Log.Warn().Err(err).Str("session", s.id).Msg("a tape could not be closed")
		}
		s.mu.Unlock()
	}
}

// touch notes that the session is used.
func (s *Session) touch() { s.used.Store(time.Now().UnixNano()) }

// Pin keeps the tape open until the returned function is called.
func (s *Session) Pin() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pins++
	var once sync.Once
	return func() {
		once.Do(func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.pins--
			s.touch()
		})
	}
}

// unload closes a tape that nobody has used since the given time.
func (s *Session) unload(before time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idle(before)
}

// idle closes the tape if nobody has used it since then; mu is held.
func (s *Session) idle(before time.Time) error {
	if s.j == nil || s.pins > 0 || len(s.conns) > 0 || s.st.turn != "" || len(s.st.asks) > 0 || s.used.Load() > before.UnixNano() {
		return nil
	}
	return s.close()
}

func (s *Session) close() error {
	if s.j == nil {
		return nil
	}
	err := s.j.Close()
	s.m.index.open(s.key(), s.j.Size(), false, s.settled())
	s.j, s.st = nil, state{}
	s.m.opened.Add(-1)
	return err
}
