package auth

import (
	"net/netip"
	"sync"
	"time"
)

// The budget for guessing (C.2).
const (
	failuresPerMinute = 10
	maxBackoff        = 5 * time.Minute
	maxPeers          = 4096
	// failuresOverall is for all peers together: who has many addresses does not
	// have many budgets for codes.
	failuresOverall = 200
)

// Attempts is the budget of failed attempts, one for all ways to authenticate
// (R6). Its methods are safe for concurrent use.
type Attempts struct {
	now func() time.Time

	mu    sync.Mutex
	peers map[netip.Prefix]*attempts
	all   attempts
}

type attempts struct {
	failures int
	since    time.Time // of the minute that is counted
	blocked  time.Time // until
	backoff  time.Duration
}

// NewAttempts returns a budget that nobody has used yet.
func NewAttempts(now func() time.Time) *Attempts {
	return &Attempts{now: now, peers: map[netip.Prefix]*attempts{}}
}

// network groups the addresses that one party has: an IPv6 /64 (HT-21).
func network(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 32
	if addr.Is6() {
		bits = 64
	}
	p, err := addr.Prefix(bits)
	if err != nil { // no address: all of those together
		return netip.Prefix{}
	}
	return p
}

// Blocked returns for how long a peer must wait before its next attempt; 0 if it
// need not. guess says that it would be at a secret that is short enough to be
// guessed.
func (a *Attempts) Blocked(addr netip.Addr, guess bool) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	var wait time.Duration
	if guess {
		wait = a.all.blocked.Sub(now)
	}
	if p := a.peers[network(addr)]; p != nil {
		wait = max(wait, p.blocked.Sub(now))
	}
	return max(wait, 0)
}

// Fail counts a failed attempt; guess as in [Attempts.Blocked].
func (a *Attempts) Fail(addr netip.Addr, guess bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	key := network(addr)
	p := a.peers[key]
	if p == nil {
		if len(a.peers) >= maxPeers {
			a.forget(now)
		}
		p = new(attempts)
		a.peers[key] = p
	}
	p.fail(now, failuresPerMinute)
	if guess {
		a.all.fail(now, failuresOverall)
	}
}

func (p *attempts) fail(now time.Time, limit int) {
	if now.Sub(p.since) > time.Minute {
		if now.Sub(p.since) > maxBackoff {
			p.backoff = 0
		}
		p.since, p.failures = now, 0
	}
	if p.failures++; p.failures >= limit {
		p.backoff = min(max(2*p.backoff, 10*time.Second), maxBackoff)
		p.blocked = now.Add(p.backoff)
	}
}

// forget makes room: who has been quiet goes first, then anybody.
func (a *Attempts) forget(now time.Time) {
	for k, p := range a.peers {
		if now.Sub(p.since) > time.Minute && now.After(p.blocked) {
			delete(a.peers, k)
		}
	}
	for k := range a.peers {
		if len(a.peers) < maxPeers*3/4 { // room for many, so that it is not looked for at each
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
