package chat

import (
	"context"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// follower hands on the events of a session until it is cancelled.
type follower struct {
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// follow follows a session: what comes within a frame is told at once.
func follow(ctx context.Context, api *Client, id string, send func(tea.Msg)) *follower {
	ctx, cancel := context.WithCancel(ctx)
	f := &follower{cancel: cancel}
	var mu sync.Mutex
	var held []Event
	var timer *time.Timer
	flush := func() {
		mu.Lock()
		events := held
		held, timer = nil, nil
		mu.Unlock()
		if ctx.Err() == nil && len(events) > 0 {
			send(happened{id, events})
		}
	}
	f.done.Go(func() {
		err := api.Follow(ctx, id, func(ev Event) {
			mu.Lock()
			defer mu.Unlock()
			held = append(held, ev)
			if timer == nil {
				timer = time.AfterFunc(frame, flush)
			}
		}, func(err error) {
			if ctx.Err() == nil {
				send(linked{id, err})
			}
		})
		mu.Lock()
		if timer != nil {
			timer.Stop()
		}
		mu.Unlock()
		if ctx.Err() == nil && err != nil {
			send(linked{id, err})
		}
	})
	return f
}
