package cluster

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/internal/control"
	"github.com/yaya-ai/yaya/internal/journal"
)

// sealer seals a [Local] log. All of it is guarded by the log's write lock.
type sealer struct {
	key     ed25519.PrivateKey
	fs      journal.FS
	from    int64 // of the first seal, 0 when there is one
	resumed bool  // there was no head file
	started bool  // the seal of this start was made
	closed  bool
	open    int   // entries that are not sealed
	behind  *head // a head that could not be written yet

	wake chan struct{} // an entry waits for its seal
	stop context.CancelFunc
	done chan struct{}
}

// newSealer continues the seals of a log whose records were visited. It makes the
// key when there is none; that there must be none was checked.
func newSealer(o *SealOptions, c *chain, key ed25519.PrivateKey) (*sealer, error) {
	s := &sealer{key: key, fs: o.fs(), resumed: c.headMissing(), wake: make(chan struct{}, 1), done: make(chan struct{})}
	switch {
	case c.seals == 0:
		s.from = c.last + 1
	case c.head == nil && !s.resumed: // a crash came between the first seal and its head file
		s.behind = newHead(key, c.newest.Entry, c.newest.Sum)
	}
	if key == nil {
		var err error
		if s.key, err = makeSealKey(o.Keys); err != nil {
			return nil, fmt.Errorf("key that seals the audit: %w", err)
		}
	}
	return s, nil
}

func newHead(key ed25519.PrivateKey, entry int64, sum string) *head {
	h := &head{Entry: entry, Sum: sum}
	h.Signature = ed25519.Sign(key, h.message())
	return h
}

// seal appends a seal and names it in the head file; write is held. While the head
// file of the seal before cannot be written, there is no other.
func (l *Local) seal(at string) error {
	if err := l.recover(); err != nil {
		return err
	}
	if err := l.writeHead(); err != nil {
		return err
	}
	s := l.sealer
	p := seal{At: at, From: s.from, Resumed: s.resumed}
	p.Through, p.Head = l.j.Head()
	e := control.Entry{Term: l.term, Time: l.now(), Event: SealEvent, Actor: l.o.Node, Target: "log"}
	p.Signature = ed25519.Sign(s.key, p.message(e))
	var err error
	if e.Payload, err = json.Marshal(p); err != nil {
		return err
	}
	if _, err := l.commit(e); err != nil {
		return err
	}
	s.from, s.resumed, s.open = 0, false, 0
	entry, sum := l.j.Head()
	s.behind = newHead(s.key, entry, sum)
	return l.writeHead()
}

// writeHead writes the head file that is due; write is held. The log is on the disk
// first: a head file can lag behind it, and is never ahead.
func (l *Local) writeHead() error {
	if l.sealer.behind == nil {
		return nil
	}
	if err := writeHead(l.sealer.fs, *l.sealer.behind); err != nil {
		return fmt.Errorf("head file keys/%s: %w", HeadFile, err)
	}
	l.sealer.behind = nil
	return nil
}

// sealStart makes the seal of this start, unless it was made; write is held.
func (l *Local) sealStart() error {
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

// sealSoon counts an entry that is not sealed; write is held.
func (l *Local) sealSoon() {
	s := l.sealer
	if s == nil {
		return
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

// due has what waits sealed within a minute.
func (s *sealer) due() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (l *Local) sealFailed(err error) {
	l.o.Log.Error().Err(err).Msg("the audit could not be sealed; trying again within a minute")
	l.sealer.due()
}

// keepSealed seals within a minute what was appended, until ctx ends.
func (l *Local) keepSealed(ctx context.Context) {
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

// sealOpen seals what is not, and has a failure tried again.
func (l *Local) sealOpen() {
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

// endSeals makes the last seal, and waits for what sealed meanwhile.
func (l *Local) endSeals() error {
	l.sealer.stop()
	<-l.sealer.done
	l.write.Lock()
	defer l.write.Unlock()
	if l.sealer.closed {
		return nil
	}
	l.sealer.closed = true
	if l.err != nil { // nothing may follow
		return nil
	}
	err := l.sealStart()
	if err == nil {
		err = l.seal(atStop)
	}
	if err != nil {
		return fmt.Errorf("the audit was not sealed at the end: %w", err)
	}
	return nil
}
