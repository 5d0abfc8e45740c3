package jetstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/yaya-ai/yaya/control"
)

// apply applies the next entry, and ignores one that was applied; applying is held.
func (l *Log) apply(s stored) error {
	if l.err != nil {
		return l.err
	}
	last, _ := l.applied()
	if s.seq <= last {
		return nil
	}
	r, err := s.decode()
	switch {
	case err != nil:
	case s.seq != last+1:
		err = fmt.Errorf("control log: entry %d is missing", last+1)
	case r.Before != l.sum:
		err = &RefusedError{l.o.Stream, fmt.Sprintf("entry %d does not follow the entry before, as this node has seen it: the log was changed", s.seq)}
	default:
		if err = l.o.Copy.Put(r.entry(s.seq)); errors.Is(err, control.ErrUnavailable) {
			return err
		}
	}
	if err != nil {
		l.fail(err)
		return err
	}
	l.sum, l.writer = sumOf(s.raw), r.Run
	if r.ID == l.proposed {
		l.taken = s.seq
	}
	return nil
}

// applied returns the index and the term of the last entry that is applied.
func (l *Log) applied() (index, term int64) {
	s := l.o.Copy.State()
	return s.Last, s.Term
}

// announced hears that the stream has another entry. During an append it is most likely that one,
// which need not be read: see caughtUp.
func (l *Log) announced(m *nats.Msg) {
	if seq, err := strconv.ParseInt(m.Header.Get(js.SequenceHeader), 10, 64); err == nil {
		l.newest.Store(seq)
	}
	if !l.appending.Load() {
		l.caughtUp()
	}
}

// caughtUp has entries read that were announced and are not applied.
func (l *Log) caughtUp() {
	if last, _ := l.applied(); last < l.newest.Load() {
		l.tell()
	}
}

// tell has keepUp read.
func (l *Log) tell() {
	select {
	case l.told <- struct{}{}:
	default: // it will read anyway
	}
}

// keepUp applies the entries of others as they come.
func (l *Log) keepUp() {
	for {
		select {
		case <-l.told:
		case <-l.ctx.Done():
			return
		}
		if err := l.catchUp(l.ctx, 0); err != nil && l.ctx.Err() == nil {
			l.o.Log.Debug().Err(err).Msg("the control log cannot be kept up now")
		}
	}
}

// catchUp applies what the stream has, and at least up to an entry, or until ctx ends.
func (l *Log) catchUp(ctx context.Context, least int64) error {
	if !l.known() {
		return errors.New("the stream has not been reached yet")
	}
	for {
		last, _ := l.applied()
		if least > 0 && last >= least {
			return nil
		}
		err := l.read(ctx, last+1, 0, func(s stored) error {
			l.applying.Lock()
			defer l.applying.Unlock()
			return l.apply(s)
		})
		if last, _ = l.applied(); last >= least {
			return err
		}
		if err := l.failed(); err != nil {
			return err
		}
		select {
		case <-time.After(behind):
		case <-ctx.Done():
			return cmp.Or(err, ctx.Err())
		case <-l.ctx.Done():
			return errors.New("it is closed")
		}
	}
}

// known reports whether the copy is known to be a part of the stream.
func (l *Log) known() bool {
	l.applying.Lock()
	defer l.applying.Unlock()
	return l.met
}

// fail ends the log for good; applying is held.
func (l *Log) fail(err error) {
	if l.err != nil {
		return
	}
	l.err = err
	l.mu.Lock()
	l.broken = true
	l.mu.Unlock()
	l.o.Log.Error().Err(err).Msg("the control log cannot go on")
}

func (l *Log) failed() error {
	l.applying.Lock()
	defer l.applying.Unlock()
	return l.err
}
