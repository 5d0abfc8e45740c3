package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// CompactOptions say when and how a history is shortened; zero values are the
// defaults.
type CompactOptions struct {
	Threshold int           // tokens from which on to compact; default 50,000
	Target    int           // tokens to come down to; default 10,000
	Tries     int           // attempts at a summary; default 3
	Backoff   time.Duration // between attempts, doubling; default 1 s
}

// Summarise asks a model to sum up a conversation in at most that many tokens.
type Summarise func(ctx context.Context, old []event.Message, tokens int) (string, error)

// Compact replaces the older part of the history by a summary, if it has grown
// past the threshold: half of the target is for the summary, the rest for recent
// messages as they are. Entries stay on the tape. When it fails, the history is
// as it was.
func (s *Session) Compact(ctx context.Context, o CompactOptions, summarise Summarise) (done bool, err error) {
	o.Threshold, o.Target, o.Tries = cmp.Or(o.Threshold, 50_000), cmp.Or(o.Target, 10_000), cmp.Or(o.Tries, 3)
	o.Backoff = cmp.Or(o.Backoff, time.Second)
	s.mu.Lock()
	if err := s.load(); err != nil {
		s.mu.Unlock()
		return false, err
	}
	before := s.st.Tokens()
	var old []event.Message
	var keepFrom int64
	if before >= o.Threshold {
		old, keepFrom = s.st.Split(o.Target / 2)
	}
	s.mu.Unlock()
	if old == nil {
		return false, nil
	}
	s.m.publish(func(e *bus.Emitter) error {
		_, err := bus.Publish(e, event.SessionCompactionStarted, event.KernelSession, event.CompactionStarted{TargetSessionID: s.id, TokensBefore: before})
		return err
	})
	after, err := s.compact(ctx, o, summarise, old, Compaction{Kind: "compaction", KeepFrom: keepFrom, TokensBefore: before})
	if err != nil {
		s.m.publish(func(e *bus.Emitter) error {
			_, err := bus.Publish(e, event.SessionCompactionFailed, event.KernelSession, event.CompactionFailed{TargetSessionID: s.id, Error: err.Error()})
			return err
		})
		return false, err
	}
	s.m.publish(func(e *bus.Emitter) error {
		_, err := bus.Publish(e, event.SessionCompactionCompleted, event.KernelSession, event.CompactionCompleted{TargetSessionID: s.id, TokensBefore: before, TokensAfter: after})
		return err
	})
	return true, nil
}

func (s *Session) compact(ctx context.Context, o CompactOptions, summarise Summarise, old []event.Message, c Compaction) (after int, err error) {
	var errs []error
	for try := range o.Tries {
		if try > 0 {
			select {
			case <-time.After(o.Backoff << (try - 1)):
			case <-ctx.Done():
				return 0, errors.Join(append(errs, ctx.Err())...)
			}
		}
		c.Summary, err = summarise(ctx, old, o.Target/2)
		if err == nil && c.Summary == "" {
			err = errors.New("the summary is empty")
		}
		if err == nil {
			break
		}
		errs = append(errs, err)
	}
	if err != nil {
		return 0, fmt.Errorf("compaction of session %s: %w", s.id, errors.Join(errs...))
	}
	gone := 0
	for _, m := range old {
		gone += size(m)
	}
	c.TokensAfter = c.TokensBefore - (gone-len(c.Summary))/4
	if _, err := s.Handoff("compaction", c); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.st.Tokens(), nil
}
