package tapes

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	js "github.com/nats-io/nats.go/jetstream"
)

const (
	// maxPart is how much of a file one message has. NATS takes 1 MiB by default.
	maxPart = 256 << 10
	// maxWaste is how much a session may have in the stream that no longer counts, as long as that
	// is less than what counts.
	maxWaste = 4 << 20
)

// errLost is why a message was not taken: another node owns the session.
var errLost = errors.New("another node owns the session")

// Grew has what a file has more than before be copied. It does not wait. A file that grows and has the size 0
// has been cut: it is copied as a whole.
func (t *Tapes) Grew(id string, f File) {
	s := t.session(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == "" { // it is compared once it is claimed
		return
	}
	if there, is := s.there[f.Name]; f.Generation == "" {
		s.edits++
		f.Size = s.edits // an edit that comes while the file is sent is another one
	} else if f.Size == 0 || is && (there.Generation != f.Generation || there.Size > f.Size) {
		s.again = true
	}
	s.want[f.Name] = f
	s.send()
}

// send has a job send what is wanted; mu is held.
func (s *session) send() {
	if s.sending || !s.wants() {
		return
	}
	s.sending = true
	s.t.mu.Lock()
	defer s.t.mu.Unlock()
	if s.t.ctx.Err() != nil {
		s.sending = false
		return
	}
	s.t.jobs.Go(s.sends)
}

// wants reports whether something is to be sent; mu is held.
func (s *session) wants() bool { return len(s.want) > 0 || s.again || s.rowWanted }

// sends sends what is wanted, until nothing is.
func (s *session) sends() {
	for {
		s.mu.Lock()
		if s.run == "" || !s.wants() || s.t.ctx.Err() != nil {
			s.sending = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		select {
		case s.t.slot <- struct{}{}:
		case <-s.t.ctx.Done():
			continue
		}
		err := s.sendOnce()
		<-s.t.slot
		s.mu.Lock()
		s.problem = err
		s.mu.Unlock()
		if err == nil || errors.Is(err, errLost) || s.t.ctx.Err() != nil {
			continue
		}
		s.t.o.Log.Debug().Err(err).Str("session", s.id).Msg("a session is not copied yet")
		select {
		case <-time.After(retryAfter):
		case <-s.t.ctx.Done():
		}
	}
}

// sendOnce sends what is wanted now.
func (s *session) sendOnce() error {
	s.claim.Lock()
	defer s.claim.Unlock()
	s.mu.Lock()
	run, again := s.run, s.again || s.waste > max(maxWaste, s.size())
	s.mu.Unlock()
	if run == "" {
		return errLost
	}
	if again {
		return s.sendAll(run)
	}
	if err := s.sendRow(); err != nil {
		return err
	}
	for {
		f, there, is := s.next()
		if !is {
			return nil
		}
		if f.Generation == "" || there.Generation != f.Generation {
			there.Size = 0
		}
		if err := s.sendFile(run, f, there.Size); err != nil {
			return err
		}
	}
}

// next returns a file that is wanted, and what the stream has of it; none if all are to follow again. Those of
// which the stream has nothing come before what grows, since that may name them: with a message that is kept,
// other nodes have its attachments, and with the first one how the session was made. After a failure any may be
// next: a file that cannot be read does not hold up the others.
func (s *session) next() (f, there File, is bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again {
		return f, there, false
	}
	for _, f = range s.want {
		there, is = s.there[f.Name], true
		if f.Generation == "" && there.Name == "" && s.problem == nil {
			break
		}
	}
	return f, there, is
}

// size is how much of what the stream has of the session counts; mu is held.
func (s *session) size() (n int64) {
	for _, f := range s.there {
		n += f.Size
	}
	return n
}

// sendAll sends all files again, and then has the stream forget what came before; claim is held.
func (s *session) sendAll(run string) error {
	s.mu.Lock()
	s.again, s.whole, s.want, s.there, s.waste = false, true, map[string]File{}, map[string]File{}, 0
	s.mu.Unlock()
	begin := s.note(opBegin, run)
	files, err := s.t.o.Files(s.id)
	if err == nil {
		err = s.append(s.t.ctx, begin, nil)
	}
	first := s.seq
	for _, f := range files {
		if err == nil {
			err = s.sendFile(run, f, 0)
		}
	}
	if err == nil {
		err = s.append(s.t.ctx, s.note(opDone, run), nil)
	}
	s.mu.Lock()
	s.whole = false
	if err != nil {
		s.again = !errors.Is(err, errLost)
	}
	s.tell()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	return s.forget(s.t.ctx, first)
}

// sendFile sends a file from a place on; claim is held.
func (s *session) sendFile(run string, f File, from int64) (err error) {
	asked := f
	in, err := s.t.o.Data.Open(f.Name)
	if errors.Is(err, fs.ErrNotExist) { // it was removed meanwhile
		s.sent(asked, File{})
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if f.Generation == "" {
		info, err := in.Stat()
		if err != nil {
			return err
		}
		f.Size = info.Size()
	}
	buf := make([]byte, min(maxPart, max(f.Size-from, 0)))
	for at := from; ; {
		n, err := in.ReadAt(buf[:min(maxPart, f.Size-at)], at)
		if at+int64(n) < f.Size && errors.Is(err, io.EOF) {
			if f.Generation != "" {
				return fmt.Errorf("%s is shorter than it was", f.Name)
			}
			f.Size = at + int64(n)
		} else if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		p := s.note(opPart, run)
		p.File, p.Generation, p.At = f.Name, f.Generation, at
		at += int64(n)
		p.End = f.Generation == "" && at == f.Size
		if f.Generation != "" && p.At == 0 && !bytes.Contains(buf[:n], []byte(f.Generation)) {
			return fmt.Errorf("%s is not the file that it was", f.Name)
		}
		if err := s.append(s.t.ctx, p, buf[:n]); err != nil {
			return err
		}
		if f.Generation != "" || p.End {
			s.sent(asked, File{f.Name, f.Generation, at})
		}
		if at >= f.Size {
			return nil
		}
	}
}

// sent notes what the stream has of a file.
func (s *session) sent(f, there File) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, is := s.there[f.Name]; is && f.Generation == "" {
		s.waste += was.Size
	}
	if there.Name == "" {
		delete(s.there, f.Name)
	} else {
		s.there[f.Name] = there
	}
	if w, is := s.want[f.Name]; is && (there.Name == "" || w == f || w.Generation != "" && w.Generation == there.Generation && w.Size <= there.Size) {
		delete(s.want, f.Name)
	}
	s.tell()
}

// append appends a message of the session behind the last one; claim is held. It tries for as long as
// the servers need to elect a leader. The error is [errLost] if another node owns the session.
func (s *session) append(ctx context.Context, n note, data []byte) error {
	msg, err := n.message(s.subject, data)
	if err != nil {
		return err
	}
	for until := time.Now().Add(patience); ; {
		seq, err := s.t.put(ctx, sessions, msg, s.seq)
		if isBehind(err) {
			var last *stored
			var there note
			last, there, err = s.t.newest(ctx, s.id)
			switch {
			case err != nil:
			case last != nil && there.ID == n.ID: // the answer to an earlier attempt was lost
				seq = last.seq
			case last != nil && there.Node == s.t.o.Node && there.Run == n.Run: // one that was given up has come through
				s.seq = last.seq
				if n.Op == opPart {
					s.mu.Lock()
					s.again = true
					s.mu.Unlock()
					return errors.New("the stream has more of the session than was known")
				}
				err = errors.New("the last message of the session was another one")
			case last == nil: // somebody has deleted the stream, or purged it
				s.drop()
				return errors.New("the stream no longer has the session")
			default:
				s.lose(there.Node)
				return errLost
			}
		}
		if err == nil {
			s.seq = seq
			return nil
		}
		if time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// forget has the stream forget what it has of the session before a message.
func (s *session) forget(ctx context.Context, before uint64) error {
	st, err := s.t.stream(sessions)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	if err := st.Purge(ctx, js.WithPurgeSubject(s.subject), js.WithPurgeSequence(before)); err != nil {
		s.t.o.Log.Debug().Err(err).Str("session", s.id).Msg("what no longer counts of a session stays in the stream")
	}
	return nil
}

// Kept returns nil once the cluster has a file that grows up to a size, or if this node has not held its
// session, and an [*ElsewhereError] if another node has taken that over. It waits for 12 s at most
// ([ErrUnavailable]).
func (t *Tapes) Kept(ctx context.Context, id string, f File) error {
	s := t.session(id)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		s.mu.Lock()
		there, changed, owner, run, claimed := s.there[f.Name], s.changed, s.owner, s.run, s.claimed
		again := s.again || s.whole
		s.mu.Unlock()
		switch {
		case run == "" && owner != "":
			return &ElsewhereError{id, owner}
		case !claimed: // nobody has written to it since the node runs
			return nil
		case run == "": // it is to be claimed again
		case !again && there.Generation == f.Generation && there.Size >= f.Size:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.problem != nil {
				return fmt.Errorf("%w (%w)", ErrUnavailable, s.problem)
			}
			return ErrUnavailable
		case <-t.ctx.Done():
			return errClosed
		}
	}
}
