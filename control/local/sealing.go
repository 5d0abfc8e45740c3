package local

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// sealer seals a [Log]. The log's write lock guards all fields.
type sealer struct {
	key     ed25519.PrivateKey
	fs      journal.FS
	from    int64 // of the first seal, 0 when there is one
	resumed bool  // there was no head file
	started bool  // the seal of this start exists
	closed  bool
	open    int // entries that are not sealed
	seals   sealState
	last    last
	behind  *head // a head that could not be written yet

	wake chan struct{} // an entry waits for its seal
	stop context.CancelFunc
	done chan struct{}
}

// newSealer continues the seals of a log whose records were visited. It creates a
// missing key; the caller has checked that none may exist.
func newSealer(o *SealOptions, c *chain, key ed25519.PrivateKey) (*sealer, error) {
	s := &sealer{key: key, fs: o.fs(), resumed: c.headMissing(), seals: c.seals, wake: make(chan struct{}, 1), done: make(chan struct{})}
	switch {
	case c.seals.Count == 0:
		s.from = c.last + 1
	case c.head == nil && !s.resumed: // a crash came between the first seal and its head file
		s.behind = newHead(key, c.seals.Newest.Entry, c.seals.Newest.Sum)
	}
	if key == nil {
		var err error
		if s.key, err = makeSealKey(o.Keys); err != nil {
			return nil, fmt.Errorf("key that seals the audit: %w", err)
		}
	}
	s.last = last{fs: o.fs(), key: s.key}
	return s, nil
}

func newHead(key ed25519.PrivateKey, entry int64, sum string) *head {
	h := &head{Entry: entry, Sum: sum}
	h.Signature = ed25519.Sign(key, h.message())
	return h
}

// seal appends a seal and names it in the head file; write is held. It appends none
// while the head file of the previous seal cannot be written.
func (l *Log) seal(at string) error {
	if err := l.recover(); err != nil {
		return err
	}
	if err := l.writeHead(); err != nil {
		return err
	}
	s := l.sealer
	p := seal{At: at, From: s.from, Resumed: s.resumed}
	p.Through, p.Head = l.j.Head()
	e := control.Entry{Term: l.term, Time: l.now(), Event: control.SealEvent, Actor: l.o.Node, Target: "log"}
	p.Signature = ed25519.Sign(s.key, p.message(e))
	var err error
	if e.Payload, err = json.Marshal(p); err != nil {
		return err
	}
	if e, err = l.commit(e); err != nil {
		return err
	}
	s.from, s.resumed, s.open = 0, false, 0
	entry, sum := l.j.Head()
	s.seals.add(p, e, sum)
	s.behind = newHead(s.key, entry, sum)
	if err := l.writeHead(); err != nil {
		return err
	}
	if err := s.last.empty(); err != nil {
		return fmt.Errorf("keys/%s: %w", LastFile, err)
	}
	if at != atStop {
		l.compactWhenDue()
	}
	return nil
}

// writeHead writes the head file that is due; write is held. The log reaches the
// disk first: a head file can lag behind it, but is never ahead.
func (l *Log) writeHead() error {
	if l.sealer.behind == nil {
		return nil
	}
	if err := writeHead(l.sealer.fs, *l.sealer.behind); err != nil {
		return fmt.Errorf("head file keys/%s: %w", HeadFile, err)
	}
	l.sealer.behind = nil
	return nil
}

// sealStart writes the seal of this start, unless it exists; write is held.
func (l *Log) sealStart() error {
	if l.sealer == nil || l.sealer.started {
		return nil
	}
	before := l.j.Last()
	err := l.seal(atStart)
	if err != nil && l.j.Last() > before && l.j.Err() == nil { // only the head file lags behind
		l.sealFailed(err)
		err = nil
	}
	l.sealer.started = err == nil
	return err
}

// sealSoon counts an unsealed entry; write is held.
func (l *Log) sealSoon() {
	s := l.sealer
	if s == nil {
		return
	}
	if err := s.last.wrote(l.j.Head()); err != nil {
		l.o.Log.Error().Err(err).Msg("keys/" + LastFile + " could not be written: until the next seal nobody can tell whether this entry was cut off")
	}
	if s.open++; s.open >= sealEvery {
		err := l.seal("")
		if err == nil {
			return
		}
		l.sealFailed(err)
	}
	s.due()
}

// due schedules a seal within a minute.
func (s *sealer) due() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (l *Log) sealFailed(err error) {
	l.o.Log.Error().Err(err).Msg("the audit could not be sealed; trying again within a minute")
	l.sealer.due()
}

// keepSealed seals new entries within a minute, until ctx ends.
func (l *Log) keepSealed(ctx context.Context) {
	defer close(l.sealer.done)
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.sealer.wake:
		}
		t := time.NewTimer(sealAfter)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
			l.sealOpen()
		}
	}
}

// sealOpen seals unsealed entries, and schedules a retry after a failure.
func (l *Log) sealOpen() {
	l.write.Lock()
	defer l.write.Unlock()
	if l.sealer.closed || l.err != nil {
		return
	}
	err := l.sealStart()
	switch {
	case err != nil:
	case l.sealer.open > 0:
		err = l.seal("")
	default:
		err = l.writeHead()
	}
	if err != nil {
		l.sealFailed(err)
	}
}

// endSeals writes the last seal, and waits for a seal in progress.
func (l *Log) endSeals() (err error) {
	l.sealer.stop()
	<-l.sealer.done
	l.write.Lock()
	defer l.write.Unlock()
	if l.sealer.closed {
		return nil
	}
	l.sealer.closed = true
	defer func() { err = errors.Join(err, l.sealer.last.close()) }()
	if l.err != nil { // nothing may follow
		return nil
	}
	if err = l.sealStart(); err == nil {
		err = l.seal(atStop)
	}
	if err != nil {
		return fmt.Errorf("the audit was not sealed at the end: %w", err)
	}
	return nil
}
