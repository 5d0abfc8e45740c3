package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

// Handoff appends an anchor. An anchor whose state is a [Compaction] replaces the
// history before it in the model's view; nothing is removed.
func (s *Session) Handoff(name string, st any) (int64, error) { return s.handoff("", name, st) }

// handoff is Handoff for an anchor that holds in one epoch only; "" is any.
func (s *Session) handoff(epoch, name string, st any) (int64, error) {
	raw, err := json.Marshal(st)
	if err != nil {
		return 0, fmt.Errorf("handoff: %w", err)
	}
	if name == "" || name == anchorStart || name == anchorRepair {
		return 0, fmt.Errorf("handoff: %q is not a valid name of an anchor", name)
	}
	if err := s.m.hold(s.id, s.workspace); err != nil {
		return 0, err
	}
	s.mu.Lock()
	err = s.load()
	var id int64
	if err == nil {
		id, err = s.appendIn(epoch, KindAnchor, Anchor{Name: name, State: raw}, Meta{Event: uuid.NewString()})
	}
	if err == nil { // with its entry, which the event on the bus does not have
		s.fanOut(event.Event{
			Kind: event.SessionHandedOff.Name(), SessionID: s.id, ID: s.latest.Meta.Event, Time: s.latest.Date, Source: event.KernelSource, Entry: id,
			Payload: event.SessionHandoff{SessionID: s.id, Name: name, State: raw},
		})
	}
	s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	s.m.publish(func(e *bus.Emitter) error {
		_, err := bus.Publish(e, event.SessionHandedOff, s.id, event.SessionHandoff{SessionID: s.id, Name: name, State: raw})
		return err
	})
	return id, nil
}

// Fork branches off a session: the child sees the parent's present entries, has its model, and
// writes to its own tape.
func (m *Manager) Fork(parentID, childID string) (*Session, error) {
	return m.fork(parentID, childID, "", nil)
}

// ForkInto is [Manager.Fork] with a mode of the child's own from its beginning.
func (m *Manager) ForkInto(parentID, childID string, mode Mode) (*Session, error) {
	return m.fork(parentID, childID, mode, nil)
}

// fork makes a child with a mode, "" for that of its parent.
func (m *Manager) fork(parentID, childID string, mode Mode, only []string) (*Session, error) {
	if err := event.CheckSession(childID); err != nil {
		return nil, err
	}
	p, err := m.Find(parentID, "")
	if err != nil {
		return nil, err
	}
	release := p.Pin()
	defer release()
	if _, found, err := m.locate(childID, p.workspace); err != nil || found {
		return nil, errors.Join(fmt.Errorf("session %s exists already", childID), err)
	}
	if err := m.hold(childID, p.workspace); err != nil {
		return nil, err
	}
	if mode == "" {
		if mode, err = m.Mode(parentID); err != nil {
			return nil, err
		}
	}
	p.forking.RLock()
	defer p.forking.RUnlock()
	p.mu.Lock()
	if err := p.load(); err != nil {
		p.mu.Unlock()
		return nil, err
	}
	last, j := p.j.Last(), p.j
	base, model := p.st.base(), p.st.model
	from := &parent{SessionID: p.id, Tape: p.tape, Epoch: p.birth, Entry: last, Cuts: p.st.cuts}
	p.mu.Unlock()
	// The parent's entries must survive a power cut if the child does.
	if err := j.Sync(context.Background(), last); err != nil {
		return nil, err
	}
	// The files first: a crash leaves a folder without a tape, which is not a session.
	if err := m.inherit(p.id, childID); err != nil {
		return nil, err
	}
	c := &Session{m: m, id: childID, workspace: p.workspace, tape: TapeName(p.workspace, childID), parent: from, only: only}
	c.st.Projection, c.st.model, c.st.mode = base, model, mode
	if _, err := m.admit(c, func() error {
		defer m.index.naming()()
		if err := c.create(tapeFile(c.tape), last+1); err != nil {
			return err
		}
		c.indexed()
		return m.savedFolder(childID)
	}); err != nil {
		return nil, err
	}
	m.publish(func(e *bus.Emitter) error {
		_, err := bus.Publish(e, event.SessionWasForked, p.id, event.SessionForked{ParentID: p.id, ChildID: childID})
		return err
	})
	return c, nil
}

// Reset starts a session over, and keeps its old tape in the archive if archive is
// set; it returns the path. Forks keep their view of the old tape, so Reset
// archives it if there are any.
func (s *Session) Reset(archive bool) (path string, err error) {
	if err := s.m.hold(s.id, s.workspace); err != nil {
		return "", err
	}
	err = s.m.atRest(s.id, s, func() error {
		s.forking.Lock()
		defer s.forking.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := s.load(); err != nil {
			return err
		}
		if s.st.turn != "" {
			return fmt.Errorf("session %s: %w", s.id, ErrBusy)
		}
		if !archive {
			if archive, err = s.m.forked(s.tape, s.birth); err != nil {
				return err
			}
		}
		path, err = s.reset(archive)
		return err
	})
	if err != nil {
		return "", err
	}
	var where *string
	if path != "" {
		where = &path
		s.m.archived(s.id, path)
	}
	s.m.publish(func(e *bus.Emitter) error {
		_, err := bus.Publish(e, event.SessionWasReset, s.id, event.SessionReset{SessionID: s.id, ArchivePath: where})
		return err
	})
	return path, nil
}

func (m *Manager) archived(id, path string) {
	m.publish(func(e *bus.Emitter) error {
		_, err := bus.Publish(e, event.SessionWasArchived, id, event.SessionArchived{SessionID: id, ArchivePath: path})
		return err
	})
}

// reset replaces the tape; mu is held. At every moment there is one whole tape
// under the session's name: the old one, then the new one.
func (s *Session) reset(archive bool) (string, error) {
	fsys, old := s.m.cfg.FS, s.j
	defer s.m.index.naming()()
	next := tapeFile(s.tape) + ".new"
	if err := fsys.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reset: %w", err)
	}
	fresh := &Session{m: s.m, id: s.id, workspace: s.workspace, tape: s.tape, only: s.only, apart: true}
	fresh.st.model, fresh.st.mode = s.st.model, s.st.mode
	if err := fresh.create(next, 1); err != nil {
		return "", err
	}
	fail := func(err error) (string, error) {
		s.m.opened.Add(-1)
		return "", errors.Join(fmt.Errorf("reset: %w", err), fresh.j.Close(), fsys.Remove(next))
	}
	if err := fresh.j.Sync(context.Background(), fresh.j.Last()); err != nil {
		return fail(err)
	}
	var kept string
	if archive {
		var err error
		if kept, err = s.keep(); err != nil {
			return fail(err)
		}
	}
	if err := fsys.Rename(next, tapeFile(s.tape)); err != nil {
		return fail(err)
	}
	err := fsys.SyncDir(tapesDir)
	s.j, s.st, s.birth, s.parent = fresh.j, fresh.st, fresh.birth, nil
	s.live, s.liveFrom, s.text = nil, s.liveFrom+int64(len(s.live)), nil
	s.wake()
	s.indexed()
	s.grew(s.j.Size())
	s.m.opened.Add(-1) // one was opened, and one is closed
	return kept, errors.Join(err, old.Close())
}

// keep gives the tape a second name in the archive; mu is held.
func (s *Session) keep() (string, error) {
	if err := s.j.Sync(context.Background(), s.j.Last()); err != nil {
		return "", err
	}
	name := path.Join(archiveDir, s.tape+".jsonl."+stamp(time.Now())+archiveSuffix)
	if err := s.m.cfg.FS.Link(tapeFile(s.tape), name); err != nil {
		return "", err
	}
	return name, s.m.cfg.FS.SyncDir(archiveDir)
}

// Archive moves a session's tape to the archive; the session no longer exists.
func (m *Manager) Archive(id, workspace string) (string, error) {
	s, err := m.Find(id, workspace)
	if err != nil {
		return "", err
	}
	if err := m.hold(id, s.workspace); err != nil {
		return "", err
	}
	var name string
	err = m.atRest(id, s, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		name, err = s.archive()
		return err
	})
	if err != nil {
		return "", err
	}
	m.left(s)
	m.archived(id, name)
	m.end(id)
	return name, m.forgotten(id)
}

func (s *Session) archive() (string, error) {
	if err := s.load(); err != nil {
		return "", err
	}
	if s.st.turn != "" {
		return "", fmt.Errorf("session %s: %w", s.id, ErrBusy)
	}
	name, err := s.keep()
	if err != nil {
		return "", fmt.Errorf("archive: %w", err)
	}
	if err = s.takeAway(); !s.gone {
		return "", fmt.Errorf("archive: %w", err)
	}
	return name, err
}

// takeAway takes the tape, which the archive has, from among the sessions; mu is held. From the removal
// on the session is gone.
func (s *Session) takeAway() error {
	defer s.m.index.naming()()
	if err := s.m.cfg.FS.Remove(tapeFile(s.tape)); err != nil {
		return err
	}
	s.m.index.drop(s.key())
	s.gone = true
	if err := s.m.cfg.FS.SyncDir(tapesDir); err != nil {
		return errors.Join(err, s.close())
	}
	s.m.forgetQueue(s.tape)
	return s.close()
}
