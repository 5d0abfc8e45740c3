package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/internal/backoff"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// CompactOptions say when and how a history is shortened; zero values are the
// defaults.
type CompactOptions struct {
	Threshold int           // tokens above which to compact; default 0: whatever the length
	Target    int           // tokens after compaction; default 10,000
	Summary   int           // tokens of them for the summary; default half
	Tries     int           // attempts at a summary; default 3
	Backoff   time.Duration // between attempts, doubling; default 1 s
}

// longestPause is between two attempts at a summary.
const longestPause = time.Minute

// ErrNoGain means that a summary is as long as what it would replace.
var ErrNoGain = errors.New("the summary is as long as what it sums up")

// Summarise asks a model to sum up a conversation in at most that many tokens.
type Summarise func(ctx context.Context, old []event.Message, tokens int) (Summary, error)

// Summary is a text that takes the place of a history, with what it took: calls that failed before
// are included.
type Summary struct {
	Text    string
	Usage   event.Usage
	CostUSD float64 // as far as prices are known
}

// Compact replaces the older part of the history by a summary, if it has grown past
// the threshold. The rest of the target is for unchanged recent messages; what the user
// asked in the running turn and instructions stay in any case. It may cut within a turn.
// Entries stay on the tape. If it fails, the history does not change.
func (s *Session) Compact(ctx context.Context, o CompactOptions, summarise Summarise) (done bool, err error) {
	o.Target, o.Tries, o.Backoff = cmp.Or(o.Target, 10_000), cmp.Or(o.Tries, 3), cmp.Or(o.Backoff, time.Second)
	o.Summary = cmp.Or(o.Summary, o.Target/2)
	s.mu.Lock()
	if err := s.load(); err != nil {
		s.mu.Unlock()
		return false, err
	}
	before, epoch := s.st.Tokens(), s.st.epoch
	var old []event.Message
	c := Compaction{Kind: "compaction", TokensBefore: before}
	if before >= o.Threshold {
		old, c.Kept, c.KeepFrom = s.st.Split(o.Target - o.Summary)
	}
	s.mu.Unlock()
	if old == nil {
		return false, nil
	}
	s.m.publish(func(e *bus.Emitter) error {
		_, err := bus.Publish(e, event.SessionCompactionStarted, event.KernelSession, event.CompactionStarted{TargetSessionID: s.id, TokensBefore: before})
		return err
	})
	after, err := s.compact(ctx, o, summarise, old, epoch, c)
	if err != nil {
		s.m.publish(func(e *bus.Emitter) error {
			_, err := bus.Publish(e, event.SessionCompactionFailed, event.KernelSession, event.CompactionFailed{TargetSessionID: s.id, Error: err.Error()})
			return err
		})
		return false, err
	}
	s.m.publish(func(e *bus.Emitter) error {
		_, err := bus.Publish(e, event.SessionCompactionCompleted, event.KernelSession, event.CompactionCompleted{TargetSessionID: s.id, TokensBefore: before, TokensAfter: after, How: event.Summarized})
		return err
	})
	return true, nil
}

// Shorten shortens long results of tools in the model's view, so as to free about that many
// tokens: with all, those of the last calls too. It reports whether it has changed the view.
// Without all it changes nothing if it could not free as much. Entries stay on the tape.
func (s *Session) Shorten(free int, all bool) (bool, error) {
	s.mu.Lock()
	if err := s.load(); err != nil {
		s.mu.Unlock()
		return false, err
	}
	c, ok := s.st.shorten(free, all)
	epoch := s.st.epoch
	s.mu.Unlock()
	if !ok {
		return false, nil
	}
	if _, err := s.handoff(epoch, "shrink", c); err != nil {
		return false, fmt.Errorf("shorten results of session %s: %w", s.id, err)
	}
	s.m.publish(func(e *bus.Emitter) error {
		_, err := bus.Publish(e, event.SessionCompactionCompleted, event.KernelSession, event.CompactionCompleted{TargetSessionID: s.id, TokensBefore: c.TokensBefore, TokensAfter: c.TokensAfter, How: event.Shortened})
		return err
	})
	return true, nil
}

func (s *Session) compact(ctx context.Context, o CompactOptions, summarise Summarise, old []event.Message, epoch string, c Compaction) (after int, err error) {
	var errs []error
	for try := range o.Tries {
		if try > 0 {
			select {
			case <-time.After(backoff.Pause(o.Backoff, longestPause, try-1)):
			case <-ctx.Done():
				return 0, errors.Join(append(errs, ctx.Err())...)
			}
		}
		var made Summary
		made, err = summarise(ctx, old, o.Summary)
		c.Summary, c.Usage, c.CostUSD = made.Text, made.Usage, made.CostUSD
		if err == nil && c.Summary == "" {
			err = errors.New("the summary is empty")
		}
		if err == nil {
			break
		}
		if n := len(errs); n == 0 || errs[n-1].Error() != err.Error() { // once is enough for who reads it
			errs = append(errs, err)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("compaction of session %s: %w", s.id, errors.Join(errs...))
	}
	s.mu.Lock()
	if err = s.load(); err == nil {
		// Messages that have arrived meanwhile count, too.
		view := s.st.Projection
		c.TokensBefore = view.Tokens()
		at := c
		if at.KeepFrom == 0 {
			at.KeepFrom = s.j.Last() + 1
		}
		view.compact(at)
		c.TokensAfter = view.Tokens()
	}
	s.mu.Unlock()
	if err == nil && c.TokensAfter >= c.TokensBefore {
		err = ErrNoGain
	}
	if err == nil {
		_, err = s.handoff(epoch, "compaction", c)
	}
	if err != nil {
		return 0, fmt.Errorf("compaction of session %s: %w", s.id, err)
	}
	return c.TokensAfter, nil
}
