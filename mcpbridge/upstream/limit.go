package upstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/internal/callctx"
)

// errCallTimeout is wrapped by every error of an expired limit.
var errCallTimeout = errors.New("the call exceeded its time limit")

// expiredError tells which limit ended a call, and where it is set.
type expiredError struct {
	after   time.Duration
	total   time.Duration // since the call began, without pauses
	setting string
	whole   bool // the limit of the whole call
}

func (e *expiredError) Error() string {
	switch {
	case e.whole:
		return fmt.Sprintf("did not finish within %v, although it reported progress; raise or remove %s if it needs longer", e.after, e.setting)
	case e.total > e.after:
		return fmt.Sprintf("reported no progress for %v, after %v in total; raise %s if it needs longer", e.after, e.total.Round(time.Millisecond), e.setting)
	}
	return fmt.Sprintf("did not answer within %v; raise %s if it needs longer", e.after, e.setting)
}

func (e *expiredError) Unwrap() error { return errCallTimeout }

// times holds the limits of a call: the time without a sign of life, and the total time, which
// is unlimited if it is 0.
type times struct {
	silent, whole               time.Duration
	silentSetting, wholeSetting string
	alarms                      *callctx.Alarms // nil for alarms of its own
}

// times returns the limits of a call to the server.
func (p *Provider) times() times {
	t := times{silent: cmp.Or(p.cfg.Server.CallTimeout, callTimeout), whole: p.cfg.Server.CallMax, silentSetting: "tool_timeout_sec in its configuration", wholeSetting: "tool_max_sec in its configuration", alarms: &p.alarms}
	if t.whole == 0 {
		t.whole, t.wholeSetting = time.Duration(p.limits().Seconds)*time.Second, "the setting servers.tool_max_sec"
	}
	return t
}

// limit is the time limit of a call, and the context that ends with it; the cause is an
// [expiredError]. Its clock stands still while a person has to answer, or while another server
// is asked for authorization.
type limit struct {
	callctx.Context
	times

	mu     sync.Mutex
	begun  time.Time // moved by all pauses
	seen   time.Time // the last sign of life
	due    time.Time
	alarm  callctx.Alarm // set for due, or for an earlier time
	missed bool          // it rang during a pause
	paused int
	since  time.Time // begin of the pause
}

func newLimit(ctx context.Context, t times) *limit {
	l := new(limit)
	l.start(ctx, t)
	return l
}

func (l *limit) start(ctx context.Context, t times) {
	if t.alarms == nil {
		t.alarms = new(callctx.Alarms)
	}
	now := time.Now()
	l.times, l.begun, l.seen = t, now, now
	l.Begin(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run(now)
	l.alarms.Set(&l.alarm, l.due, l)
}

// run makes the next limit due; the caller holds mu.
func (l *limit) run(now time.Time) {
	l.due = now.Add(l.silent)
	if l.whole > 0 && l.begun.Add(l.whole).Before(l.due) {
		l.due = l.begun.Add(l.whole)
	}
}

// Ring implements [callctx.Ringer].
func (l *limit) Ring() {
	if e := l.over(); e != nil {
		l.Cancel(e)
	}
}

// over returns the limit that is exceeded, if one is; otherwise the alarm rings again when it
// has to.
func (l *limit) over() *expiredError {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	switch {
	case l.paused > 0:
		l.missed = true
		return nil
	case now.Before(l.due): // it has moved
		l.alarms.Set(&l.alarm, l.due, l)
		return nil
	}
	e := &expiredError{after: l.silent, setting: l.silentSetting}
	if !l.seen.Equal(l.begun) {
		e.total = now.Sub(l.begun)
	}
	if l.whole > 0 && now.Sub(l.begun) >= l.whole {
		e.whole, e.after, e.setting = true, l.whole, l.wholeSetting
	}
	return e
}

type limitKey struct{}

// Value implements [context.Context]: code that has the context can stop the clock.
func (l *limit) Value(key any) any {
	if key == (limitKey{}) {
		return l
	}
	return l.Context.Value(key)
}

// limits visits the limits that a context belongs to, innermost first: the limit for opening a
// session is inside the limit of the call that needs it.
func limits(ctx context.Context, visit func(*limit)) {
	for l, ok := ctx.Value(limitKey{}).(*limit); ok; l, ok = l.Context.Value(limitKey{}).(*limit) {
		visit(l)
	}
}

// extend restarts the time without a sign of life, within the total.
func (l *limit) extend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = time.Now()
	if l.paused == 0 {
		l.run(l.seen)
	}
}

// pause stops the clock until resume has been called equally often.
func (l *limit) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused++; l.paused == 1 {
		l.since = time.Now()
	}
}

func (l *limit) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused--; l.paused == 0 {
		now := time.Now()
		stood := now.Sub(l.since)
		l.begun, l.seen = l.begun.Add(stood), l.seen.Add(stood)
		if l.run(now); l.missed {
			l.missed = false
			l.alarms.Set(&l.alarm, l.due, l)
		}
	}
}

func (l *limit) stop() {
	l.mu.Lock()
	l.paused++ // nothing starts the clock again
	l.missed = false
	l.alarm.Stop()
	l.mu.Unlock()
	l.Cancel(nil)
}

// expired returns the limit that ended a call, or nil if the call ended for another reason.
func (l *limit) expired() *expiredError {
	e, _ := errors.AsType[*expiredError](context.Cause(l))
	return e
}
