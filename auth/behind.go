package auth

import (
	"fmt"
	"time"
)

// MaxBehind is how long a node may be without news of the control log and still admit
// devices and tokens.
const MaxBehind = 4 * time.Second

// current returns an error that wraps [ErrBehind] if this node's log may lack revocations.
func (a *Authority) current() error {
	if a.cfg.Node == "" || a.log == nil { // who is alone misses nothing
		return nil
	}
	if b := a.log.State().Behind; b > MaxBehind {
		return fmt.Errorf("%w: it has had no news for %v", ErrBehind, min(b, 24*time.Hour).Round(time.Second))
	}
	return nil
}

// Recheck ends the holds that may not continue. A node calls it when it is cut off: no entry
// tells of that.
func (a *Authority) Recheck() {
	a.mu.Lock()
	ended := a.ended()
	a.mu.Unlock()
	for _, h := range ended {
		h.end()
	}
}
