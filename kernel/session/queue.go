package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/kernel/event"
)

// queuedDir has an empty file for each session with a queue, named like its tape, so that a
// start finds these sessions without reading all tapes. The file is there before the queue
// has its first entry, and goes after the empty queue has reached the disk: there may be one
// too many, and never one too few.
const queuedDir = tapesDir + "/.queued"

func marker(tape string) string { return path.Join(queuedDir, tape) }

// ErrRecovered reports that a session's disk failed and the session goes on from what is on
// it: what was decided by its earlier state has to be decided again.
var ErrRecovered = errors.New("the disk has failed, and the session goes on from what is on it: try again")

// SetQueue replaces the queue that the session had in an epoch. In another epoch it may have
// had another queue: then nothing is replaced, and the error is [ErrRecovered].
func (s *Session) SetQueue(prompts []Prompt, epoch string) (int64, error) {
	if err := s.m.hold(s.id, s.workspace); err != nil {
		return 0, err
	}
	if prompts == nil {
		prompts = []Prompt{}
	}
	if len(prompts) > 0 {
		if err := s.mark(); err != nil {
			return 0, fmt.Errorf("session %s: queue: %w", s.id, err)
		}
	}
	return s.note(event.Event{Kind: NoteQueue, SessionID: s.id, ID: uuid.NewString(), Time: time.Now(), Source: event.KernelSource}, struct {
		Prompts []Prompt `json:"prompts"`
	}{prompts}, epoch)
}

// mark creates the session's marker. Calls for one session must not overlap.
func (s *Session) mark() error {
	s.mu.Lock()
	there := s.marked && s.lasting
	s.marked = true
	s.mu.Unlock()
	if there {
		return nil
	}
	if err := s.m.cfg.FS.MkdirAll(queuedDir); err != nil {
		return err
	}
	if err := makeMarker(s.m.cfg.FS, s.tape); err != nil { // one of a crash may be there
		return err
	}
	if err := s.m.cfg.FS.SyncDir(queuedDir); err != nil {
		return err
	}
	if !s.m.named.Load() { // the folder of the markers is new with the first of them
		if err := s.m.cfg.FS.SyncDir(tapesDir); err != nil {
			return err
		}
		s.m.named.Store(true)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lasting = true
	return nil
}

// Emptied removes the session's marker if the queue is empty, once that has reached the
// disk. Calls for one session, and of SetQueue, must not overlap.
func (s *Session) Emptied(ctx context.Context) error {
	s.mu.Lock()
	if !s.marked {
		s.mu.Unlock()
		return nil
	}
	if err := s.load(); err != nil || len(s.st.queue) > 0 {
		s.mu.Unlock()
		return err
	}
	last := s.j.Last()
	s.mu.Unlock()
	if err := s.Sync(ctx, last); err != nil {
		return err
	}
	if err := s.m.unmark(s.tape); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marked, s.lasting = false, false
	return nil
}

func (m *Manager) unmark(tape string) error {
	if err := m.cfg.FS.Remove(marker(tape)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("marker of a queue: %w", err)
	}
	return nil
}

// WithQueue visits the sessions that had a queue when yaya stopped. It passes over those that
// cannot be opened, and returns why.
func (m *Manager) WithQueue(ctx context.Context, visit func(*Session)) error {
	marks, err := m.cfg.FS.ReadDir(queuedDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there never was a queue
	}
	if err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	var errs []error
	for _, d := range marks {
		if err := ctx.Err(); err != nil {
			return errors.Join(append(errs, err)...)
		}
		tape := d.Name()
		h, _, err := m.header(tapeFile(tape))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errEmpty) { // archived, deleted, or never written
			errs = append(errs, m.unmark(tape))
			continue
		}
		var s *Session
		if err == nil {
			s, err = m.Find(h.SessionID, h.Workspace)
		}
		if errors.Is(err, ErrNotFound) { // it is new, and a disk that fails has taken its tape back
			continue
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("the queue of tape %s: %w", tape, err))
			continue
		}
		s.mu.Lock()
		s.marked = true
		s.mu.Unlock()
		visit(s)
	}
	return errors.Join(errs...)
}
