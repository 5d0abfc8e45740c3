package config

import (
	"maps"
	"slices"
	"strings"
)

// Change is a key of the file that has changed.
type Change struct {
	Key string
	// Was and Is say whether the key was in the file, and is.
	Was, Is bool
	// Over is the layer that overrides the file; "" if none does.
	Over Origin
}

// ReloadFile applies new content of the TOML file, and announces the changes. An
// invalid file changes nothing, nor does one that accept refuses. accept gets a store
// with the new settings and the changes, and is called even if there are none.
func (s *Store) ReloadFile(name string, content []byte, accept func(next *Store, changes []Change) error) ([]Change, error) {
	file, err := parseTOML(name, content)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.RLock()
	// The names of variables can map to other keys with another file.
	env, err := s.fromEnv(file)
	next := &Store{root: s.root, environ: s.environ, file: file, env: env, flags: maps.Clone(s.flags), live: s.live}
	next.providers = Derive(next, instances)
	keys := differing(s.file, file)
	changes := make([]Change, len(keys))
	for i, k := range keys {
		_, was := s.file[k]
		_, is := file[k]
		changes[i] = Change{Key: k, Was: was, Is: is}
		if _, from, ok := next.get(k); ok && from != FromFile && from != FromDefault {
			changes[i].Over = from
		}
	}
	s.cache.RUnlock()
	if err != nil {
		return nil, err
	}
	if err := accept(next, changes); err != nil {
		return nil, err
	}
	if len(changes) == 0 {
		return nil, nil
	}
	s.cache.Lock()
	renamed := differing(s.env, env)
	s.file, s.env = file, env
	s.count++
	s.cache.Unlock()
	keys = append(keys, renamed...)
	slices.Sort(keys)
	return changes, s.announce(slices.Compact(keys))
}

// atStart are keys that are read when yaya starts and not again.
var atStart = []string{"auth.issuer", "auth.audience", "session.heartbeat_timeout", "session.reap_interval", "otel.endpoint"}

// NeedsRestart reports whether a change of a key takes effect only at the next start.
func NeedsRestart(key string) bool {
	return slices.Contains(atStart, key) || (strings.HasPrefix(key, "plugin.") && strings.HasSuffix(key, ".enabled"))
}

// Begin records that yaya has started with the present settings: keys that are read
// only then (see [NeedsRestart]) keep these values until it ends.
func (s *Store) Begin() {
	s.cache.Lock()
	defer s.cache.Unlock()
	s.begun = s.readAtStart()
}

// Waiting returns the keys whose values take effect at the next start of yaya,
// because they have changed since [Store.Begin]; before that it returns none.
func (s *Store) Waiting() []string {
	s.cache.RLock()
	defer s.cache.RUnlock()
	if s.begun == nil {
		return nil
	}
	return differing(s.begun, s.readAtStart())
}

// readAtStart returns the keys that are read when yaya starts, with their values; cache
// is held.
func (s *Store) readAtStart() values {
	out := values{}
	for _, key := range s.keys("") {
		if v, _, ok := s.get(key); ok && NeedsRestart(key) {
			out[key] = v
		}
	}
	return out
}
