package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Config assembles a [Service]. All fields are required, but those that say
// otherwise.
type Config struct {
	// Root is the folder of the sessions' folders; the caller closes it.
	Root      *os.Root
	Bus       *bus.Bus
	Sessions  *session.Manager
	Loop      *loop.Loop
	Approvals *approval.Runtime
	Artifacts *tool.Store
	// Secrets are in nothing that is kept of a session. Optional.
	Secrets *masked.Secrets
	// Price returns what a model's tokens cost, in US dollars; nil: nothing.
	Price func(model string, u event.Usage) float64
	// Strategy drives sessions that name none, if it is there; "" is the kernel's.
	Strategy string
	// HasStrategy reports whether there is a strategy of that id; nil: there is.
	HasStrategy func(id string) bool
	// MayUse returns the folder that a session works in when somebody asks for dir, or
	// why they may not; nil: everybody may.
	MayUse func(who auth.Principal, dir string) (string, error)
	// Trusted reports whether the folder of a session is trusted; nil: it is.
	Trusted func(session string) bool
	// KeepAlive is when a comment is sent to readers if nothing else is. Default 15 s.
	KeepAlive time.Duration
	Version   string
	Log       zerolog.Logger
}

// Service is the API, an [http.Handler] for everything below /v1/.
type Service struct {
	cfg     Config
	handler func() http.Handler // made when it is used first: it takes a while
	sub     *bus.Subscription

	mu      sync.Mutex
	closed  bool
	loaded  bool
	records map[string]*record
	keys    map[string]string // idempotency key → session
	feeds   map[string]*feed
	readers int
	work    sync.WaitGroup
	create  sync.Mutex // held while a session is made: a key makes one
	disk    sync.Mutex // held while a session.json is written
}

// New returns the API; [Service.Close] ends what it starts.
func New(cfg Config) (*Service, error) {
	cfg.KeepAlive = cmp.Or(cfg.KeepAlive, 15*time.Second)
	if cfg.Price == nil {
		cfg.Price = func(string, event.Usage) float64 { return 0 }
	}
	if cfg.MayUse == nil {
		cfg.MayUse = func(_ auth.Principal, dir string) (string, error) { return dir, nil }
	}
	if cfg.Trusted == nil {
		cfg.Trusted = func(string) bool { return true }
	}
	if cfg.HasStrategy == nil {
		cfg.HasStrategy = func(string) bool { return true }
	}
	s := &Service{cfg: cfg, records: map[string]*record{}, keys: map[string]string{}, feeds: map[string]*feed{}}
	s.handler = sync.OnceValue(s.routes)
	var err error
	// What is said to a session of ours elsewhere is written down as well.
	s.sub, err = cfg.Bus.Subscribe(bus.SubscribeOptions{Name: "v1", Filter: func(ev event.Event) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.records[ev.SessionID] != nil && s.feeds[ev.SessionID] == nil
	}}, []string{event.UserMessageReceived.Name(), event.TurnWasStarted.Name()}, func(_ context.Context, ev event.Event) error {
		f, err := s.feed(ev.SessionID)
		if err != nil {
			return err
		}
		f.release()
		return nil
	})
	return s, err
}

// Close ends every stream and every feed, and waits for them.
func (s *Service) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	feeds := make([]*feed, 0, len(s.feeds))
	for _, f := range s.feeds {
		feeds = append(feeds, f)
	}
	s.mu.Unlock()
	s.sub.Close()
	for _, f := range feeds {
		f.drop()
	}
	s.work.Wait()
}

// ServeHTTP implements [http.Handler].
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler().ServeHTTP(w, r) }

// ApprovalTimeout is how long asks of a session wait, 0 for as long as those of all.
func (s *Service) ApprovalTimeout(id string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[id]; r != nil {
		return time.Duration(r.ApprovalTimeout) * time.Second
	}
	return 0
}

// load reads what there is, once: the folders of sessions, and the tapes of those
// that have none. mu is held.
func (s *Service) load() error {
	if s.loaded {
		return nil
	}
	folders, err := fs.ReadDir(s.cfg.Root.FS(), ".")
	if err != nil {
		return err
	}
	for _, d := range folders {
		if !d.IsDir() || s.records[d.Name()] != nil {
			continue
		}
		r, err := s.read(d.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // what tools have left in a session of others
		}
		if err != nil {
			s.cfg.Log.Warn().Err(err).Msg("a session is not listed")
			continue
		}
		s.records[r.ID] = &r
		if r.Key != "" {
			s.keys[r.Key] = r.ID
		}
	}
	s.loaded = true
	return nil
}

// listed is a session with when it was changed last.
type listed struct {
	Session
	changed time.Time
}

// list returns all sessions, the one changed last first (S-7). Those that were made
// elsewhere are known by their tapes alone.
func (s *Service) list() ([]listed, error) {
	tapes, err := s.cfg.Sessions.List()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return nil, err
	}
	out := make([]listed, 0, len(tapes))
	there := make(map[string]bool, len(tapes))
	for _, t := range tapes {
		there[t.ID] = true
	}
	for _, r := range s.records {
		if there[r.ID] { // else a crash has left its folder
			out = append(out, listed{r.Session, r.Changed})
		}
	}
	for _, t := range tapes {
		if s.records[t.ID] == nil && event.CheckClientSession(t.ID) == nil {
			at := t.Modified.Truncate(time.Millisecond)
			out = append(out, listed{Session{ID: t.ID, CreatedAt: at, UpdatedAt: at, Status: Active, Workspace: t.Workspace, Title: t.Title, AutoRun: true, ParentID: t.ParentID}, t.Modified})
		}
	}
	slices.SortFunc(out, func(a, b listed) int {
		return cmp.Or(b.changed.Compare(a.changed), strings.Compare(b.ID, a.ID))
	})
	return out, nil
}

// errUnknown is what is said of a session that is not there, and of an id that can
// be none (HT-09).
var errUnknown = &Error{status: http.StatusNotFound, Body: ErrorBody{Code: "not_found", Message: "there is no such session"}}

// find returns a session with its record, which one that was made elsewhere gets
// now.
func (s *Service) find(id string) (*session.Session, Session, error) {
	if event.CheckClientSession(id) != nil {
		return nil, Session{}, errUnknown
	}
	k, err := s.cfg.Sessions.Find(id, "")
	if errors.Is(err, session.ErrNotFound) {
		return nil, Session{}, errUnknown
	}
	if err != nil {
		return nil, Session{}, err
	}
	s.mu.Lock()
	err = s.load()
	r := s.records[id]
	s.mu.Unlock()
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

// steer is find for somebody who makes the session's agent do something: they need a right
// to the folder that it works in, as it is now, whoever made the session.
func (s *Service) steer(ctx context.Context, id string) (*session.Session, Session, error) {
	k, rec, err := s.find(id)
	if err != nil || k.Workspace() == session.Nowhere {
		return k, rec, err
	}
	if _, err := s.cfg.MayUse(auth.FromContext(ctx), k.Workspace()); err != nil {
		return nil, Session{}, problem(http.StatusForbidden, "workspace_not_allowed", "%v", err)
	}
	return k, rec, nil
}

// adopt makes the record of a session that was made elsewhere.
func (s *Service) adopt(k *session.Session) (*record, error) {
	s.create.Lock()
	defer s.create.Unlock()
	s.mu.Lock()
	known := s.records[k.ID()]
	s.mu.Unlock()
	if known != nil {
		return known, nil
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
	if err := s.save(*r); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records[r.ID] = r
	return r, nil
}

// settled returns a session's record as of a snapshot: the feed that counts what
// is on the tape may be behind it, and there is none while nobody has used this
// API for the session.
func (s *Service) settled(k *session.Session, sn session.Snapshot) (Session, error) {
	s.mu.Lock()
	r := s.records[k.ID()]
	if r == nil { // it was put away
		s.mu.Unlock()
		return Session{}, errUnknown
	}
	at, now := r.Counted, r.Session
	s.mu.Unlock()
	if at.Epoch != sn.Epoch || at.Seq >= sn.AsOfSeq {
		return now, nil // after a reset, the feed counts from the start
	}
	errEnough := errors.New("enough")
	err := k.Entries(at.Seq+1, func(e session.Entry) error {
		s.mu.Lock()
		again := r.Counted.Epoch != at.Epoch || r.Counted.Seq < at.Seq // was reset meanwhile
		if again || e.ID > sn.AsOfSeq {
			s.mu.Unlock()
			return errEnough
		}
		at.Seq = e.ID
		write := r.counts(e, at.Epoch, e.ID <= k.ForkedAt(), s.cfg.Price)
		s.mu.Unlock()
		s.counted(k.ID(), write)
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return Session{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.Session, nil
}

// change changes a record, in memory and on the disk.
func (s *Service) change(id string, f func(*record)) (Session, error) {
	s.mu.Lock()
	r := s.records[id]
	if r == nil {
		s.mu.Unlock()
		return Session{}, errUnknown
	}
	f(r)
	r.touch(time.Now())
	now := r.Session
	s.mu.Unlock()
	return now, s.persist(id)
}

// count takes an entry into a session's record.
func (s *Service) count(id, epoch string, e session.Entry, inherited bool) {
	s.mu.Lock()
	r := s.records[id]
	if r == nil {
		s.mu.Unlock()
		return
	}
	write := r.counts(e, epoch, inherited, s.cfg.Price)
	s.mu.Unlock()
	s.counted(id, write)
}

// counted writes the record that an entry has changed, if it is time to.
func (s *Service) counted(id string, write bool) {
	if !write {
		return
	}
	if err := s.persist(id); err != nil {
		s.cfg.Log.Warn().Err(err).Str("session", id).Msg("session.json could not be written")
	}
}

// recount forgets what was counted: it is counted again from the first entry on.
func (s *Service) recount(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[id]; r != nil {
		r.Counted, r.Usage, r.Status, r.LastTurnID = session.Cursor{}, SessionUsage{}, Active, ""
	}
}

func ended(e session.Entry) bool {
	var n session.Note
	if e.Kind != session.KindEvent || json.Unmarshal(e.Payload, &n) != nil {
		return false
	}
	switch n.Name {
	case event.TurnWasCompleted.Name(), event.TurnHasFailed.Name(), event.TurnWasCancelled.Name():
		return true
	}
	return false
}

// made is a request to make a session, checked.
type made struct {
	workspace, system, title, strategy string
	autoRun                            bool
	approvalTimeout                    int
	key, digest                        string
}

// make makes a session (S-2, S-3); one that was made with that key is returned
// again, if the request is the same.
func (s *Service) make(m made) (Session, error) {
	s.create.Lock()
	defer s.create.Unlock()
	s.mu.Lock()
	err := s.load()
	if id, known := s.keys[m.key]; err == nil && known && m.key != "" {
		r := *s.records[id]
		s.mu.Unlock()
		if r.Digest != m.digest {
			return Session{}, problem(http.StatusConflict, "idempotency_conflict", "another request was made with this Idempotency-Key")
		}
		return r.Session, nil
	}
	s.mu.Unlock()
	if err != nil {
		return Session{}, err
	}
	now := now()
	r := record{Session: Session{
		ID: newID("sess_", now), CreatedAt: now, UpdatedAt: now, Status: Active, Workspace: m.workspace, SystemPrompt: m.system, AutoRun: m.autoRun,
		Title: m.title, Strategy: m.strategy, ApprovalTimeout: m.approvalTimeout,
	}, Key: m.key, Digest: m.digest}
	r.touch(time.Now())
	// The folder first: a crash leaves one without a tape, which is no session.
	if err := s.save(r); err != nil {
		return Session{}, err
	}
	k, err := s.cfg.Sessions.Open(r.ID, m.workspace)
	if err == nil && m.system != "" {
		err = k.SetSystem(m.system)
	}
	if err == nil {
		var sn session.Snapshot
		if sn, err = k.Snapshot(); err == nil {
			err = k.Sync(context.Background(), sn.AsOfSeq)
		}
	}
	if err != nil {
		return Session{}, errors.Join(err, s.cfg.Root.RemoveAll(event.Folder(r.ID)))
	}
	r.Workspace = k.Workspace()
	s.mu.Lock()
	s.records[r.ID] = &r
	if r.Key != "" {
		s.keys[r.Key] = r.ID
	}
	s.mu.Unlock()
	f, err := s.feed(r.ID) // session_created
	if err != nil {
		return Session{}, err
	}
	f.done()
	return r.Session, nil
}

// forget forgets a session that is gone from where sessions are looked for; its
// folder stays.
func (s *Service) forget(id string) {
	s.mu.Lock()
	delete(s.records, id)
	f := s.feeds[id]
	s.mu.Unlock()
	if f != nil {
		f.drop()
	}
}

func title(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= 60 {
		return text
	}
	return string([]rune(text)[:59]) + "…"
}

func absent(err error) error {
	if errors.Is(err, session.ErrNotFound) {
		return errUnknown
	}
	return fmt.Errorf("session: %w", err)
}
