package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
)

const (
	tapesDir   = "tapes"
	archiveDir = "tapes/.archive"

	// Persister is the event source of failed writes.
	Persister = "kernel-session-persister"
	// ContextSource is the event source for connections.
	ContextSource = "kernel-session-context"
)

// MinFree is the free space that a new message needs, in bytes: running turns need
// some to end properly.
const MinFree = 64 << 20

// ErrDiskFull means that too little space is free for new work.
var ErrDiskFull = errors.New("too little space is free on the disk of the data directory")

// DiskFullError is [ErrDiskFull] with how much is free.
type DiskFullError struct{ Free int64 }

func (e *DiskFullError) Error() string {
	return fmt.Sprintf("%v: %d MiB are free, and %d MiB are kept for running turns; free some space", ErrDiskFull, e.Free>>20, int64(MinFree>>20))
}

// Unwrap returns [ErrDiskFull].
func (*DiskFullError) Unwrap() error { return ErrDiskFull }

// Room returns a [*DiskFullError] while too little space is free for new work.
func (m *Manager) Room() error {
	free, err := m.cfg.FS.Free()
	if err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if free.Bytes < MinFree {
		return &DiskFullError{free.Bytes}
	}
	return nil
}

// stall is the time after which a write or an fsync counts as stalled.
const stall = 2 * time.Second

// stalled logs that the disk took too long.
func (m *Manager) stalled(session, what string, since time.Time) {
	if took := time.Since(since); took >= stall {
		m.cfg.Log.Warn().Str("session", session).Dur("took", took).Msg("the disk is slow: " + what)
	}
}

func tapeFile(tape string) string { return path.Join(tapesDir, tape+".jsonl") }

// Config adjusts a manager. FS is required.
type Config struct {
	FS journal.FS // the data directory
	// Workspace is the default workspace of sessions.
	Workspace string
	// HeartbeatTimeout is how long a connection may be silent. Default 60 s.
	HeartbeatTimeout time.Duration
	// ReapInterval is how often the manager looks for silent connections. Default 5 s.
	// A silent connection is found within [HeartbeatTimeout,
	// HeartbeatTimeout+ReapInterval).
	ReapInterval time.Duration
	// IdleAfter is how long an unused tape stays open. Default 5 min.
	IdleAfter time.Duration
	// Owner says which sessions this node of a cluster may write to; nil: all.
	Owner Owner
	// Adopted is called with a session that was taken over from another node. Optional.
	Adopted func(*Session)
	// Secrets are concealed on tapes. Optional.
	Secrets *masked.Secrets
	Log     zerolog.Logger
}

// Manager holds the sessions of a data directory. It is the bus's recorder.
type Manager struct {
	cfg Config

	mu       sync.Mutex
	bus      *bus.Bus
	sessions map[string]*Session              // that are in use
	resting  map[string]weak.Pointer[Session] // that somebody may still hold; see [Manager.rest]
	index    *index
	opened   atomic.Int64 // tapes that are open
	closed   bool
	named    atomic.Bool // the name of queuedDir has reached the disk
	conns    sync.WaitGroup
	adopting map[string]chan struct{} // sessions that are being taken over, each until its channel is closed; mu is held
	giving   sync.Mutex               // held while a session is given up
	// atRest is called for what needs a session at rest, see [Manager.SetAtRest].
	atRest func(id string, s *Session, act func() error) error
	ended  func(id string) error // see [Manager.SetEnded]
}

// OpenManager prepares the data directory. Bind must be called before sessions
// are opened.
func OpenManager(cfg Config) (*Manager, error) {
	cfg.HeartbeatTimeout = cmp.Or(cfg.HeartbeatTimeout, time.Minute)
	cfg.ReapInterval = cmp.Or(cfg.ReapInterval, 5*time.Second)
	cfg.IdleAfter = cmp.Or(cfg.IdleAfter, 5*time.Minute)
	if err := cfg.FS.MkdirAll(archiveDir); err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	ws, err := absWorkspace(cfg.Workspace)
	if err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	cfg.Workspace = ws
	return &Manager{cfg: cfg, sessions: map[string]*Session{}, resting: map[string]weak.Pointer[Session]{}, adopting: map[string]chan struct{}{}, index: newIndex(cfg.FS, cfg.Log),
		atRest: func(_ string, _ *Session, act func() error) error { return act() }, ended: func(string) error { return nil }}, nil
}

// Bind sets the bus on which the manager announces changes of sessions.
func (m *Manager) Bind(b *bus.Bus) { m.bus = b }

// SetAtRest has archives, resets and deletions of sessions wait for whoever runs their turns: f calls
// act while nothing runs in the session of that id or begins, and else returns an [ErrBusy]. s is nil
// for a deletion. Call it before sessions are opened.
func (m *Manager) SetAtRest(f func(id string, s *Session, act func() error) error) { m.atRest = f }

// SetEnded has f remove what others keep of a session, when that was deleted, archived, or put away. A reset
// session goes on. Call it before sessions are opened.
func (m *Manager) SetEnded(f func(id string) error) { m.ended = f }

// Run reaps silent connections and closes idle tapes until ctx ends.
func (m *Manager) Run(ctx context.Context) error {
	tick := time.NewTicker(m.cfg.ReapInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			m.reap(time.Now())
			if m.index.stale.Load() { // nobody else has compared it
				if err := m.Index(ctx); err != nil && ctx.Err() == nil {
					m.cfg.Log.Warn().Err(err).Msg("the list of sessions may be out of date")
				}
			}
			if err := m.index.flush(); err != nil {
				m.cfg.Log.Warn().Err(err).Msg("the index of sessions could not be written")
			}
		}
	}
}

func (m *Manager) all() []*Session {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*Session, 0, len(m.sessions))
	for _, s := range m.sessions {
		out = append(out, s)
	}
	return out
}

func (m *Manager) reap(now time.Time) {
	for _, s := range m.all() {
		for _, c := range s.silent(now.Add(-m.cfg.HeartbeatTimeout)) {
			c.end("timeout")
		}
		if err := s.unload(now.Add(-m.cfg.IdleAfter)); err != nil {
			m.cfg.Log.Warn().Err(err).Str("session", s.id).Msg("an idle tape could not be closed")
		}
		m.rest(s)
	}
	m.forget()
}

// Close detaches every connection with reason shutdown, waits for them,
// and closes the tapes.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	for _, s := range m.all() {
		for _, c := range s.connections() {
			c.end("shutdown")
		}
	}
	done := make(chan struct{})
	go func() {
		m.conns.Wait()
		close(done)
	}()
	var errs []error
	select {
	case <-done:
	case <-ctx.Done():
		errs = append(errs, fmt.Errorf("connections are still sending: %w", ctx.Err()))
	}
	for _, s := range m.all() {
		s.mu.Lock()
		errs = append(errs, s.close())
		s.gone = true
		s.mu.Unlock()
	}
	return errors.Join(append(errs, m.index.close())...)
}

// Prepare implements [bus.Recorder]: a message to a session that is not open
// opens it. Any other event of a session that is no longer in memory brings it back.
func (m *Manager) Prepare(kind, id string) error {
	if strings.HasPrefix(id, event.BridgePrefix) {
		return nil
	}
	if kind != event.UserMessageReceived.Name() {
		m.revive(kind, id)
		if m.cfg.Owner == nil || !acts(kind) {
			return nil
		}
		if s, there := m.lookup(id); there {
			return m.hold(id, s.workspace)
		}
		return nil
	}
	if err := m.Room(); err != nil {
		return err
	}
	s, err := m.Open(id, "")
	if err != nil {
		return err
	}
	return m.hold(id, s.workspace)
}

// Record implements [bus.Recorder].
func (m *Manager) Record(ev *event.Event) (refuse bool, err error) {
	s, ok := m.lookup(ev.SessionID)
	if !ok {
		return false, nil
	}
	return s.record(ev)
}

// Failed implements [bus.Recorder]: the session continues, and the failure is
// reported.
func (m *Manager) Failed(ev event.Event, err error) {
	m.cfg.Log.Warn().Err(err).Str("session", ev.SessionID).Str("kind", ev.Kind).Msg("an event could not be written to its tape")
	m.publish(func(e *bus.Emitter) error {
		_, err := bus.Publish(e.Named(Persister), event.PluginFailed, event.KernelSession, event.PluginError{Name: Persister, Error: err.Error()})
		return err
	})
}

// publish publishes an event; during shutdown there may be no bus left.
func (m *Manager) publish(f func(*bus.Emitter) error) {
	if err := f(m.bus.Kernel()); err != nil && !errors.Is(err, bus.ErrClosed) {
		m.cfg.Log.Error().Err(err).Msg("a session event could not be published")
	}
}

func (m *Manager) lookup(id string) (*Session, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.known(id)
	return s, s != nil
}

// Get returns an open session.
func (m *Manager) Get(id string) (*Session, bool) { return m.lookup(id) }

// Open returns the session with that id, and creates it if needed. With workspace
// "" it uses the session's own, or the default for a new session.
func (m *Manager) Open(id, workspace string) (*Session, error) {
	return m.open(id, workspace, true, "")
}

// OpenIn is Open for a session that begins in a mode, if it is new.
func (m *Manager) OpenIn(id, workspace string, mode Mode) (*Session, error) {
	return m.open(id, workspace, true, mode)
}

// Find returns an existing session.
func (m *Manager) Find(id, workspace string) (*Session, error) {
	return m.open(id, workspace, false, "")
}

func (m *Manager) open(id, workspace string, create bool, mode Mode) (*Session, error) {
	ws, err := absWorkspace(workspace)
	if err != nil {
		return nil, err
	}
	if s, ok := m.lookup(id); ok {
		if ws != "" && ws != s.workspace {
			return nil, fmt.Errorf("session %s is open in %s, not in %s", id, s.workspace, ws)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		return s, s.load()
	}
	if err := event.CheckSession(id); err != nil || id == event.KernelSession || strings.HasPrefix(id, event.BridgePrefix) {
		return nil, errors.Join(fmt.Errorf("%q is not a valid session id", id), err)
	}
	head, found, err := m.locate(id, ws)
	if found && err == nil {
		found, err = m.stays(id)
	}
	switch {
	case err != nil:
		return nil, err
	case found:
		ws = head.Workspace
	case !create || event.Root(id) != id:
		return nil, notFound(id)
	default:
		ws = cmp.Or(ws, m.cfg.Workspace)
		if err := m.hold(id, ws); errors.Is(err, ErrElsewhere) { // its node may be dead
			return m.Adopt(context.Background(), id)
		} else if err != nil {
			return nil, err
		}
	}
	s := &Session{m: m, id: id, workspace: ws, tape: TapeName(ws, id), parent: head.Parent, birth: head.Epoch}
	return m.admit(s, func() error {
		if found {
			err := s.load()
			if m.cfg.Owner != nil && errors.Is(err, fs.ErrNotExist) { // since it was found
				return movedAway(id)
			}
			return err
		}
		defer m.index.naming()()
		s.st.mode = mode
		if err := s.create(tapeFile(s.tape), 1); err != nil {
			return err
		}
		s.indexed()
		return m.savedFolder(id) // it was written before the node had claimed the session
	})
}

// locate finds the tape of a session.
func (m *Manager) locate(id, ws string) (start, bool, error) {
	if ws != "" {
		h, _, err := m.header(tapeFile(TapeName(ws, id)))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errEmpty) {
			return start{}, false, nil
		}
		return h, err == nil, damagedOf(id, err)
	}
	// It looks at the usual place first: one file instead of all.
	if h, _, err := m.header(tapeFile(TapeName(m.cfg.Workspace, id))); err == nil {
		return h, true, nil
	}
	got, err := m.elsewhere(id)
	switch {
	case err != nil || len(got) == 0:
		return start{}, false, err
	case len(got) > 1:
		return start{}, false, fmt.Errorf("session %s exists in %d workspaces: name the workspace", id, len(got))
	}
	return got[0], true, nil
}

// admit registers a session and opens it, once for all concurrent callers.
func (m *Manager) admit(s *Session, open func() error) (*Session, error) {
	s.mu.Lock()
	m.mu.Lock()
	if other := m.known(s.id); other != nil || m.closed {
		m.mu.Unlock()
		s.mu.Unlock()
		if other == nil {
			return nil, bus.ErrClosed
		}
		other.mu.Lock()
		defer other.mu.Unlock()
		return other, other.load()
	}
	m.sessions[s.id] = s
	m.mu.Unlock()
	err := open()
	if err != nil {
		err = errors.Join(err, s.close())
		s.gone = true
		m.mu.Lock()
		delete(m.sessions, s.id)
		m.mu.Unlock()
	}
	s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	m.publish(func(e *bus.Emitter) error {
		_, err := bus.Publish(e, event.SessionWasStarted, s.id, event.SessionStarted{SessionID: s.id, TapeName: s.tape, Workspace: s.workspace})
		return err
	})
	return s, nil
}

// create creates the tape of a new session; mu is held. It reuses an empty file,
// which a crash can leave.
func (s *Session) create(name string, first int64) error {
	j, err := journal.Open(s.m.cfg.FS, name, journal.Options{First: first})
	if err != nil {
		return fmt.Errorf("session %s: %w", s.id, err)
	}
	if j.Last() >= j.First() {
		return errors.Join(fmt.Errorf("session %s: %s holds another tape", s.id, name), j.Close())
	}
	s.j, s.st = j, state{Projection: s.st.Projection, model: s.st.model, mode: s.st.mode}
	s.touch()
	if err := s.begin(); err != nil {
		s.j = nil
		return errors.Join(err, j.Close())
	}
	if s.m.opened.Add(1) > maxOpen {
		s.m.trim(s)
	}
	return nil
}

// begin writes the first anchor of a tape; mu is held.
func (s *Session) begin() error {
	s.birth = newEpoch()
	st, err := json.Marshal(start{tapeFormat, s.id, s.workspace, s.birth, s.parent, s.st.model, s.st.mode, s.only})
	if err != nil {
		return err
	}
	_, err = s.append(KindAnchor, Anchor{Name: anchorStart, State: st}, Meta{})
	return err
}
