package feature

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/internal/worded"
)

// lateError reports that a start, or the first list after it, took too long.
type lateError struct {
	after time.Duration // since it began
	idle  time.Duration // of that without progress, 0 if that did not count
}

func (e *lateError) Error() string {
	if e.idle > 0 && e.idle < e.after {
		return fmt.Sprintf("not ready after %v, and it did nothing for the last %v", e.after.Round(time.Second), e.idle)
	}
	return fmt.Sprintf("not ready within %v", e.after.Round(time.Millisecond))
}

func (e *lateError) Unwrap() error { return context.DeadlineExceeded }

// late adds to an error that a start ran into its limit, in the user's terms.
func late(ctx context.Context, err error) error {
	e, ok := errors.AsType[*lateError](context.Cause(ctx))
	if !ok {
		return err
	}
	text, said := e.Error(), err.Error()
	for _, raw := range []error{context.DeadlineExceeded, context.Canceled} { // text says it better
		said = strings.TrimSuffix(strings.TrimSuffix(said, raw.Error()), ": ")
	}
	if said != "" {
		text += ": " + said
	}
	return worded.Error(errors.Join(e, err), "%s", text)
}

// within returns the context of a start with a fixed limit.
func within(whole context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(whole, limit, &lateError{after: limit})
}

// whileWorking returns the context of a start without a configured limit: it ends when
// the provider has done nothing for [startTimeout], or after [startMax].
func (s *supervisor) whileWorking(whole context.Context) (context.Context, context.CancelFunc) {
	w, ok := s.p.(Worker)
	if !ok {
		return within(whole, startTimeout)
	}
	ctx, cancel := context.WithCancelCause(whole)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		look := time.NewTicker(workLook)
		defer look.Stop()
		begun := time.Now()
		moved, worked := begun, w.Worked()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			now := time.Now()
			if n := w.Worked(); n < worked || n >= worked+workLeast {
				moved, worked = now, n
			}
			switch idle := now.Sub(moved); {
			case idle >= startTimeout:
				cancel(&lateError{now.Sub(begun), idle})
			case now.Sub(begun) >= startMax:
				cancel(&lateError{after: now.Sub(begun)})
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
	}
}
