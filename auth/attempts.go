package auth

import (
	"net/netip"
	"sync"
	"time"
)

// Limits of the budget for failed attempts.
const (
	failuresPerMinute = 10
	maxBackoff        = 5 * time.Minute
	maxPeers          = 4096
)

// Attempts is the budget of failed attempts, one for all ways to authenticate. Each
// peer has its own, and none is shared: nobody can spend the budget of others. Guessing
// with many addresses is bounded by the secrets themselves, see [Authority.Invite]. Its
// methods are safe for concurrent use.
type Attempts struct {
	now func() time.Time

	mu    sync.Mutex
	peers map[netip.Prefix]*attempts
}

type attempts struct {
	failures int
	since    time.Time // of the minute that is counted
	blocked  time.Time // until
	backoff  time.Duration
}

// NewAttempts returns an unused budget.
func NewAttempts(now func() time.Time) *Attempts {
	return &Attempts{now: now, peers: map[netip.Prefix]*attempts{}}
}

// Network returns the addresses that one party has together with addr: an IPv6 /64,
// or one IPv4 address. For an invalid address it returns the zero Prefix.
func Network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil { // not an address: all of those share one budget
		return netip.Prefix{}
	}
	return p
}

// Blocked returns how long a peer must wait before its next attempt; 0 if it may
// try at once.
func (a *Attempts) Blocked(addr netip.Addr) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.peers[Network(addr)]; p != nil {
		return max(p.blocked.Sub(a.now()), 0)
	}
	return 0
}

// Fail counts a failed attempt.
func (a *Attempts) Fail(addr netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	key := Network(addr)
	p := a.peers[key]
	if p == nil {
		if len(a.peers) >= maxPeers {
			a.forget(now)
		}
		p = new(attempts)
		a.peers[key] = p
	}
	p.fail(now)
}

func (p *attempts) fail(now time.Time) {
	if now.Sub(p.since) > time.Minute {
		if now.Sub(p.since) > maxBackoff {
			p.backoff = 0
		}
		p.since, p.failures = now, 0
	}
	if p.failures++; p.failures >= failuresPerMinute {
		p.backoff = min(max(2*p.backoff, 10*time.Second), maxBackoff)
		p.blocked = now.Add(p.backoff)
	}
}

// forget makes room: it drops peers without recent attempts first, then any peer.
func (a *Attempts) forget(now time.Time) {
	for k, p := range a.peers {
		if now.Sub(p.since) > time.Minute && now.After(p.blocked) {
			delete(a.peers, k)
		}
	}
	for k := range a.peers {
		if len(a.peers) < maxPeers*3/4 { // room for many, so that not every attempt has to look for it
			return
		}
		delete(a.peers, k)
	}
}

// Peers returns how many peers are remembered, at most 4,096.
func (a *Attempts) Peers() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.peers)
}
