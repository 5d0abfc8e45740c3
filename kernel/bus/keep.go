package bus

import (
	"errors"
	"sync"

	"github.com/yaya-ai/yaya/internal/workgroup"
)

// Keep subscribes, and subscribes again when the subscription has ended because it fell behind:
// for readers that would rather miss events than be gone. stop ends it, and waits for nothing
// that the handler does.
func Keep(b *Bus, opts SubscribeOptions, kinds []string, h Handler) (stop func(), err error) {
	var again workgroup.Group
	var mu sync.Mutex
	var sub *Subscription
	attach := func() error {
		next, err := b.Subscribe(opts, kinds, h)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		sub = next
		return nil
	}
	opts.OnEnd = func(err error) { // it may run on a publisher's goroutine, and must not subscribe there
		if errors.Is(err, ErrLagging) {
			again.Go(func() { _ = attach() }) // it fails only for kinds that are unknown, and these were known
		}
	}
	if err := attach(); err != nil {
		return nil, err
	}
	return func() {
		again.Close()
		mu.Lock()
		defer mu.Unlock()
		sub.Close()
	}, nil
}
