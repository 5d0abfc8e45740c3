package control

import "context"

// Follow is [Log.Follow] for a log that has Read: newest returns the index of its last
// entry, and a channel that is closed when there is another one.
func Follow(ctx context.Context, from int64, read func(int64, func(Entry) error) error, visit func(Entry) error, newest func() (int64, <-chan struct{})) error {
	for {
		last, changed := newest()
		if from <= last {
			err := read(from, func(e Entry) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				from = e.Index + 1
				return visit(e)
			})
			if err != nil {
				return err
			}
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
