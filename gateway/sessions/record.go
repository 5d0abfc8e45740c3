package sessions

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/llm"
	"github.com/yaya-ai/yaya/kernel/session"
)

const (
	recordFile = "session.json"
	eventsFile = "events.ndjson"
	maxRecord  = 1 << 20
)

// Status is how a session stands (S-23).
type Status string

// The statuses. A session whose turn has ended well is active; completed is one
// that was closed (S-16). After a failed or cancelled turn the next one makes it
// active again.
const (
	Active    Status = "active"
	Waiting   Status = "waiting_approval"
	Failed    Status = "failed"
	Completed Status = "completed"
	Canceled  Status = "canceled"
)

// SessionUsage is what a session has used up.
type SessionUsage struct {
	event.Usage
	Turns int `json:"turns" doc:"turns that have ended"`
	Steps int `json:"steps" doc:"calls of the model"`
	// CostUSD is what the models' prices make of it (input_price and output_price
	// of its provider); what has no price costs nothing.
	CostUSD float64 `json:"cost_usd" doc:"by the configured prices; 0 without"`
}

// Session is a session as clients see it, and the content of session.json (S-23).
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
	ParentID     string    `json:"parent_id,omitempty" doc:"the session that it was forked from"`
	// ApprovalTimeout is in seconds; 0 is the configured one.
	ApprovalTimeout int          `json:"approval_timeout_seconds,omitempty"`
	Usage           SessionUsage `json:"usage"`
}

// record is a session with what the service alone has to know.
type record struct {
	Session
	// Counted is the last entry that Usage and LastTurnID take into account.
	Counted session.Cursor `json:"counted"`
	Model   string         `json:"model,omitempty"` // of the last turn
	Key     string         `json:"idempotency_key,omitempty"`
	Digest  string         `json:"request_digest,omitempty"`
	// Adopted sessions were made elsewhere: by the command line, or a device.
	Adopted bool `json:"adopted,omitempty"`
	// Changed is UpdatedAt as precisely as order needs it.
	Changed time.Time `json:"changed"`
}

func (r *record) touch(at time.Time) {
	r.Changed = at.UTC()
	r.UpdatedAt = r.Changed.Truncate(time.Millisecond)
}

func (s *Service) file(id, name string) string { return path.Join(event.Folder(id), name) }

// persist writes session.json as the session is now.
func (s *Service) persist(id string) error {
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
	return s.save(now)
}

// save writes a session.json.
func (s *Service) save(r record) error {
	raw, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	folder := event.Folder(r.ID)
	if err := s.cfg.Root.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("session %s: %w", r.ID, err)
	}
	dir, err := s.cfg.Root.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("session %s: %w", r.ID, err)
	}
	_, err = atomicfile.Write(dir, recordFile, append(raw, '\n'))
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
	return r, nil
}

// count takes an entry of the tape into the record; it reports whether something
// has changed. What was inherited from a parent is the parent's to count.
func (r *record) count(e session.Entry, epoch string, inherited bool, price func(model string, u event.Usage) float64) bool {
	if r.Counted.Epoch == epoch && e.ID <= r.Counted.Seq {
		return false
	}
	r.Counted = session.Cursor{Epoch: epoch, Seq: e.ID}
	switch e.Kind {
	case session.KindMessage:
		r.touch(e.Date)
		var m session.Message
		if json.Unmarshal(e.Payload, &m) == nil && r.Title == "" && m.Role == "user" {
			r.Title = title(m.Content)
		}
	case session.KindEvent:
		var n session.Note
		if inherited {
			return false // it is the parent's
		}
		if json.Unmarshal(e.Payload, &n) != nil {
			return false
		}
		if !r.note(n, e.Meta.Turn, price) {
			return false
		}
		r.touch(e.Date)
	default:
		return false
	}
	return true
}

// counts is count; it reports whether the record is to be written: something has
// ended or begins to wait.
func (r *record) counts(e session.Entry, epoch string, inherited bool, price func(model string, u event.Usage) float64) bool {
	was := r.Status
	changed := r.count(e, epoch, inherited, price)
	return changed && (r.Status != was || r.Counted.Seq <= 2 || ended(e))
}

func (r *record) note(n session.Note, turn string, price func(model string, u event.Usage) float64) bool {
	switch n.Name {
	case event.TurnWasStarted.Name():
		var t event.TurnStarted
		if json.Unmarshal(n.Data, &t) == nil {
			r.Model, r.LastTurnID, r.Status = t.Model, t.TurnID, Active
		}
	case event.LLMCallResponse.Name():
		var l event.LLMResponse
		if json.Unmarshal(n.Data, &l) == nil && l.RequestID != "" { // else the strategy has said it
			r.Usage.Usage = llm.Add(r.Usage.Usage, l.Usage)
			r.Usage.Steps++
			r.Usage.CostUSD += price(r.Model, l.Usage)
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
	default:
		return false
	}
	return true
}
