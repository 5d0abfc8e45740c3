package daemon

import (
	"errors"
	"fmt"
	"os"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/session"
)

// WithSessions runs f with the sessions of the data directory. A session that a
// daemon works on can be read, and not be changed.
func WithSessions(g *Flags, f func(*session.Manager) error) (err error) {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	data, err := p.OpenData()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("the current folder: %w", err)
	}
	m, err := session.OpenManager(session.Config{FS: journal.Root(data), Workspace: dir, Owner: ownerAlone(data), Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	var left error // there is no log to tell of it
	m.SetEnded(func(id string) error {
		err := forgetUndo(data, id)
		left = errors.Join(left, err)
		return err
	})
	b := bus.New(bus.Config{Recorder: m})
	m.Bind(b)
	ctx, cancel := Shortly()
	defer cancel()
	err = f(m)
	if errors.Is(err, journal.ErrLocked) {
		err = fmt.Errorf("%w; a running yaya has this session open", err)
	}
	return errors.Join(err, left, m.Close(ctx), b.Close(ctx))
}
