package sessions

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// Delete deletes a session for good. Kept says that its tape stays in the archive until
// the forks that read it are gone.
func (s *Service) Delete(ctx context.Context, id string) (kept bool, err error) {
	return s.delete(id, func() error { return s.cfg.Audit(ctx, "session_deleted", id, nil) })
}

// Prune deletes the sessions that have not changed since then and that nobody works
// with, and returns their ids; dry only does the latter.
func (s *Service) Prune(ctx context.Context, before time.Time, dry bool) (ids []string, err error) {
	old, err := s.cfg.Sessions.Stale(before)
	if err != nil || len(old) == 0 {
		return nil, err
	}
	if !dry {
		// One entry for all: what is deleted for its age is not each a change of its own.
		if err := s.cfg.Audit(ctx, "sessions_pruned", "sessions", map[string]any{"count": len(old), "before": control.Stamp(before)}); err != nil {
			return nil, err
		}
	}
	var errs []error
	for _, i := range old {
		if err := ctx.Err(); err != nil {
			return ids, errors.Join(append(errs, err)...)
		}
		if !dry {
			if _, err := s.delete(i.ID, nil); err != nil {
				if !errors.Is(err, session.ErrBusy) { // somebody has come
					errs = append(errs, fmt.Errorf("session %s: %w", i.ID, err))
				}
				continue
			}
		}
		ids = append(ids, i.ID)
	}
	return ids, errors.Join(errs...)
}

func (s *Service) delete(id string, agreed func() error) (kept bool, err error) {
	if !addressable(id) {
		return false, unknown(id)
	}
	if !s.cfg.Loop.Resting(id) { // Delete asks again, and the lock is not to be held while it waits
		return false, session.ErrBusy
	}
	s.disk.Lock() // nothing is written to its folder meanwhile
	defer s.disk.Unlock()
	kept, err = s.cfg.Sessions.Delete(id, "", agreed)
	if errors.Is(err, session.ErrNotFound) {
		return false, unknown(id)
	}
	if err != nil {
		return false, err
	}
	s.forget(id)
	s.cfg.Loop.Release(id)
	s.cfg.Artifacts.Forget(id)
	return kept, nil
}

// Archive puts a session away, and returns where its tape is.
func (s *Service) Archive(id string) (string, error) {
	if _, _, err := s.find(id); err != nil {
		return "", err
	}
	path, err := s.cfg.Sessions.Archive(id, "")
	if err != nil {
		return "", err
	}
	s.cfg.Loop.Release(id)
	if err := s.away(id); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	return path, nil // it was made elsewhere, and has no folder
}

// finish closes a session.
func (s *Service) finish(id string) (Session, error) {
	k, rec, err := s.find(id)
	if err != nil {
		return Session{}, err
	}
	if rec.Status == Completed {
		return rec, nil
	}
	f, err := s.feed(id)
	if err != nil {
		return Session{}, err
	}
	defer f.Leave()
	err = s.cfg.Loop.AtRest(id, k, func() error {
		entry, err := k.Note(event.Event{Kind: noteClosed, SessionID: id, ID: uuid.NewString(), Time: time.Now(), Source: event.KernelSource}, struct{}{})
		if err == nil {
			err = k.Sync(context.Background(), entry)
		}
		if err != nil {
			return err
		}
		r, err := s.record(id)
		if err == nil && r != nil { // before the next message asks, see open
			s.mu.Lock()
			r.Status = Completed
			s.mu.Unlock()
		}
		return err
	})
	if err != nil {
		return Session{}, err
	}
	s.cfg.Closed(id)
	return s.change(id, func(r *record) { r.Status = Completed })
}

// Reset starts a session again from nothing, and returns where its old tape is kept: ""
// if keep was not set, and no fork needs it.
func (s *Service) Reset(ctx context.Context, id string, keep bool) (Session, string, error) {
	k, rec, err := s.steer(ctx, id)
	if err != nil {
		return Session{}, "", err
	}
	f, err := s.feed(id) // so that its readers hear of it
	if err != nil {
		return Session{}, "", err
	}
	defer f.Leave()
	path, err := k.Reset(keep)
	if err != nil {
		return Session{}, "", err
	}
	if rec.SystemPrompt != "" {
		if err := k.SetSystem(rec.SystemPrompt); err != nil {
			return Session{}, path, err
		}
	}
	s.recount(id)
	r, err := s.change(id, func(r *record) { r.Status, r.LastTurnID = Active, "" })
	return r, path, err
}

// away takes a session's folder out of where sessions are: its files are with its
// tape, in the archive of sessions.
func (s *Service) away(id string) error {
	s.forget(id)
	if err := s.cfg.Root.MkdirAll(archived, 0o700); err != nil {
		return err
	}
	return s.cfg.Root.Rename(event.Folder(id), archived+"/"+event.Folder(id)+"."+strconv.FormatInt(time.Now().UnixMilli(), 10))
}

// archived is the folder of sessions that were put away. No session has such an id.
const archived = ".archive"
