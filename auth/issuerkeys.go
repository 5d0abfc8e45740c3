package auth

import (
	"context"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/internal/backoff"
)

// Pauses after failed fetches of an issuer's keys: the first and the longest; the
// pause doubles in between.
const (
	keysRetry    = time.Second
	keysRetryMax = time.Minute
)

// UnavailableError reports that a token cannot be checked at present, because the
// issuer's keys are unknown.
type UnavailableError struct {
	Issuer string
	Wait   time.Duration // until the next fetch
	Err    error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the keys of %s are unavailable: %v", e.Issuer, e.Err)
}

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Err }

// key returns the issuer's key with that id, or nil. One caller at a time fetches
// keys, and those that need them wait for it; after a failure nobody fetches until a
// pause is over. A known key that is due for renewal stays in use meanwhile. An error
// is an [*UnavailableError].
func (v *Verifier) key(ctx context.Context, kid string) (any, error) {
	for {
		v.mu.Lock()
		now := v.cfg.Now()
		age, key := now.Sub(v.fetched), v.keys[kid]
		switch {
		case v.keys != nil && ((key != nil && age < keysKept) || (key == nil && age < keysAsked)):
			v.mu.Unlock()
			return key, nil
		case now.Before(v.retry) || v.fetching != nil:
			wait, err, fetching := v.retry.Sub(now), v.failed, v.fetching
			v.mu.Unlock()
			if key != nil { // an old key is better than none
				return key, nil
			}
			if fetching == nil {
				return nil, &UnavailableError{v.cfg.Issuer, wait, err}
			}
			select {
			case <-fetching:
			case <-ctx.Done():
				return nil, &UnavailableError{v.cfg.Issuer, keysRetry, ctx.Err()}
			}
			continue
		}
		fetching := make(chan struct{})
		v.fetching = fetching
		v.mu.Unlock()
		keys, err := v.fetch(ctx)
		v.mu.Lock()
		v.ended(ctx, keys, err)
		close(fetching)
		wait, renewed := v.retry.Sub(v.cfg.Now()), v.keys[kid]
		v.mu.Unlock()
		if err != nil && key == nil {
			return nil, &UnavailableError{v.cfg.Issuer, max(wait, keysRetry), err}
		}
		return renewed, nil
	}
}

// ended records the result of a fetch; mu is held.
func (v *Verifier) ended(ctx context.Context, keys map[string]any, err error) {
	v.fetching = nil
	now := v.cfg.Now()
	switch {
	case err == nil:
		v.keys, v.fetched, v.failures, v.retry, v.failed = keys, now, 0, time.Time{}, nil
	case ctx.Err() != nil: // the caller went away: that says nothing about the issuer
	default:
		pause := backoff.Spread(backoff.Pause(keysRetry, keysRetryMax, v.failures), 0.5, 1)
		v.failures++
		v.failed = err
		v.retry = now.Add(pause)
	}
}
