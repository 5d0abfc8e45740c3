package local

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/yaya-ai/yaya/control"
)

// Put adds an entry that was ordered elsewhere to a replica, and applies it. The entry must follow
// the last one.
//
// The entry need not have reached the disk when Put returns: after a crash, the others still have
// it. See [Log.Sync]. An error that wraps [control.ErrUnavailable] has changed nothing.
func (l *Log) Put(e control.Entry) error {
	l.write.Lock()
	defer l.write.Unlock()
	if l.err != nil {
		return l.err
	}
	if last := l.j.Last(); e.Index != last+1 || !l.o.Replica {
		return fmt.Errorf("entry %d cannot follow entry %d here", e.Index, last)
	}
	raw, err := json.Marshal(record{e.Term, e.Time, e.Event, e.Actor, e.Target, e.Payload})
	if err != nil {
		return err
	}
	if _, err := l.j.Append(raw[1 : len(raw)-1]); err != nil {
		return fmt.Errorf("%w: %w", control.ErrUnavailable, err)
	}
	return l.committed(e)
}

// Sync returns nil once every entry has reached the disk.
func (l *Log) Sync(ctx context.Context) error {
	l.mu.Lock()
	j := l.j
	l.mu.Unlock()
	return j.Sync(ctx, j.Last())
}
