package sandbox

import (
	"context"
	"sync"
	"time"
)

// pace spreads events: a burst passes at once, later events wait for their turn, one
// after another. It is safe for concurrent use.
type pace struct {
	burst int
	every time.Duration

	mu   sync.Mutex
	next time.Time // when all of the burst can pass again
}

// Paces of one sandbox's proxy. A package manager with 64 connections that asks for each
// of 500 packages notices nothing.
func newStarts() *pace   { return &pace{burst: 512, every: 5 * time.Millisecond} }
func newRefusals() *pace { return &pace{burst: 64, every: 50 * time.Millisecond} }

// wait returns at the turn of an event, or when ctx has ended.
func (p *pace) wait(ctx context.Context) {
	p.mu.Lock()
	if now := time.Now(); p.next.Before(now) {
		p.next = now
	}
	p.next = p.next.Add(p.every)
	in := time.Until(p.next) - time.Duration(p.burst)*p.every
	p.mu.Unlock()
	if in <= 0 {
		return
	}
	turn := time.NewTimer(in)
	defer turn.Stop()
	select {
	case <-turn.C:
	case <-ctx.Done():
	}
}
