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
	key  string // has the days for which they are kept; 0 keeps them, and "" is for chores without an age
	do   func(ctx context.Context, before time.Time) (int, error)
}

func newJanitor(c *core, v1 *sessions.Service) *janitor {
	tapes := c.kernel.Sessions
	return &janitor{sweep: tapes.Sweep, settings: c.st.at.settings, log: c.st.at.log, chores: []chore{
		{"sessions", "retention.sessions", func(ctx context.Context, before time.Time) (int, error) {
			done, err := v1.Prune(ctx, before, false)
			return len(done), err
		}},
		{"archived sessions", "retention.archives", func(ctx context.Context, before time.Time) (int, error) {
			gone, err := pruneArchives(ctx, tapes, PruneRequest{Before: before}, c.st.audit())
			return len(gone), err
		}},
		{"tapes of deleted sessions", "", func(context.Context, time.Time) (int, error) {
			return tapes.PruneArchives(time.Time{}) // those that no fork needs any more
		}},
		{"artifacts", "retention.artifacts", func(_ context.Context, before time.Time) (int, error) { return tapes.PruneFiles(before) }},
		{"memories", "retention.memory", c.memory.Forget},
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
		days := 0
		if c.key != "" {
			days = j.settings.Int(c.key)
		}
		if c.key != "" && days <= 0 || ctx.Err() != nil {
			continue
		}
		n, err := c.do(ctx, now.AddDate(0, 0, -days))
		if err != nil && ctx.Err() == nil {
			j.log.Warn().Err(err).Msg("not all " + c.what + " that are too old could be removed")
		}
		if n > 0 {
			why := " that were too old"
			if c.key == "" {
				why = " that nothing needs any more"
			}
			j.log.Info().Int("count", n).Msg("removed " + c.what + why)
		}
	}
}
