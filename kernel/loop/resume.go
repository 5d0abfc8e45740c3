package loop

import (
	"context"
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/backoff"
	"github.com/yaya-ai/yaya/internal/errnos"
	"github.com/yaya-ai/yaya/kernel/session"
)

// Resume goes on with every session that had a queue when yaya stopped. Call it once the
// model and the strategies are there. It returns why sessions cannot go on; those that a
// failing disk keeps from it are tried again until the loop or ctx ends.
func (l *Loop) Resume(ctx context.Context) error {
	if l.cfg.Sessions == nil {
		return nil
	}
	return l.visit(ctx, l.cfg.Sessions.WithQueue, longestPause)
}

// longestTour is the longest pause between two looks at all tapes.
const longestTour = time.Hour

// Repair ends the turns that a crash has left open, and starts those that it kept from
// starting, like Resume.
func (l *Loop) Repair(ctx context.Context) error {
	if l.cfg.Sessions == nil {
		return nil
	}
	return l.visit(ctx, l.cfg.Sessions.Repair, longestTour)
}

// visit continues the sessions that each finds, and looks again while the disk fails.
func (l *Loop) visit(ctx context.Context, each func(context.Context, func(*session.Session)) error, longest time.Duration) error {
	var mu sync.Mutex
	met := map[string]bool{}
	look := func() (again bool, err error) {
		return parted(each(ctx, func(s *session.Session) {
			mu.Lock()
			known := met[s.ID()]
			met[s.ID()] = true
			mu.Unlock()
			if !known {
				l.Continue(s)
			}
		}))
	}
	again, err := look()
	if !again {
		return err
	}
	l.cfg.Log.Warn().Msg("the disk fails, and not every session can go on yet: trying again")
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return err
	}
	l.work.Go(func() {
		for try := 0; again; try++ {
			select {
			case <-time.After(backoff.Pause(firstPause, longest, try)):
			case <-l.ended:
				return
			case <-ctx.Done():
				return
			}
			again, _ = look() // what cannot go on at all has been said
		}
	})
	return err
}

// ills are the errors of a disk, or of a machine, that may be well again.
var ills = []syscall.Errno{syscall.EIO, errnos.NoSpace, errnos.QuotaUsed, errnos.ReadOnly, syscall.ESTALE, errnos.TooManyFiles, errnos.SystemFiles, errnos.NoMemory}

// parted tells the errors that may pass from those that stay, which it returns.
func parted(err error) (again bool, rest error) {
	all := []error{err}
	if j, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // of errors.Join itself
		all = j.Unwrap()
	}
	for _, e := range all {
		errno, ok := errors.AsType[syscall.Errno](e)
		if ok && slices.Contains(ills, errno) && !hopeless(e) {
			again = true
			continue
		}
		rest = errors.Join(rest, e)
	}
	return again, rest
}
