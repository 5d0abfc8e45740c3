package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/session"
)

// maxRecords is how many records are kept in memory before those that nobody uses are
// let go, and recordAfter when nobody uses one.
const (
	maxRecords  = 1000
	recordAfter = time.Minute
)

// record returns the record of a session, nil for one that was made elsewhere.
func (s *Service) record(id string) (*record, error) {
	s.mu.Lock()
	r := s.records[id]
	if r != nil {
		r.used = time.Now()
	}
	s.mu.Unlock()
	if r != nil || !addressable(id) {
		return r, nil
	}
	read, err := s.read(event.Folder(id))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case errors.Is(err, fs.ErrInvalid):
		s.cfg.Log.Warn().Err(err).Msg("the record of a session is made again of its tape")
		return nil, nil
	case err != nil:
		return nil, err
	}
	return s.keep(&read), nil
}

// addressable reports whether clients can name a session by this id.
func addressable(id string) bool { return event.CheckClientSession(id) == nil }

// keep has a record in memory, and returns the one that is there already.
func (s *Service) keep(r *record) *record {
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.records[r.ID]; other != nil {
		return other
	}
	r.used = time.Now()
	s.records[r.ID] = r
	if len(s.records) > maxRecords {
		s.evict(r.used.Add(-recordAfter))
	}
	return r
}

// evict lets go of records that nobody has used since then; mu is held. A feed relies
// on the record of its session.
func (s *Service) evict(before time.Time) {
	for id, r := range s.records {
		if r.used.After(before) || r.saved != r.rev {
			continue
		}
		if _, followed := s.feeds.Get(id); !followed {
			delete(s.records, id)
		}
	}
}

// known reports whether a session has a record.
func (s *Service) known(id string) bool {
	s.mu.Lock()
	r := s.records[id]
	s.mu.Unlock()
	if r != nil || !addressable(id) {
		return r != nil
	}
	_, err := s.cfg.Root.Lstat(s.file(id, recordFile))
	return err == nil
}

// peek returns a copy of a record without keeping it in memory.
func (s *Service) peek(id string) (record, bool) {
	s.mu.Lock()
	if r := s.records[id]; r != nil {
		defer s.mu.Unlock()
		return *r, true
	}
	s.mu.Unlock()
	r, err := s.read(event.Folder(id))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.cfg.Log.Warn().Err(err).Msg("a session is listed by its tape")
	}
	return r, err == nil
}

// Title returns the title of a session of this node, "" if it has none.
func (s *Service) Title(id string) string {
	if event.CheckClientSession(id) != nil {
		return ""
	}
	if r, _ := s.peek(id); r.Title != "" {
		return r.Title
	}
	// One that yaya run made is known by its tape alone.
	found, _, err := s.cfg.Sessions.Info(id)
	if err != nil {
		s.cfg.Log.Warn().Err(err).Str("session", id).Msg("the title of a session is not known")
	}
	return found.Title
}

// mark is the word by which the index knows a session: its status, and the key of the
// request that made it.
func (r *record) mark() string {
	if r.Key == "" {
		return string(r.Status)
	}
	return string(r.Status) + ":" + r.Key
}

// noted has the index know the marks of all sessions. It counts the tapes of those that it
// does not know, which another process has worked on, and reads the records of the others: after
// the index was lost, there may be hundreds of thousands. The create lock must not be held, because it
// makes records.
func (s *Service) noted() error {
	ids, err := s.cfg.Sessions.Marked(func(id, mark string) bool { return mark == "" && addressable(id) })
	if err != nil {
		return err
	}
	for n, id := range slices.Backward(ids) { // the one changed last first
		if len(ids)-n <= maxCounted && s.recounted(id) == nil {
			continue
		}
		r, ok := s.peek(id)
		if !ok {
			r.Status = Active
		}
		s.cfg.Sessions.Mark(id, r.mark(), r.Changed)
	}
	return nil
}

// keyed returns the record of the session that was made with a key, nil if there is
// none, or no key. The index knows the marks of all sessions, see [Service.noted].
func (s *Service) keyed(key string) (*record, error) {
	if key == "" {
		return nil, nil
	}
	ids, err := s.cfg.Sessions.Marked(func(_, mark string) bool {
		_, k, _ := strings.Cut(mark, ":")
		return k == key
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return s.record(ids[0])
}

// maxCounted is how many tapes a list counts at most.
const maxCounted = 100

// row is a session as lists show it; ok is false for one that they leave out. It counts the session's
// tape if another process has written it, unless left, the number of tapes that may be read, is 0:
// then it shows an older state, or what the index knows.
func (s *Service) row(t session.Info, left *int) (_ Session, ok bool) {
	r, known := s.peek(t.ID)
	if (!known || t.Mark == "") && *left > 0 {
		*left--
		if err := s.recounted(t.ID); err != nil {
			s.cfg.Log.Debug().Err(err).Str("session", t.ID).Msg("a session is listed as it was")
		}
		r, known = s.peek(t.ID)
	}
	if known {
		return r.Session, r.Workspace == t.Workspace // else another workspace has the id, too
	}
	at := t.Modified.Truncate(time.Millisecond)
	return Session{ID: t.ID, CreatedAt: at, UpdatedAt: at, Status: Active, Workspace: t.Workspace, Title: t.Title, AutoRun: true, ParentID: t.ParentID}, true
}

// recounted has the record of a session say what its tape does, and a feed count what follows if
// something runs: from then on it does so by itself.
func (s *Service) recounted(id string) error {
	k, _, err := s.find(id)
	if err == nil {
		err = s.catchUp(k)
	}
	if err != nil {
		return err
	}
	if s.cfg.Loop.GoesOn(id) {
		f, err := s.feed(id)
		if err != nil {
			return err
		}
		f.Leave()
	}
	if r, known := s.peek(id); known {
		s.cfg.Sessions.Mark(id, r.mark(), r.Changed)
	}
	return nil
}

// unknown answers a request for a session that does not exist, or with an id that no session
// can have.
func unknown(id string) error {
	return api.Fail(http.StatusNotFound, "session %q not found", cut.Text(id, maxIDShown))
}

const maxIDShown = 100 // bytes of an unknown session's id, in an error

// find returns a session with its record, which one that was made elsewhere gets
// now.
func (s *Service) find(id string) (*session.Session, Session, error) {
	if event.CheckClientSession(id) != nil {
		return nil, Session{}, unknown(id)
	}
	k, err := s.cfg.Sessions.Find(id, "")
	if errors.Is(err, session.ErrNotFound) {
		return nil, Session{}, cmp.Or(s.emptied(id), unknown(id))
	}
	if errors.Is(err, journal.ErrLocked) {
		return nil, Session{}, api.Coded(http.StatusConflict, "busy", "another process of yaya works on the session: wait for its end")
	}
	if err != nil {
		return nil, Session{}, err
	}
	r, err := s.record(id)
	if err != nil {
		return nil, Session{}, err
	}
	if r == nil {
		if r, err = s.adopt(k); err != nil {
			return nil, Session{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return k, r.Session, nil
}

// emptied returns why a session is not found that is known to have had entries.
func (s *Service) emptied(id string) error {
	r, err := s.read(event.Folder(id))
	if err != nil || r.Counted.Seq == 0 {
		return nil //nolint:nilerr // nothing is known of it
	}
	return s.cfg.Sessions.Emptied(id)
}

// steer is find for somebody who makes the session's agent do something: they need a right
// to the folder that it works in at present, whoever made the session.
func (s *Service) steer(ctx context.Context, id string) (*session.Session, Session, error) {
	k, rec, err := s.find(id)
	if err != nil || k.Workspace() == session.Nowhere {
		return k, rec, err
	}
	if _, err := s.cfg.MayUse(auth.FromContext(ctx), k.Workspace()); err != nil {
		return nil, Session{}, api.Coded(http.StatusForbidden, "workspace_not_allowed", "%v", err)
	}
	return k, rec, nil
}

// adopt makes the record of a session that was made elsewhere.
func (s *Service) adopt(k *session.Session) (*record, error) {
	s.create.Lock()
	defer s.create.Unlock()
	if known, err := s.record(k.ID()); known != nil || err != nil {
		return known, err
	}
	sn, err := k.Snapshot()
	if err != nil {
		return nil, err
	}
	r := &record{Session: Session{ID: k.ID(), Status: Active, Workspace: k.Workspace(), AutoRun: true, ParentID: k.ParentID()}, Adopted: true}
	err = k.Entries(0, func(e session.Entry) error {
		if r.CreatedAt.IsZero() {
			r.touch(e.Date)
			r.CreatedAt = r.UpdatedAt
		}
		if e.ID <= sn.AsOfSeq {
			r.count(e, sn.Epoch, e.ID <= k.ForkedAt(), s.cfg.Price)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if r.SystemPrompt, err = k.System(); err != nil {
		return nil, err
	}
	if r.Mode, err = k.Mode(); err != nil {
		return nil, err
	}
	if r.Model, err = k.Model(); err != nil { // a fork's entries may lack it
		return nil, err
	}
	if err := s.save(*r); err != nil {
		return nil, err
	}
	return s.keep(r), nil
}

// forget forgets a session that is gone from where sessions are looked for; its
// folder stays.
func (s *Service) forget(id string) {
	s.mu.Lock()
	delete(s.records, id)
	s.mu.Unlock()
	s.feeds.End(id)
}

func absent(id string, err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return unknown(id)
	}
	return fmt.Errorf("session: %w", err)
}
