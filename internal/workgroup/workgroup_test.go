package workgroup

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Close waits for functions that have begun, and lets no other begin.
func TestClose(t *testing.T) {
	for name, begin := range map[string]func(*Group, func()) bool{
		"Go": (*Group).Go,
		"Begin and End": func(g *Group, f func()) bool {
			if !g.Begin() {
				return false
			}
			go func() {
				defer g.End()
				f()
			}()
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g Group
				ended := false
				if !begin(&g, func() { time.Sleep(time.Minute); ended = true }) {
					t.Fatal("nothing may begin in a group that is open")
				}
				g.Close()
				if !ended {
					t.Error("Close returned before the work had ended")
				}
				ran := false
				if begin(&g, func() { ran = true }) {
					t.Error("work may begin in a group that is closed")
				}
				if synctest.Wait(); ran {
					t.Error("work that must not begin ran")
				}
				g.Close() // again
			})
		})
	}
}

// CloseWithin gives up with its context; the work goes on, and Close waits for it.
func TestCloseWithin(t *testing.T) {
	for name, c := range map[string]struct {
		lasts, patience time.Duration
		want            error
	}{
		"it ends in time": {time.Second, time.Minute, nil},
		"it does not":     {time.Minute, time.Second, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g Group
				g.Go(func() { time.Sleep(c.lasts) })
				ctx, cancel := context.WithTimeout(t.Context(), c.patience)
				defer cancel()
				begun := time.Now()
				if err := g.CloseWithin(ctx); !errors.Is(err, c.want) || time.Since(begun) != min(c.lasts, c.patience) {
					t.Errorf("CloseWithin = %v after %v, want %v after %v", err, time.Since(begun), c.want, min(c.lasts, c.patience))
				}
				if g.Begin() {
					t.Error("work may begin after CloseWithin")
				}
				if g.Close(); time.Since(begun) != c.lasts {
					t.Errorf("Close returned after %v, want %v", time.Since(begun), c.lasts)
				}
			})
		})
	}
}

// Close while many begin: none of them runs when it has returned.
func TestCloseAmongBeginners(t *testing.T) {
	for range 50 {
		var g Group
		var running atomic.Int64
		var starters sync.WaitGroup
		for range 8 {
			starters.Go(func() {
				for g.Go(func() { running.Add(1); running.Add(-1) }) {
				}
			})
		}
		g.Close()
		if n := running.Load(); n != 0 {
			t.Fatalf("%d are running after Close, want none", n)
		}
		starters.Wait()
	}
}
