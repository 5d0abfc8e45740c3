package upstream

import (
	"context"
	"sync"
	"time"
)

// limit is the time limit of a call: so much without a sign of life, and maxCall
// in all. While a person is asked something, or another server for authorization,
// neither runs. It is the context that ends with the time.
type limit struct {
	context.Context

	cancel context.CancelCauseFunc
	per    time.Duration

	mu     sync.Mutex
	end    time.Time
	timer  *time.Timer
	paused int
	since  time.Time // of the pause
}

func newLimit(ctx context.Context, per time.Duration) *limit {
	l := &limit{per: per, end: time.Now().Add(max(maxCall, per))}
	l.Context, l.cancel = context.WithCancelCause(ctx)
	l.timer = time.AfterFunc(per, func() { l.cancel(errCallTimeout) })
	return l
}

type limitKey struct{}

// Value implements [context.Context]: whoever has the context can stop the clock.
func (l *limit) Value(key any) any {
	if key == (limitKey{}) {
		return l
	}
	return l.Context.Value(key)
}

// limits visits the limits that a context belongs to, the innermost first: that of
// a session that is being opened is within that of the call that needs it.
func limits(ctx context.Context, visit func(*limit)) {
	for l, ok := ctx.Value(limitKey{}).(*limit); ok; l, ok = l.Context.Value(limitKey{}).(*limit) {
		visit(l)
	}
}

// extend starts the time without a sign of life anew, within the whole.
func (l *limit) extend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused == 0 && l.timer.Stop() {
		l.timer.Reset(min(l.per, time.Until(l.end)))
	}
}

// pause stops the clock until resume has been called as often.
func (l *limit) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused++; l.paused == 1 {
		l.timer.Stop()
		l.since = time.Now()
	}
}

func (l *limit) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused--; l.paused == 0 {
		l.end = l.end.Add(time.Since(l.since))
		l.timer.Reset(min(l.per, time.Until(l.end)))
	}
}

func (l *limit) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused++ // nothing starts the clock again
	l.timer.Stop()
	l.cancel(nil)
}
