package sessions

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/kernel/session"
)

const (
	recordFile = "session.json"
	eventsFile = "events.ndjson"
	maxRecord  = 1 << 20
)

// Status is how a session stands.
type Status string

// The statuses. A session whose turn has ended well is active; completed is one
// that was closed. After a failed or cancelled turn the next one makes it
// active again.
const (
	Active    Status = "active"
	Waiting   Status = "waiting_approval"
	Failed    Status = "failed"
	Completed Status = "completed"
	Canceled  Status = "canceled"
)

// SessionUsage is the usage of a session.
type SessionUsage struct {
	event.Usage
	Turns int `json:"turns" doc:"turns that have ended"`
	Steps int `json:"steps" doc:"calls of the model"`
	// CostUSD is its cost at the prices of its models, as far as these are known; tokens
	// without a price cost nothing.
	CostUSD float64 `json:"cost_usd" doc:"as far as the prices of its models are known"`
}

// Session is a session as clients see it, and the content of session.json.
type Session struct {
	ID           string    `json:"id" doc:"sess_…"`
	CreatedAt    time.Time `json:"created_at"`
	UpdatedAt    time.Time `json:"updated_at"`
	Status       Status    `json:"status" enum:"active,waiting_approval,failed,completed,canceled"`
	Workspace    string    `json:"workspace_path" doc:"absolute path of the folder that its tools work in"`
	SystemPrompt string    `json:"system_prompt" doc:"sent as the first system message of every turn"`
	LastTurnID   string    `json:"last_turn_id"`
	Title        string    `json:"title" doc:"given, or the beginning of the first message"`
	AutoRun      bool      `json:"auto_run" doc:"whether messages start turns unless they say otherwise"`
	Strategy     string    `json:"strategy,omitempty" doc:"that drives its turns; the configured one by default"`
	Model        string    `json:"model,omitempty" doc:"that was chosen for it: the id of a provider, or ID/MODEL; the active one by default"`
	// Mode is that of the tape; nothing else decides about it.
	Mode     session.Mode `json:"mode" enum:"work,plan,edits" doc:"plan: the agent only reads until a person has approved its plan; edits: most changes of files need no question"`
	ParentID string       `json:"parent_id,omitempty" doc:"the session that it was forked from"`
	// ApprovalTimeout is in seconds; 0 is the configured one.
	ApprovalTimeout int          `json:"approval_timeout_seconds,omitempty"`
	Usage           SessionUsage `json:"usage"`
}

// record is a session with what the service alone has to know.
type record struct {
	Session
	// Counted is the last entry that Usage and LastTurnID take into account.
	Counted session.Cursor `json:"counted"`
	// LastModel is the model of the last turn. It hides the choice in the file, where that has a name
	// of its own.
	LastModel string `json:"model,omitempty"`
	Chosen    string `json:"chosen_model,omitempty"`
	Key       string `json:"idempotency_key,omitempty"`
	Digest    string `json:"request_digest,omitempty"`
	// Adopted sessions were made elsewhere: by the command line, or a device.
	Adopted bool `json:"adopted,omitempty"`
	// Client is the MCP client that has begun the session, if one has.
	Client *Client `json:"client,omitempty"`
	// Changed is UpdatedAt as precisely as order needs it.
	Changed time.Time `json:"changed"`

	used       time.Time
	rev, saved int  // of what the tape does not tell: it is lost if it is not written
	cut        bool // the tape ends before Counted, and the log says so
}

func (r *record) touch(at time.Time) {
	r.Changed = at.UTC()
	r.UpdatedAt = r.Changed.Truncate(time.Millisecond)
}

func (s *Service) file(id, name string) string { return path.Join(event.Folder(id), name) }

// persist writes session.json as the session is now, into the folder that open opens.
func (s *Service) persist(id string, open func(id string) (*os.Root, error)) error {
	s.disk.Lock()
	defer s.disk.Unlock()
	s.mu.Lock()
	r := s.records[id]
	if r == nil {
		s.mu.Unlock()
		return nil // it was put away
	}
	now := *r
	s.mu.Unlock()
	s.cfg.Sessions.Mark(id, now.mark(), now.Changed)
	dir, err := open(id)
	if err == nil {
		err = s.write(dir, now)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r.saved = now.rev
	return nil
}

// save writes a session.json, and makes the session's folder for it.
func (s *Service) save(r record) error {
	dir, err := s.made(r.ID)
	if err != nil {
		return fmt.Errorf("session %s: %w", r.ID, err)
	}
	return s.write(dir, r)
}

// there opens the folder of a session if it is there.
func (s *Service) there(id string) (*os.Root, error) { return s.cfg.Root.OpenRoot(event.Folder(id)) }

// made is there, and makes the folder.
func (s *Service) made(id string) (*os.Root, error) {
	if err := s.cfg.Root.MkdirAll(event.Folder(id), 0o700); err != nil {
		return nil, err
	}
	return s.there(id)
}

// write writes a session.json into the folder of its session, which it closes.
func (s *Service) write(dir *os.Root, r record) error {
	r.Chosen = r.Model
	raw, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		_, err = atomicfile.Write(dir, recordFile, append(raw, '\n'))
	}
	if err == nil {
		s.cfg.Sessions.Saved(r.ID, path.Join("sessions", event.Folder(r.ID), recordFile))
		err = s.describe(r)
	}
	return errors.Join(err, dir.Close())
}

// read reads session.json; a session without one is none of ours.
func (s *Service) read(folder string) (record, error) {
	var r record
	f, err := s.cfg.Root.OpenFile(path.Join(folder, recordFile), os.O_RDONLY, 0)
	if err != nil {
		return r, err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, maxRecord)) //nolint:forbidigo // bounded
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r); err != nil || r.ID == "" {
		return r, fmt.Errorf("%s/%s is not a session's: %w", folder, recordFile, errors.Join(err, fs.ErrInvalid))
	}
	r.Model, r.Mode = r.Chosen, cmp.Or(r.Mode, session.Work)
	return r, nil
}

// count takes an entry of the tape into the record; it reports whether something
// has changed, and whether a turn or a compaction has ended. It leaves entries inherited from a parent to the
// parent's record.
func (r *record) count(e session.Entry, epoch string, inherited bool, price func(model string, u event.Usage) float64) (changed, ended bool) {
	if r.Counted.Epoch == epoch && e.ID <= r.Counted.Seq {
		return false, false
	}
	if r.Counted.Epoch != "" && r.Counted.Epoch != epoch { // this tape is counted from its start
		r.recount()
	}
	r.Counted = session.Cursor{Epoch: epoch, Seq: e.ID}
	switch e.Kind {
	case session.KindMessage:
		r.touch(e.Date)
		var m session.Message
		if r.Title == "" && json.Unmarshal(e.Payload, &m) == nil && m.Role == "user" {
			r.Title = cut.Line(m.Content, 60)
		}
	case session.KindEvent:
		if inherited {
			return false, false // it is the parent's
		}
		n, ok := e.Note()
		if !ok || !e.Owns(n.Name) || !r.note(n, e.Meta.Turn, price) {
			return false, false
		}
		r.touch(e.Date)
		switch n.Name {
		case event.TurnWasCompleted.Name(), event.TurnHasFailed.Name(), event.TurnWasCancelled.Name():
			ended = true
		}
	case session.KindAnchor:
		c, ok := session.CompactionOf(e)
		if !ok || inherited || c.Usage == (event.Usage{}) && c.CostUSD == 0 {
			return false, false
		}
		r.Usage.Usage, r.Usage.CostUSD = llm.Add(r.Usage.Usage, c.Usage), r.Usage.CostUSD+max(c.CostUSD, 0)
		r.touch(e.Date)
		ended = true
	default:
		return false, false
	}
	return true, ended
}

// counts is count; it reports whether the record is to be written: something has
// ended or begins to wait.
func (r *record) counts(e session.Entry, epoch string, inherited bool, price func(model string, u event.Usage) float64) bool {
	was := r.Status
	changed, ended := r.count(e, epoch, inherited, price)
	return changed && (r.Status != was || r.Counted.Seq <= 2 || ended)
}

func (r *record) note(n session.Note, turn string, price func(model string, u event.Usage) float64) bool {
	switch n.Name {
	case event.TurnWasStarted.Name():
		var t event.TurnStarted
		if json.Unmarshal(n.Data, &t) == nil {
			r.LastModel, r.LastTurnID, r.Status = t.Model, t.TurnID, Active
		}
	case event.LLMCallResponse.Name():
		var l event.LLMResponse
		if json.Unmarshal(n.Data, &l) == nil && (l.RequestID != "" || l.Partial()) { // else the strategy has said it
			r.Usage.Usage = llm.Add(r.Usage.Usage, l.Usage)
			r.Usage.Steps++
			if l.Model != "" || l.CostUSD > 0 { // else an older tape's, or a plugin's that does not say
				r.Usage.CostUSD += max(l.CostUSD, 0)
			} else {
				r.Usage.CostUSD += price(r.LastModel, l.Usage)
			}
		}
	case event.TurnWasCompleted.Name():
		r.Status, r.LastTurnID = Active, turn
		r.Usage.Turns++
	case event.TurnHasFailed.Name():
		r.Status, r.LastTurnID = Failed, turn
		r.Usage.Turns++
	case event.TurnWasCancelled.Name():
		r.Status, r.LastTurnID = Canceled, turn
		r.Usage.Turns++
	case event.ApprovalRequested.Name():
		r.Status = Waiting
	case event.ApprovalAnswered.Name(), event.ApprovalWithdrawn.Name():
		if r.Status == Waiting {
			r.Status = Active
		}
	case noteClosed:
		r.Status = Completed
	case session.NoteMode:
		if m, ok := session.ModeOf(n.Data); ok {
			r.Mode = m
		}
	case session.NoteModel:
		if m, ok := session.ChosenModel(n.Data); ok {
			r.Model = m
		}
	default:
		return false
	}
	return true
}

// settled returns a session's record as of a snapshot: the feed that counts what
// is on the tape may be behind it, and there is none while nobody has used this
// API for the session.
func (s *Service) settled(k *session.Session, sn session.Snapshot) (Session, error) {
	r, err := s.record(k.ID())
	if err != nil {
		return Session{}, err
	}
	if r == nil { // it was put away
		return Session{}, unknown(k.ID())
	}
	s.mu.Lock()
	at, now := r.Counted, r.Session
	s.mu.Unlock()
	if at.Epoch == sn.Epoch && at.Seq > sn.AsOfSeq {
		s.cut(k.ID(), at.Seq, sn.AsOfSeq)
	}
	if (at.Epoch != sn.Epoch && at.Epoch != "") || at.Seq >= sn.AsOfSeq {
		return now, nil // after a reset, the feed counts from the start
	}
	write := false
	err = k.Entries(at.Seq+1, func(e session.Entry) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		again := (r.Counted.Epoch != at.Epoch && r.Counted.Epoch != sn.Epoch) || r.Counted.Seq < at.Seq // was reset meanwhile
		if again || e.ID > sn.AsOfSeq {
			return fs.SkipAll
		}
		write = r.counts(e, sn.Epoch, e.ID <= k.ForkedAt(), s.cfg.Price) || write
		at = session.Cursor{Epoch: sn.Epoch, Seq: e.ID}
		return nil
	})
	s.counted(k.ID(), write)
	if err != nil {
		return Session{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return r.Session, nil
}

// catchUp counts what the tape has: a crash may have left a record that is older than events.ndjson,
// behind which the feed goes on.
func (s *Service) catchUp(k *session.Session) error {
	sn, err := k.Snapshot()
	if err == nil {
		_, err = s.settled(k, sn)
	}
	return err
}

// cut logs, once for each session, that its tape has lost entries that were counted.
func (s *Service) cut(id string, had, has int64) {
	s.mu.Lock()
	r := s.records[id]
	told := r == nil || r.cut
	if r != nil {
		r.cut = true
	}
	s.mu.Unlock()
	if !told {
		s.cfg.Log.Error().Str("session", id).Int64("had", had).Int64("has", has).Msg("the tape of a session has lost entries at its end: yaya repair has it say so")
	}
}

// change changes a record, in memory and on the disk.
func (s *Service) change(id string, f func(*record)) (Session, error) {
	r, err := s.record(id)
	if err != nil {
		return Session{}, err
	}
	if r == nil {
		return Session{}, unknown(id)
	}
	s.mu.Lock()
	f(r)
	r.rev++
	r.touch(time.Now())
	now := r.Session
	s.mu.Unlock()
	return now, s.persist(id, s.made)
}

// count takes an entry into a session's record; it reports whether the record is to be written.
// Lists have it at once.
func (s *Service) count(id, epoch string, e session.Entry, inherited bool) (write bool) {
	s.mu.Lock()
	r := s.records[id]
	if r == nil || !r.counts(e, epoch, inherited, s.cfg.Price) {
		s.mu.Unlock()
		return false
	}
	mark, changed := r.mark(), r.Changed
	s.mu.Unlock()
	s.cfg.Sessions.Mark(id, mark, changed)
	return true
}

// counted writes the record that an entry has changed, if it is time to.
func (s *Service) counted(id string, write bool) {
	if !write {
		return
	}
	err := s.persist(id, s.there)
	if errors.Is(err, fs.ErrNotExist) {
		return // it was put away, or is another node's
	}
	if err != nil {
		s.cfg.Log.Warn().Err(err).Str("session", id).Msg("session.json could not be written")
	}
}

// recount forgets what was counted: it is counted again from the first entry on.
func (s *Service) recount(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.records[id]; r != nil {
		r.recount()
	}
}

func (r *record) recount() {
	r.Counted, r.Usage, r.Status, r.LastTurnID = session.Cursor{}, SessionUsage{}, Active, ""
}
