package session

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // names, not secrets (Y-178)
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/event"
)

var (
	// ErrNotFound says that there is no such session.
	ErrNotFound = errors.New("there is no such session")
	// ErrBusy refuses what cannot be done while a turn runs.
	ErrBusy   = errors.New("a turn is running")
	errFormat = errors.New("the tape was written by a newer yaya")
)

// TapeName names the tape of a session in a workspace (Y-178). The hash is a
// name and protects nothing.
func TapeName(workspace, id string) string {
	half := func(s string) string {
		h := md5.Sum([]byte(s)) //nolint:gosec // see above
		return hex.EncodeToString(h[:])[:16]
	}
	return half(workspace) + "__" + half(id)
}

// Cursor is a place in a session's history. The zero value is its beginning.
type Cursor struct {
	Epoch string `json:"epoch"`
	Seq   int64  `json:"seq"` // id of the last entry seen
}

// Session is one conversation. It lives as long as its manager; its tape is open
// while it is in use.
type Session struct {
	m         *Manager
	id        string
	workspace string
	tape      string
	parent    *parent
	birth     string // epoch of the tape's first anchor

	mu       sync.Mutex
	j        *journal.Journal // nil while the tape is not open
	st       state
	used     time.Time
	pins     int // turns and other work that need the tape open
	gone     bool
	conns    []*Connection
	live     []Item // what connections may not have seen yet
	liveFrom int64  // position of live[0] among all items
	text     []byte // the assistant's text that is not on the tape yet
	latest   Entry  // that was appended
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Workspace returns the absolute path that the session works in.
func (s *Session) Workspace() string { return s.workspace }

// Tape returns the name of its tape.
func (s *Session) Tape() string { return s.tape }

// ParentID returns the session that this one was forked from, "" if none
// or if it was reset since.
func (s *Session) ParentID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parent == nil {
		return ""
	}
	return s.parent.SessionID
}

// ForkedAt returns the last entry that the session has from its parent, 0 without
// one.
func (s *Session) ForkedAt() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parent == nil {
		return 0
	}
	return s.parent.Entry
}

// load opens the tape if it is not open; mu is held. It reads the file once.
func (s *Session) load() error {
	s.used = time.Now()
	switch {
	case s.gone:
		return fmt.Errorf("session %s: %w", s.id, ErrNotFound)
	case s.j != nil:
		return nil
	}
	var o outline
	name := tapeFile(s.tape)
	j, err := journal.Open(s.m.cfg.FS, name, journal.Options{MustExist: true, Visit: o.visit})
	if err != nil {
		return fmt.Errorf("session %s: %w", s.id, err)
	}
	st, err := s.m.derive(j, o)
	if err != nil {
		return errors.Join(fmt.Errorf("session %s: %w", s.id, err), j.Close())
	}
	s.j, s.st = j, st
	if err := s.repair(); err != nil {
		s.j = nil
		return errors.Join(fmt.Errorf("session %s: repair: %w", s.id, err), j.Close())
	}
	if s.m.opened.Add(1) > maxOpen {
		s.m.trim(s)
	}
	return nil
}

// derive computes the state from a tape and its outline.
func (m *Manager) derive(j *journal.Journal, o outline) (state, error) {
	var st state
	if o.start.Parent != nil && o.from == j.First() {
		base, err := m.history(*o.start.Parent, 0)
		if err != nil {
			return state{}, err
		}
		st.Projection = base
	}
	apply := func(_ int64, line []byte) error {
		e, err := decodeEntry(line)
		if err == nil {
			st.apply(e)
		}
		return err
	}
	from := o.from
	if o.turn > 0 {
		from = min(from, o.turn)
	}
	stop := errors.New("one is enough")
	for _, at := range []int64{o.queue, o.system} {
		if at == 0 || at >= from {
			continue
		}
		if err := j.Read(at, func(id int64, line []byte) error { return cmp.Or(apply(id, line), stop) }); !errors.Is(err, stop) {
			return state{}, err
		}
	}
	if err := j.Read(from, apply); err != nil {
		return state{}, err
	}
	st.epoch = o.epoch
	return st, nil
}

// append writes one entry and takes it in; mu is held and the tape is open.
func (s *Session) append(kind string, payload any, meta Meta) (int64, error) {
	raw, err := json.Marshal(payload)
	if err != nil {
		return 0, fmt.Errorf("entry: %w", err)
	}
	raw = s.m.cfg.Secrets.ConcealJSON(raw)
	meta.Turn = cmp.Or(meta.Turn, s.st.turn)
	now := time.Now()
	b, err := members(kind, raw, meta, now)
	if err != nil {
		return 0, err
	}
	defer s.m.stalled(s.id, "write", now)
	id, err := s.j.Append(b)
	if errors.Is(err, journal.ErrFailed) {
		if err = s.recover(err); err == nil {
			id, err = s.j.Append(b)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("session %s: %w", s.id, err)
	}
	s.latest = Entry{ID: id, Kind: kind, Payload: raw, Meta: meta, Date: now.UTC()}
	s.st.apply(s.latest)
	return id, nil
}

// recover brings a tape back whose disk failed. What had not reached the disk is
// gone, so the epoch changes and every reader starts anew (R29).
func (s *Session) recover(cause error) error {
	if _, err := s.j.Recover(); err != nil {
		return errors.Join(cause, err)
	}
	var o outline
	if err := s.j.Read(0, o.visit); err != nil {
		return err
	}
	st, err := s.m.derive(s.j, o)
	if err != nil {
		return err
	}
	s.st = st
	return s.newEpoch(fmt.Sprintf("recovered from: %v", cause))
}

func (s *Session) newEpoch(reason string) error {
	epoch := newEpoch()
	st, err := json.Marshal(struct {
		Epoch  string `json:"epoch"`
		Reason string `json:"reason"`
	}{epoch, reason})
	if err != nil {
		return err
	}
	if _, err := s.append(KindAnchor, Anchor{Name: anchorRepair, State: st}, Meta{}); err != nil {
		return err
	}
	s.live, s.liveFrom = nil, s.liveFrom+int64(len(s.live))
	s.wake()
	return nil
}

func newEpoch() string { return uuid.NewString()[:13] }

// record writes an accepted event; see [Manager.Record].
func (s *Session) record(ev *event.Event) (refuse bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, payload, ok := entryOf(*ev)
	if !ok {
		s.fanOut(*ev)
		return false, nil
	}
	if err = s.load(); err == nil {
		meta := Meta{Event: ev.ID, Client: ev.ClientID, Turn: ev.Turn}
		if ev.Source != event.KernelSource {
			meta.Source = ev.Source
		}
		ev.Entry, err = s.append(kind, payload, meta)
	}
	if err != nil && owed(ev.Kind) {
		return true, err
	}
	s.fanOut(*ev)
	return false, err
}

// Note writes an entry of kind event that did not come over this session's part
// of the bus: asks and their answers, which travel on the kernel's. Attached
// connections see it.
func (s *Session) Note(ev event.Event, data any) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return 0, err
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return 0, err
	}
	meta := Meta{Event: ev.ID}
	if ev.Source != event.KernelSource {
		meta.Source = ev.Source
	}
	id, err := s.append(KindEvent, Note{Name: ev.Kind, Data: raw}, meta)
	if err != nil {
		return 0, err
	}
	ev.Entry = id
	s.fanOut(ev)
	return id, nil
}

// Say writes a message that starts no turn: what a system or another assistant has
// said, for the model to know. client is the client's id of it, turn the turn that
// it belongs to.
func (s *Session) Say(m Message, client, turn string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return 0, err
	}
	id, err := s.append(KindMessage, m, Meta{Event: uuid.NewString(), Client: client, Turn: turn})
	if err != nil {
		return 0, err
	}
	ev, ok := s.latest.Event(s.id)
	if !ok { // no kind of event says it; readers of entries see it
		ev = event.Event{ID: s.latest.Meta.Event, SessionID: s.id, Time: s.latest.Date, Source: event.KernelSource, Entry: id}
	}
	s.fanOut(ev)
	return id, nil
}

// SetSystem sets what the model is told before anything else in this session; ""
// for nothing (S-4).
func (s *Session) SetSystem(text string) error {
	_, err := s.Note(event.Event{Kind: noteSystem, SessionID: s.id, ID: uuid.NewString(), Time: time.Now(), Source: event.KernelSource}, struct {
		Text string `json:"text"`
	}{text})
	return err
}

// SetQueue replaces the queued prompts.
func (s *Session) SetQueue(prompts []Prompt) (int64, error) {
	if prompts == nil {
		prompts = []Prompt{}
	}
	return s.Note(event.Event{Kind: NoteQueue, SessionID: s.id, ID: uuid.NewString(), Time: time.Now(), Source: event.KernelSource}, struct {
		Prompts []Prompt `json:"prompts"`
	}{prompts})
}

// Sync returns once an entry has reached the disk.
func (s *Session) Sync(ctx context.Context, entry int64) error {
	s.mu.Lock()
	err := s.load()
	j := s.j
	s.mu.Unlock()
	if err != nil {
		return err
	}
	defer s.m.stalled(s.id, "fsync", time.Now())
	return j.Sync(ctx, entry)
}

// Messages returns the history that a model is shown. It takes the same time
// however long the tape is. The slice is the caller's to read.
func (s *Session) Messages() ([]event.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return nil, err
	}
	return s.st.Messages(), nil
}

// System returns what the model is told before anything else in this session.
func (s *Session) System() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return "", err
	}
	return s.st.system, nil
}

// Admitted returns what became of the prompt that a client gave this id.
func (s *Session) Admitted(client string) (Admitted, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return Admitted{}, false, err
	}
	a, ok := s.st.prompts[client]
	return a, ok, nil
}

// Snapshot is the state of a session at one moment.
type Snapshot struct {
	Epoch   string `json:"epoch"`
	AsOfSeq int64  `json:"as_of_seq"`         // id of the last entry that it takes into account
	TurnID  string `json:"turn_id,omitempty"` // the running turn
	Text    string `json:"text,omitempty"`    // of the assistant's message in flight
	// PendingTurn is the turn that a message waits for which has started none.
	PendingTurn string   `json:"pending_turn_id,omitempty"`
	LastTurn    LastTurn `json:"last_turn,omitzero"` // that has ended
	Asks        []Ask    `json:"pending_approvals"`
	Queue       []Prompt `json:"queue"`
}

// Cursor returns the place that the snapshot was taken at.
func (s Snapshot) Cursor() Cursor { return Cursor{s.Epoch, s.AsOfSeq} }

// Snapshot returns, of one moment, what the entries alone do not say.
func (s *Session) Snapshot() (Snapshot, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return Snapshot{}, err
	}
	return s.snapshot(), nil
}

func (s *Session) snapshot() Snapshot {
	at := s.cursor()
	sn := Snapshot{Epoch: at.Epoch, AsOfSeq: at.Seq, TurnID: s.st.turn, PendingTurn: s.st.held, LastTurn: s.st.last, Text: string(s.text), Asks: slices.Clone(s.st.asks), Queue: slices.Clone(s.st.queue)}
	if sn.Asks == nil {
		sn.Asks = []Ask{}
	}
	if sn.Queue == nil {
		sn.Queue = []Prompt{}
	}
	return sn
}

func (s *Session) cursor() Cursor { return Cursor{s.st.epoch, s.j.Last()} }

// Entries visits the entries from id on, those of the parent included for a
// fork, until visit returns an error, which it returns (Y-179).
func (s *Session) Entries(from int64, visit func(Entry) error) error {
	s.mu.Lock()
	err := s.load()
	j, parent := s.j, s.parent
	if err == nil {
		s.pins++
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.pins--
		}()
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if parent != nil && from <= parent.Entry {
		if err := s.m.inherited(*parent, from, visit); err != nil {
			return err
		}
	}
	return j.Read(from, func(_ int64, line []byte) error {
		e, err := decodeEntry(line)
		if err != nil {
			return err
		}
		return visit(e)
	})
}

// Nowhere is the workspace of a session that works in no folder.
const Nowhere = os.DevNull

// absWorkspace makes a workspace comparable.
func absWorkspace(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	return filepath.Abs(dir)
}
