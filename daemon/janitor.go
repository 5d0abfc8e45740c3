package daemon

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/kernel/config"
)

// tidyEvery is how often the janitor works. It begins an hour after the start, and not
// if the clock was set since: what a wrong clock calls old is gone for good.
const (
	tidyEvery = time.Hour
	maxDrift  = time.Minute
)

// janitor removes what the settings below retention keep no longer.
type janitor struct {
	sweep    func() error // of what a crash has left of deletions
	chores   []chore
	settings *config.Store
	log      zerolog.Logger
}

// chore removes one kind of things from before a time, and returns how many.
type chore struct {
	what string
	key  string // has the days for which they are kept; 0 keeps them
	do   func(ctx context.Context, before time.Time) (int, error)
	rest func() error // what goes even if they are kept; nil for nothing
}

func newJanitor(c *core, v1 *sessions.Service) *janitor {
	tapes := c.kernel.Sessions
	return &janitor{sweep: tapes.Sweep, settings: c.st.at.settings, log: c.st.at.log, chores: []chore{
		{"sessions", "retention.sessions", func(ctx context.Context, before time.Time) (int, error) {
			done, err := v1.Prune(ctx, before, false)
			return len(done), err
		}, nil},
		{"archived sessions", "retention.archives", func(ctx context.Context, before time.Time) (int, error) {
			gone, err := pruneArchives(ctx, tapes, PruneRequest{Before: before}, c.st.audit())
			return len(gone), err
		}, func() error { // tapes of deleted sessions that no fork needs any longer
			_, err := tapes.PruneArchives(time.Time{})
			return err
		}},
		{"artifacts", "retention.artifacts", func(_ context.Context, before time.Time) (int, error) { return tapes.PruneFiles(before) }, nil},
		{"memories", "retention.memory", c.memory.Forget, nil},
	}}
}

// run works until ctx ends.
func (j *janitor) run(ctx context.Context) {
	if err := j.sweep(); err != nil {
		j.log.Warn().Err(err).Msg("files of deleted sessions are still there")
	}
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for last := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		drift := now.Round(0).Sub(last.Round(0)) - now.Sub(last)
		last = now
		if drift.Abs() > maxDrift {
			j.log.Warn().Dur("by", drift).Msg("the clock was set: nothing is removed for its age within the next hour")
			continue
		}
		j.tidy(ctx, now)
	}
}

// tidy removes what is too old now.
func (j *janitor) tidy(ctx context.Context, now time.Time) {
	for _, c := range j.chores {
		days := j.settings.Int(c.key)
		var n int
		var err error
		switch {
		case ctx.Err() != nil:
		case days > 0:
			n, err = c.do(ctx, now.AddDate(0, 0, -days))
		case c.rest != nil:
			err = c.rest()
		}
		if err != nil && ctx.Err() == nil {
			j.log.Warn().Err(err).Msg("not all " + c.what + " that are too old could be removed")
		}
		if n > 0 {
			j.log.Info().Int("count", n).Msg("removed " + c.what + " that were too old")
		}
	}
}
