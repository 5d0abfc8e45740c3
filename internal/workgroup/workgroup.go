// Package workgroup owns goroutines that anybody may start until their owner closes.
//
// A [sync.WaitGroup] alone does not: Add may race with Wait, and what begins after the
// wait has no owner. Whether work may begin is decided here under one lock, together with
// counting it: all that has begun is waited for, and nothing begins later.
package workgroup

import (
	"context"
	"sync"
)

// Group counts work. The zero value is open. It is safe for concurrent use.
type Group struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// Begin counts work that [Group.End] ends. It reports false when the group is closed: the
// work must not begin then.
func (g *Group) Begin() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.wg.Add(1)
	return true
}

// End is the end of work that has begun.
func (g *Group) End() { g.wg.Done() }

// Go runs f on a goroutine of the group. It reports false, and does not run f, when the
// group is closed.
func (g *Group) Go(f func()) bool {
	if !g.Begin() {
		return false
	}
	go func() {
		defer g.End()
		f()
	}()
	return true
}

// Shut lets nothing more begin. It does not wait.
func (g *Group) Shut() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
}

// Close lets nothing more begin and waits for what runs.
func (g *Group) Close() {
	g.Shut()
	g.wg.Wait()
}

// CloseWithin is Close, but waits no longer than ctx; it returns the error of ctx when
// something still runs then.
func (g *Group) CloseWithin(ctx context.Context) error {
	g.Shut()
	done := make(chan struct{})
	go func() {
		g.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
