package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
)

// Derive returns a function that computes a value from the store's settings, and
// computes it again only after they have changed. Use it for values that every call
// needs. The result is shared and must not be modified. The function is safe for
// concurrent use.
func Derive[T any](s *Store, from func(*Store) (T, error)) func() (T, error) {
	type derived struct {
		value T
		err   error
		count uint64
	}
	var last atomic.Pointer[derived]
	return func() (T, error) {
		// The generation is read before the computation: a change meanwhile makes the
		// value stale.
		count := s.changes()
		d := last.Load()
		if d == nil || d.count != count {
			d = &derived{count: count}
			d.value, d.err = from(s)
			last.Store(d)
		}
		return d.value, d.err
	}
}

func (s *Store) changes() uint64 {
	s.cache.RLock()
	defer s.cache.RUnlock()
	return s.count
}

// Groups returns the groups of callers by name.
func (s *Store) Groups() (map[string][]string, error) {
	out := map[string][]string{}
	for _, v := range s.All(GroupsPrefix) {
		var members []string
		if err := json.Unmarshal(v.Value, &members); err != nil {
			return nil, fmt.Errorf("%s must be a list of principals: %w", v.Key, err)
		}
		out[strings.TrimPrefix(v.Key, GroupsPrefix)] = members
	}
	return out, nil
}
