package auth

import (
	"errors"
	"time"
)

// ErrEnded is wrapped by the reasons for which a hold has ended.
var ErrEnded = errors.New("the connection may not go on")

// hold is something of a device's that is under way.
type hold struct {
	a     *Authority
	p     Principal
	ended func(error)
	timer *time.Timer
	cause error
}

// Hold has ended called, once and soon, when what a principal has under way must
// not go on: its token has expired or was revoked, or so was the device, or the
// key that signed the token (R2, AU-16, AU-18). ended must not block. release ends
// the hold; a call of ended may be under way then. Only devices can be held; of
// others release does nothing.
func (a *Authority) Hold(p Principal, ended func(cause error)) (release func()) {
	if p.Kind != Device {
		return func() {}
	}
	h := &hold{a: a, p: p, ended: ended}
	a.mu.Lock()
	if err := a.holds(p.claims, leeway); err != nil {
		a.mu.Unlock()
		ended(errors.Join(ErrEnded, err))
		return func() {}
	}
	h.timer = time.AfterFunc(max(p.claims.ExpiresAt.Sub(a.cfg.Now()), 0)+time.Millisecond, h.check)
	a.holders[h] = struct{}{}
	a.mu.Unlock()
	return func() {
		a.mu.Lock()
		delete(a.holders, h)
		a.mu.Unlock()
		h.timer.Stop()
	}
}

func (h *hold) check() {
	h.a.mu.Lock()
	_, held := h.a.holders[h]
	if held {
		if h.cause = h.a.holds(h.p.claims, 0); h.cause == nil { // the clock was set back
			h.timer.Reset(time.Second)
			held = false
		} else {
			delete(h.a.holders, h)
		}
	}
	h.a.mu.Unlock()
	if held {
		h.end()
	}
}

// ended takes the holds out that may not go on; mu is held.
func (a *Authority) ended() (out []*hold) {
	for h := range a.holders {
		if h.cause = a.holds(h.p.claims, leeway); h.cause != nil {
			delete(a.holders, h)
			out = append(out, h)
		}
	}
	return out
}

func (h *hold) end() {
	h.timer.Stop()
	h.ended(errors.Join(ErrEnded, h.cause))
}
