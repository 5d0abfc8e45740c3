package auth

import (
	"errors"
	"time"
)

// ErrEnded is wrapped by the reasons for which a hold has ended.
var ErrEnded = errors.New("the connection may not go on")

// hold is an open connection or call of a device or a lasting token.
type hold struct {
	a     *Authority
	p     Principal
	ended func(error)
	timer *time.Timer
	cause error
}

// Hold makes the authority call ended, once and promptly, when a principal's
// connection or call must not continue: its token has expired, or its token, its
// device or the key that signed the token was revoked. ended must not block. release
// ends the hold; a call of ended may be in progress then. Only devices and lasting
// tokens can be held; for others release does nothing.
func (a *Authority) Hold(p Principal, ended func(cause error)) (release func()) {
	if p.Kind != Device && p.Kind != Lasting {
		return func() {}
	}
	h := &hold{a: a, p: p, ended: ended}
	a.mu.Lock()
	if err := a.mayGoOn(p, leeway); err != nil {
		a.mu.Unlock()
		ended(errors.Join(ErrEnded, err))
		return func() {}
	}
	if until := p.until(); !until.IsZero() {
		h.timer = time.AfterFunc(max(until.Sub(a.cfg.Now()), 0)+time.Millisecond, h.check)
	}
	a.holders[h] = struct{}{}
	a.mu.Unlock()
	return func() {
		a.mu.Lock()
		delete(a.holders, h)
		a.mu.Unlock()
		h.stop()
	}
}

// until is when a principal's rights expire; zero for never.
func (p Principal) until() time.Time {
	if p.Kind == Lasting {
		return p.lasting.expires
	}
	return p.claims.ExpiresAt.Time
}

// mayGoOn checks the parts of a principal's rights that can change; mu is held.
func (a *Authority) mayGoOn(p Principal, grace time.Duration) error {
	if err := a.current(); err != nil {
		return err
	}
	if p.Kind == Lasting {
		return a.lastingHolds(p.lasting)
	}
	return a.holds(p.claims, grace)
}

func (h *hold) stop() {
	if h.timer != nil { // a token that never expires has none
		h.timer.Stop()
	}
}

func (h *hold) check() {
	h.a.mu.Lock()
	_, held := h.a.holders[h]
	if held {
		if h.cause = h.a.mayGoOn(h.p, 0); h.cause == nil { // the clock was set back
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

// ended removes the holds that may not continue; mu is held.
func (a *Authority) ended() (out []*hold) {
	for h := range a.holders {
		if h.cause = a.mayGoOn(h.p, leeway); h.cause != nil {
			delete(a.holders, h)
			out = append(out, h)
		}
	}
	return out
}

func (h *hold) end() {
	h.stop()
	h.ended(errors.Join(ErrEnded, h.cause))
}
