package auth

import (
	"maps"
	"sync"
	"time"
)

// lastUses records to the minute when tokens were last used, by the index of their
// entry, or devices by their id. It is not in the control log, because using a token changes
// no state there.
type lastUses[K comparable] struct {
	mu    sync.Mutex
	at    map[K]time.Time
	dirty bool
}

func (l *lastUses[K]) note(index K, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.at[index]) >= time.Minute {
		l.at[index], l.dirty = now.UTC().Truncate(time.Minute), true
	}
}

func (l *lastUses[K]) forget(index K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.at, index)
	l.dirty = true
}

func (l *lastUses[K]) last(index K) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at[index]
}

// lastSeen is when a device was last seen: by its requests since yaya was started, and before
// that by the tokens that it was given.
func (a *Authority) lastSeen(id string, d *device) time.Time {
	last := a.seen.last(id)
	for _, f := range d.families {
		if issued := f.expires.Add(-a.cfg.TokenLife); issued.After(last) {
			last = issued
		}
	}
	return last.UTC()
}

// LastUses returns when lasting tokens were last used, and whether that has changed
// since the previous call.
func (a *Authority) LastUses() (uses map[int64]time.Time, changed bool) {
	a.used.mu.Lock()
	defer a.used.mu.Unlock()
	changed, a.used.dirty = a.used.dirty, false
	return maps.Clone(a.used.at), changed
}

// RestoreUses restores the result of [Authority.LastUses] from an earlier run, for
// tokens that still exist.
func (a *Authority) RestoreUses(uses map[int64]time.Time) {
	a.mu.RLock()
	defer a.mu.RUnlock()
	a.used.mu.Lock()
	defer a.used.mu.Unlock()
	for _, t := range a.lasting {
		if at, ok := uses[t.index]; ok && at.After(a.used.at[t.index]) {
			a.used.at[t.index] = at
		}
	}
}
