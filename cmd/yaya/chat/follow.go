package chat

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// follower delivers the events of a session until it is cancelled.
type follower struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// follow follows a session and delivers the events of one frame together. One goroutine reads
// and one delivers, so that a busy program gets all events in order; both end when the follower
// is cancelled.
func follow(ctx context.Context, api *Client, id string, send func(tea.Msg)) *follower {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{cancel: cancel}
	var mu sync.Mutex
	var held []Event
	wake := make(chan struct{}, 1)
	lost := func(err error) {
		if ctx.Err() == nil {
			send(linked{id, err})
		}
	}
	f.run(send, func() {
		err := api.Follow(ctx, id, "", func(ev Event) {
			mu.Lock()
			held = append(held, ev)
			mu.Unlock()
			select {
			case wake <- struct{}{}:
			default:
			}
		}, lost)
		if err != nil {
			lost(err)
		}
	})
	f.run(send, func() {
		for {
			select {
			case <-wake:
			case <-ctx.Done():
				return
			}
			select {
			case <-time.After(frame):
			case <-ctx.Done():
				return
			}
			mu.Lock()
			events := held
			held = nil
			mu.Unlock()
			if len(events) > 0 {
				send(happened{id, events})
			}
		}
	})
	return f
}

// run starts a goroutine of the follower.
func (f *follower) run(send func(tea.Msg), do func()) {
	f.done.Go(func() { guarded(send, do) })
}
