package session

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // names, not secrets (Y-178)
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/event"
)

var (
	// ErrNotFound reports a session that does not exist.
	ErrNotFound = errors.New("session not found")
	// ErrBusy means that an operation needs an idle session, and a turn runs.
	ErrBusy   = errors.New("a turn is running")
	errFormat = errors.New("the tape was written by a newer yaya")
)

// notFound is [ErrNotFound] with the session's id.
func notFound(id string) error { return worded.Error(ErrNotFound, "session %q not found", id) }

// TapeName names the tape of a session in a workspace. The hash serves as a name,
// not as protection.
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

// Session is one conversation. It exists as long as its manager; its tape is open
// while it is in use.
type Session struct {
	m         *Manager
	id        string
	workspace string
	tape      string
	parent    *parent
	birth     string // epoch of the tape's first anchor

	// forking is read-held from the look at the tape until a fork of it is there, and held while the tape
	// goes away. It is taken before mu.
	forking sync.RWMutex

	mu       sync.Mutex
	only     []string         // the tools of a sub-agent; nil means all
	j        *journal.Journal // nil while the tape is not open
	st       state
	used     atomic.Int64 // when it was used last, in nanoseconds
	pins     int          // turns and other work that need the tape open
	gone     bool
	moved    bool // and is on another node
	apart    bool // its tape is not under its name yet
	conns    []*Connection
	live     []Item // items that connections may not have seen yet
	liveFrom int64  // position of live[0] among all items
	text     []byte // the assistant's text that is not on the tape yet
	latest   Entry  // that was appended
	marked   bool   // there may be a marker of its queue …
	lasting  bool   // … and it has reached the disk
}

// ID returns the session's id.
func (s *Session) ID() string { return s.id }

// Workspace returns the absolute path of the session's folder.
func (s *Session) Workspace() string { return s.workspace }

// Tape returns the name of its tape.
func (s *Session) Tape() string { return s.tape }

// ParentID returns the session from which this one was forked, "" if none or after
// a reset.
func (s *Session) ParentID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.parent == nil {
		return ""
	}
	return s.parent.SessionID
}

// ForkedAt returns the last entry inherited from the parent, 0 without a parent.
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
	s.touch()
	switch {
	case s.moved:
		return movedAway(s.id)
	case s.gone:
		return notFound(s.id)
	case s.j != nil:
		return nil
	}
	if err := s.m.awake(s); err != nil {
		return err
	}
	var o outline
	name := tapeFile(s.tape)
	j, err := journal.Open(s.m.cfg.FS, name, journal.Options{MustExist: true, Visit: o.visit})
	if err != nil {
		return ofSession(s.id, err)
	}
	st, err := s.m.derive(j, o)
	if err != nil {
		return errors.Join(ofSession(s.id, err), j.Close())
	}
	s.j, s.st, s.only = j, st, o.start.Tools
	if o.orphan {
		s.parent = nil
	}
	if err := s.repair(); err != nil {
		s.j = nil
		return errors.Join(fmt.Errorf("session %s: repair: %w", s.id, err), j.Close())
	}
	s.m.index.open(s.key(), s.j.Size(), true, s.settled())
	if s.m.opened.Add(1) > maxOpen {
		s.m.trim(s)
	}
	return nil
}

// key is the tape's key in the index.
func (s *Session) key() tapeKey {
	k, _ := keyOf(s.tape)
	return k
}

// indexed notes a tape that is new; mu is held.
func (s *Session) indexed() {
	s.m.index.put(s.key(), s.id, details{s.workspace, "", s.parent}, s.j.Size(), time.Now(), true)
}

// derive computes the state from a tape and its outline.
func (m *Manager) derive(j *journal.Journal, o outline) (state, error) {
	st := state{model: o.start.Model, mode: o.start.Mode}
	if o.start.Parent != nil && o.from == j.First() && !o.orphan {
		base, err := m.history(*o.start.Parent, 0)
		if err != nil {
			return state{}, err
		}
		st.Projection = base.base()
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
	if o.asked > 0 {
		from = min(from, o.asked)
	}
	stop := errors.New("one is enough")
	for _, at := range []int64{o.queue, o.system, o.model, o.mode} {
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
	st.epoch, st.cuts = o.epoch, o.cuts
	return st, nil
}

// record writes an accepted event; see [Manager.Record].
func (s *Session) record(ev *event.Event) (refuse bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, payload, ok := entryOf(*ev)
	if ev.Kind == event.SessionHandedOff.Name() {
		return false, nil // connections have it, with the entry of the anchor
	}
	if !ok {
		s.fanOut(*ev)
		return false, nil
	}
	if err = s.load(); err == nil {
		meta := Meta{Event: ev.ID, Client: ev.ClientID, Turn: ev.Turn, Starts: ev.Starts}
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

// Note writes an entry of kind event that did not travel on this session: asks and
// their answers, which travel on the kernel session. Attached connections see it.
func (s *Session) Note(ev event.Event, data any) (int64, error) { return s.note(ev, data, "") }

// note is Note for an entry that holds in one epoch only; "" is any.
func (s *Session) note(ev event.Event, data any, epoch string) (int64, error) {
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
	id, err := s.appendIn(epoch, KindEvent, Note{Name: ev.Kind, Data: raw}, meta)
	if err != nil {
		return 0, err
	}
	ev.Entry = id
	s.fanOut(ev)
	return id, nil
}

// Say writes a message that starts no turn: from a system or another assistant, as
// context for the model. client is the client's id of the message, turn the turn
// that it belongs to.
func (s *Session) Say(m Message, client, turn string) (int64, error) {
	if err := s.m.hold(s.id, s.workspace); err != nil {
		return 0, err
	}
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
	if !ok { // no event kind carries it; readers of entries see it
		ev = event.Event{ID: s.latest.Meta.Event, SessionID: s.id, Time: s.latest.Date, Source: event.KernelSource, Entry: id}
	}
	s.fanOut(ev)
	return id, nil
}

// SetSystem sets the system prompt of this session; "" removes it.
func (s *Session) SetSystem(text string) error {
	if err := s.m.hold(s.id, s.workspace); err != nil {
		return err
	}
	_, err := s.Note(event.Event{Kind: noteSystem, SessionID: s.id, ID: uuid.NewString(), Time: time.Now(), Source: event.KernelSource}, struct {
		Text string `json:"text"`
	}{text})
	return err
}

// Sync returns once an entry has reached the disk, and those of the cluster that it is kept on. If the
// disk fails, the session goes on from what is on it: its state no longer has the entry.
func (s *Session) Sync(ctx context.Context, entry int64) error {
	s.mu.Lock()
	err := s.load()
	j := s.j
	var f File
	if err == nil && s.m.cfg.Owner != nil {
		f = s.file(j.Size())
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	begun := time.Now()
	err = j.Sync(ctx, entry)
	s.m.stalled(s.id, "fsync", begun)
	if err == nil && s.m.cfg.Owner != nil {
		return s.kept(ctx, f)
	}
	if !errors.Is(err, journal.ErrFailed) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.j == j && errors.Is(j.Err(), journal.ErrFailed) { // else somebody has recovered it
		return errors.Join(err, s.recover(err))
	}
	return err
}

// Messages returns the model's history. It takes the same time however long the
// tape is. The caller must not modify the slice.
func (s *Session) Messages() ([]event.Message, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return nil, err
	}
	return s.st.Messages(), nil
}

// Tokens returns the estimated length of the model's history, in tokens.
func (s *Session) Tokens() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return 0, err
	}
	return s.st.Tokens(), nil
}

// System returns the system prompt of this session.
func (s *Session) System() (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.load(); err != nil {
		return "", err
	}
	return s.st.system, nil
}

// Admitted returns the fate of the prompt to which a client gave this id.
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
	// PendingTurn is the turn that a held message waits for.
	PendingTurn string   `json:"pending_turn_id,omitempty"`
	LastTurn    LastTurn `json:"last_turn,omitzero"` // that has ended
	// Owed is true if that message was to start its turn, and a crash came between.
	Owed  bool     `json:"-"`
	Asks  []Ask    `json:"pending_approvals"`
	Queue []Prompt `json:"queue"`
}

// Cursor returns the position of the snapshot.
func (s Snapshot) Cursor() Cursor { return Cursor{s.Epoch, s.AsOfSeq} }

// Snapshot returns the state of one moment that the entries alone do not contain.
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
	sn := Snapshot{Epoch: at.Epoch, AsOfSeq: at.Seq, TurnID: s.st.turn, PendingTurn: s.st.held, Owed: s.st.owed, LastTurn: s.st.last, Text: string(s.text), Asks: slices.Clone(s.st.asks), Queue: slices.Clone(s.st.queue)}
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
// fork, until visit returns an error, which it returns. [fs.SkipAll] ends the
// visit without an error.
func (s *Session) Entries(from int64, visit func(Entry) error) error {
	err := s.visit(from, visit)
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

func (s *Session) visit(from int64, visit func(Entry) error) error {
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

// absWorkspace normalizes a workspace for comparison.
func absWorkspace(dir string) (string, error) {
	if dir == "" {
		return "", nil
	}
	return filepath.Abs(dir)
}
