package upstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/internal/errnos"
	"github.com/yaya-ai/yaya/internal/worded"
)

// breaker is the circuit breaker for a server that does not answer. After breakAfter
// consecutive failures it opens for a while; then it lets one call through to test the server.
type breaker struct {
	mu       sync.Mutex
	failures int
	until    time.Time
	trying   bool
}

const (
	breakAfter = 5
	breakFirst = 5 * time.Second
	breakMax   = time.Minute
)

// openError says that a call was not made because the breaker is open.
type openError struct {
	failures int
	wait     time.Duration
}

func (e *openError) Error() string {
	if e.failures == 0 {
		return fmt.Sprintf("yaya did not send the call: the server accepts no requests for another %v", e.wait.Round(time.Second))
	}
	return fmt.Sprintf("yaya did not send the call: the server did not answer its last %s; yaya retries in %v", worded.Count(e.failures, "call", "calls"), e.wait.Round(100*time.Millisecond))
}

// allow reports why a call must not be made now.
func (b *breaker) allow() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.until.IsZero() {
		return nil
	}
	if wait := time.Until(b.until); wait > 0 || b.trying {
		return &openError{b.failures, max(wait, 0)}
	}
	b.trying = true
	return nil
}

// record handles the end of an allowed call: whether the server answered, and how long it wants
// no requests.
func (b *breaker) record(answered bool, after time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
	switch {
	case after > 0:
		b.until = time.Now().Add(after)
	case answered:
		b.failures, b.until = 0, time.Time{}
	default:
		if b.failures++; b.failures >= breakAfter {
			b.until = time.Now().Add(min(breakFirst<<min(b.failures-breakAfter, 8), breakMax))
		}
	}
}

// release ends a call that tells nothing about the server: its caller went away, or one of our
// limits refused it.
func (b *breaker) release() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trying = false
}

// settle tells the breaker how a call ended.
func (b *breaker) settle(ctx context.Context, err error) {
	if err == nil {
		b.record(true, 0)
		return
	}
	refused, _ := errors.AsType[*statusError](err)
	_, login := errors.AsType[patient](err)
	_, busy := errors.AsType[*busyError](err)
	_, odd := errors.AsType[*oddError](err)
	switch {
	case refused != nil && refused.after > 0:
		b.record(false, refused.after)
	case refused != nil && refused.code/100 == 4: // an answer, if no good one
		b.record(true, 0)
	case login && refused == nil: // the call waited for a person
		b.release()
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errCallTimeout):
		b.release()
	case errors.Is(err, feature.ErrNotSent): // the supervisor handles that
		b.release()
	case busy, errors.Is(err, errNoRoom), errors.Is(err, errNoCaller), shortage(err): // our own limits, not the server's fault
		b.release()
	case odd, errors.Is(err, errTooLarge): // an answer, if no good one
		b.record(true, 0)
	default:
		b.record(false, 0)
	}
}

// shortage reports whether this machine or process ran out of something: that says nothing about
// the server.
func shortage(err error) bool {
	for _, e := range []error{errnos.TooManyFiles, errnos.SystemFiles, errnos.NoMemory, syscall.ENOBUFS, errnos.NoSpace, errnos.QuotaUsed, syscall.EAGAIN} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
