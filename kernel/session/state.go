package session

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/kernel/event"
)

// The anchors and notes that the kernel itself writes.
const (
	anchorStart  = "session/start"
	anchorRepair = "session/repair"
	noteSystem   = "x.session.system"
)

// maxPrompts is how many client ids of prompts a session remembers.
const maxPrompts = 1000

// tapeFormat is the version of what tapes hold.
const tapeFormat = 1

// start is the state of a tape's first anchor.
type start struct {
	Format    int     `json:"format"`
	SessionID string  `json:"session_id"`
	Workspace string  `json:"workspace"`
	Epoch     string  `json:"epoch"`
	Parent    *parent `json:"parent,omitempty"`
	Model     string  `json:"model,omitempty"` // inherited by a fork, or kept by a reset
	Mode      Mode    `json:"mode,omitempty"`  // that the session begins in
	// Tools are those that a sub-agent may call; nil, and not empty, means all.
	Tools []string `json:"tools,omitzero"`
}

// parent is the point where a fork branched off.
type parent struct {
	SessionID string `json:"session_id"`
	Tape      string `json:"tape"`
	Epoch     string `json:"epoch"`
	Entry     int64  `json:"entry"` // the last entry that the fork sees
	// Cuts is how often the parent's tape had been cut by a repair: entries behind a
	// later cut have the ids of lost ones, and are not the fork's.
	Cuts int `json:"cuts,omitempty"`
}

// Ask is an approval that waits for an answer.
type Ask struct {
	event.ApprovalRequest
	CallID    string `json:"call_id"`             // of the call that waits
	SessionID string `json:"session_id"`          // where the call was made
	Deadline  string `json:"deadline,omitempty"`  // RFC 3339
	Decisions any    `json:"decisions,omitempty"` // what may be answered
}

// NoteQueue is the note of a changed queue: {prompts}, see [Prompt].
const NoteQueue = "x.session.queue"

// Prompt is a queued user message.
type Prompt struct {
	ID          string             `json:"id"` // the client's
	Text        string             `json:"text"`
	Attachments []event.Attachment `json:"attachments,omitempty"`
	Role        string             `json:"role,omitempty"` // "" is the user's
	MaxSteps    int                `json:"max_steps,omitempty"`
}

// LastTurn is the turn that ended last.
type LastTurn struct {
	ID     string `json:"id"`
	Status string `json:"status"` // completed, failed or cancelled
}

// Hash identifies the content of a prompt, whatever its id.
func (p Prompt) Hash() [32]byte {
	b, err := json.Marshal(Prompt{Text: p.Text, Attachments: p.Attachments, Role: p.Role})
	if err != nil {
		return [32]byte{}
	}
	return sha256.Sum256(b)
}

// Admitted is the fate of a prompt.
type Admitted struct {
	Hash  [32]byte
	Entry int64 // of its message; 0 while it is queued
	Turn  string
}

// state is everything that follows from a tape's entries.
type state struct {
	Projection
	epoch   string
	cuts    int    // repairs that have cut the tape
	turn    string // id of the running turn, "" if none
	held    string // id of the turn that a message waits for, "" if none
	owed    bool   // it was to start at once
	last    LastTurn
	system  string // the system prompt
	model   string // that was chosen, "" for the active one
	mode    Mode   // "" is Work
	calls   []string
	asks    []Ask
	queue   []Prompt
	prompts map[string]Admitted
	order   []string // client ids, oldest first
}

// apply adds the next entry.
func (s *state) apply(e Entry) {
	s.Apply(e)
	switch e.Kind {
	case KindAnchor:
		s.anchor(e)
	case KindMessage:
		s.message(e)
	case KindToolCall:
		var c event.ToolCall
		if json.Unmarshal(e.Payload, &c) == nil {
			s.calls = append(s.calls, c.ID)
		}
	case KindToolResult:
		var r ToolResult
		if json.Unmarshal(e.Payload, &r) == nil {
			s.settled(r.ToolCallID)
		}
	case KindEvent:
		if n, ok := e.Note(); ok && e.Owns(n.Name) {
			s.note(n)
		}
	}
}

func (s *state) anchor(e Entry) {
	var a Anchor
	if json.Unmarshal(e.Payload, &a) != nil {
		return
	}
	var st struct {
		Epoch string `json:"epoch"`
	}
	if (a.Name == anchorStart || a.Name == anchorRepair) && json.Unmarshal(a.State, &st) == nil && st.Epoch != "" {
		s.epoch = st.Epoch
	}
	if mode, ok := ModeOf(a.State); ok && a.Name == anchorStart {
		s.mode = mode
	}
}

func (s *state) message(e Entry) {
	var m Message
	if json.Unmarshal(e.Payload, &m) != nil {
		return
	}
	if m.Role == "user" && (s.turn == "" || e.Meta.Starts) {
		// A message may join a turn that is owed before it has begun.
		s.owed = e.Meta.Starts || s.owed && e.Meta.Turn == s.held
		s.held = e.Meta.Turn
	}
	if e.Meta.Client == "" {
		return
	}
	p := Prompt{Text: m.Content, Attachments: m.Attachments}
	if m.Role != "user" {
		p.Role = m.Role
	}
	s.admit(e.Meta.Client, Admitted{p.Hash(), e.ID, e.Meta.Turn})
}

func (s *state) admit(client string, a Admitted) {
	if s.prompts == nil {
		s.prompts = map[string]Admitted{}
	}
	if _, known := s.prompts[client]; !known {
		s.order = append(s.order, client)
		if len(s.order) > maxPrompts {
			delete(s.prompts, s.order[0])
			s.order = s.order[1:]
		}
	}
	s.prompts[client] = a
}

func (s *state) settled(call string) {
	s.calls = slices.DeleteFunc(s.calls, func(id string) bool { return id == call })
}

func (s *state) note(n Note) {
	switch n.Name {
	case event.TurnWasStarted.Name():
		var t event.TurnStarted
		if json.Unmarshal(n.Data, &t) == nil {
			s.turn, s.held, s.owed, s.calls = t.TurnID, "", false, nil
		}
	case event.TurnWasCompleted.Name():
		s.ended(n, "completed")
	case event.TurnHasFailed.Name():
		s.ended(n, "failed")
	case event.TurnWasCancelled.Name():
		s.ended(n, "cancelled")
	case noteSystem:
		var t struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(n.Data, &t) == nil {
			s.system = t.Text
		}
	case NoteMode:
		if mode, ok := ModeOf(n.Data); ok {
			s.mode = mode
		}
	case NoteModel:
		if m, ok := ChosenModel(n.Data); ok {
			s.model = m
		}
	case event.ToolCallError.Name():
		var t event.ToolError
		if json.Unmarshal(n.Data, &t) == nil {
			s.settled(t.ID)
		}
	case event.ApprovalRequested.Name():
		var a Ask
		if json.Unmarshal(n.Data, &a) == nil {
			s.asks = append(s.asks, a)
		}
	case event.ApprovalAnswered.Name(), event.ApprovalWithdrawn.Name():
		var a struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(n.Data, &a) == nil {
			s.asks = slices.DeleteFunc(s.asks, func(x Ask) bool { return x.ID == a.ID })
		}
	case NoteQueue:
		var q struct {
			Prompts []Prompt `json:"prompts"`
		}
		if json.Unmarshal(n.Data, &q) == nil {
			s.queue = q.Prompts
			for _, p := range q.Prompts {
				if _, known := s.prompts[p.ID]; !known {
					s.admit(p.ID, Admitted{Hash: p.Hash()})
				}
			}
		}
	}
}

// ended notes the end of a turn, of which a failing disk may have lost the start.
func (s *state) ended(n Note, status string) {
	var t struct {
		TurnID string `json:"turn_id"`
	}
	if json.Unmarshal(n.Data, &t) == nil && t.TurnID == s.held {
		s.held, s.owed = "", false
	}
	s.turn, s.last = "", LastTurn{s.turn, status}
}

// outline is the result of one pass over a tape's lines without decoding them all:
// where to start decoding.
type outline struct {
	start  start
	from   int64 // the projection starts here
	turn   int64 // the last turn started here
	asked  int64 // the message before it, whose id clients may repeat
	user   int64 // the last message of the user
	queue  int64 // the queue was last written here
	system int64 // the system prompt was last written here
	model  int64 // the model was last chosen here
	mode   int64 // so was the mode
	epoch  string
	// cuts counts the repairs that have cut the tape, and orphan says that one has
	// given up the parent.
	cuts   int
	orphan bool
}

var (
	bAnchor = []byte(`"kind":"anchor",`)
	bUser   = []byte(`"kind":"message","payload":{"role":"user"`)
	bEvent  = []byte(`"kind":"event","payload":{"name":"`)
	bTurn   = []byte(event.TurnWasStarted.Name() + `"`)
	bOwn    = []byte(ownNotes)
	bQueue  = []byte(NoteQueue + `"`)
	bSystem = []byte(noteSystem + `"`)
	bModel  = []byte(NoteModel + `"`)
	bMode   = []byte(NoteMode + `"`)
)

// visit processes one line.
func (o *outline) visit(id int64, line []byte) error {
	i := bytes.IndexByte(line, ',') + 1
	rest := line[i:]
	if bytes.HasPrefix(rest, bAnchor) {
		return o.anchor(line)
	}
	if bytes.HasPrefix(rest, bUser) {
		o.user = id
		return nil
	}
	rest, ok := bytes.CutPrefix(rest, bEvent)
	if ok && bytes.HasPrefix(rest, bOwn) {
		e, err := decodeEntry(line)
		if err != nil {
			return err
		}
		ok = e.Meta.Source == "" // another's would hide the last one of the kernel
	}
	switch {
	case !ok:
	case bytes.HasPrefix(rest, bTurn):
		o.turn, o.asked = id, o.user
	case bytes.HasPrefix(rest, bQueue):
		o.queue = id
	case bytes.HasPrefix(rest, bSystem):
		o.system = id
	case bytes.HasPrefix(rest, bModel):
		o.model = id
	case bytes.HasPrefix(rest, bMode):
		o.mode = id
	}
	return nil
}

func (o *outline) anchor(line []byte) error {
	e, err := decodeEntry(line)
	if err != nil {
		return err
	}
	var a Anchor
	if err := json.Unmarshal(e.Payload, &a); err != nil {
		return err
	}
	switch {
	case a.Name == anchorStart && o.start.Epoch == "":
		if err := json.Unmarshal(a.State, &o.start); err != nil {
			return err
		}
		if o.start.Format > tapeFormat {
			return errFormat
		}
		o.from = e.ID
	case a.Name == anchorRepair:
		var r repaired
		if json.Unmarshal(a.State, &r) == nil && r.Lost != nil {
			o.repaired(r)
		}
	default:
		if c, ok := CompactionOf(e); ok {
			o.from = c.KeepFrom
		}
	}
	var st struct {
		Epoch string `json:"epoch"`
	}
	if strings.HasPrefix(a.Name, "session/") && json.Unmarshal(a.State, &st) == nil && st.Epoch != "" {
		o.epoch = st.Epoch
	}
	return nil
}

// repaired takes in what a repair has lost.
func (o *outline) repaired(r repaired) {
	if r.cut() {
		o.cuts++
	}
	o.orphan = o.orphan || r.Lost.Orphaned
}
