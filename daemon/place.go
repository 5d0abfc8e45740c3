package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/secrets"
	"github.com/yaya-ai/yaya/kernel/config"
)

// place is the first phase: the data directory of a yaya, locked if this process is to be
// the only one that works there, with the settings and the secrets.
type place struct {
	Paths
	flags    *Flags
	data     *os.Root
	settings *config.Store
	secrets  *masked.Secrets // that are shown nowhere
	vault    *secrets.Store  // those that are kept
	log      zerolog.Logger
	metrics  *gateway.Metrics
	logs     *logs    // of a daemon; nil without settings of its own
	lock     *os.File // nil without a lock
	service  supervised
	opened   time.Time

	ending  sync.Once
	endedBy time.Time // until when the phases may end what they began
}

// closeTimeout bounds the time that the phases together wait for what they end. The last
// part of it, writeTime, is the stores' alone; they have that time even if a phase that
// cannot be bounded, such as a plugin that hangs, has used up all of it.
const (
	closeTimeout = 10 * time.Second
	writeTime    = time.Second
)

// closing is the context in which a phase ends its work. The first phase that closes sets
// the deadline of all, so that the process ends in time however many of them have to wait;
// a phase has until that deadline, less the time that is left for the phases before it.
// The stores, for which nothing is left, have writeTime at least.
func (at *place) closing(ctx context.Context, left time.Duration) (context.Context, context.CancelFunc) {
	at.ending.Do(func() { at.endedBy = time.Now().Add(closeTimeout) })
	end := at.endedBy.Add(-left)
	if last := time.Now().Add(writeTime); left == 0 && end.Before(last) {
		end = last
	}
	return context.WithDeadline(context.WithoutCancel(ctx), end)
}

// access says how a place is opened.
type access struct {
	lock     bool              // no other process works there until it is closed
	settings map[string]string // that flags have set
	log      zerolog.Logger
	logs     *logs      // that follow the settings; nil for none
	have     *os.File   // the lock, if this process has it already
	service  supervised // whoever started this process
}

// openPlace opens the folders of p.
func openPlace(g *Flags, p Paths, how access) (_ *place, err error) {
	at := &place{Paths: p, opened: time.Now(), flags: g, secrets: &g.Secrets, log: how.log, logs: how.logs, metrics: gateway.NewMetrics(), service: how.service}
	if err := p.protect(how.log, how.have); err != nil {
		return nil, err
	}
	if how.lock {
		if at.lock, err = p.holdFile(how.have); err != nil {
			return nil, err
		}
	}
	if at.data, at.settings, err = g.Open(p, how.settings); err != nil {
		at.unlock()
		return nil, err
	}
	at.vault = g.Vault
	if at.logs != nil {
		at.logs.apply(at.settings)
	}
	return at, nil
}

// Close closes the folders, and lets others work there.
func (at *place) Close(context.Context) error {
	defer at.unlock()
	return errors.Join(at.data.Close(), at.logs.Close())
}

// unlock lets others work on the data directory, unless a successor has the lock.
func (at *place) unlock() {
	if at.lock != nil {
		_ = at.lock.Close() // nothing is written to it
	}
}

// scratch opens an empty file that nobody else sees and that disappears when it is closed.
func (at *place) scratch() (*os.File, error) {
	name := "scratch_" + rand.Text()
	f, err := at.data.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := at.data.Remove(name); err != nil {
		return nil, errors.Join(fmt.Errorf("data directory: %w", err), f.Close())
	}
	return f, nil
}

// hold makes this process the only one that works on the data directory, until release is
// called.
func (p Paths) hold() (release func(), err error) {
	f, err := p.holdFile(nil)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// holdFile is hold with the file of the lock; have is the lock that the process has already,
// nil for none.
func (p Paths) holdFile(have *os.File) (f *os.File, err error) {
	data, err := p.OpenData()
	if err != nil {
		return nil, err
	}
	if have != nil {
		f, err = relock(data, have)
	} else {
		f, err = lockFile(data)
	}
	return f, errors.Join(err, data.Close()) // the lock has a descriptor of its own
}

// protect takes the data directory away from others, and logs what it found; have is the lock
// that the process has already, nil for none.
func (p Paths) protect(log zerolog.Logger, have *os.File) error {
	open := p.openData
	if have != nil {
		open = func() (*os.Root, []string, error) {
			return p.openDataAs(func(data *os.Root) ([]string, error) { return currentHeld(data, have) })
		}
	}
	data, notes, err := open()
	if err != nil {
		return err
	}
	for _, note := range notes {
		log.Warn().Msg(note)
	}
	return data.Close()
}
