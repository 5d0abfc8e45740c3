package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/url"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/follow"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
)

// AgentPrefix starts the topics of agents: agent:{id}.
const AgentPrefix = "agent:"

// AgentsConfig assembles [Agents]. All fields are required.
type AgentsConfig struct {
	Server    *Server
	Sessions  *session.Manager
	Loop      *loop.Loop
	Approvals *approval.Runtime
	// Begin makes a session, unless it is there, for somebody who names no folder, in one
	// that they may use; nil: in the default folder.
	Begin func(who auth.Principal, id string) error
}

// Agents serves agent:{id}: one agent's events, its text as it is written, and
// what a client says to it. One reader of the session feeds all of its clients.
type Agents struct {
	cfg   AgentsConfig
	feeds *follow.Set[*feed]
}

// linger is how long an agent is followed after its last client has gone: those
// that have lost their connection come back.
const linger = streamKept

// NewAgents returns the topic; [Agents.Close] ends what it starts.
func NewAgents(cfg AgentsConfig) *Agents {
	a := &Agents{cfg: cfg}
	a.feeds = follow.New(follow.Config[*feed]{Sessions: cfg.Sessions, Linger: linger, New: func(f *follow.Follower) *feed {
		return &feed{Follower: f, a: a, topic: AgentPrefix + f.ID}
	}})
	return a
}

// Close lets go of all sessions.
func (a *Agents) Close() { a.feeds.Close() }

// AgentJoined is the response to a join of agent:{id}.
type AgentJoined struct {
	Cursor Cursor `json:"cursor"` // what has happened so far
	// Resync says why since could not be honoured: forget what you have, Snapshot is
	// the state.
	Resync   string           `json:"resync,omitempty"`
	Snapshot session.Snapshot `json:"snapshot"`
}

// ForNodes tells other nodes whether an agent is here.
func (a *Agents) ForNodes(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if _, err := a.cfg.Sessions.Find(id, ""); event.CheckSession(id) != nil || id == event.KernelSession || errors.Is(err, session.ErrNotFound) {
		http.NotFound(w, r)
		return
	}
	w.WriteHeader(http.StatusOK)
}

// Allows implements [Guarded].
func (*Agents) Allows(p auth.Principal, _ string) error { return auth.Allow(p, auth.SessionsRead) }

// Join implements [Topic].
func (a *Agents) Join(ctx context.Context, c Client, topic string, since *Cursor) (Joined, error) {
	if err := auth.Allow(c.Principal, auth.SessionsRead); err != nil {
		return Joined{}, err // before anything is looked up: no oracle
	}
	id := topic[len(AgentPrefix):]
	if event.CheckSession(id) != nil || id == event.KernelSession {
		return Joined{}, Refuse("unmatched topic")
	}
	s, err := a.cfg.Sessions.Find(id, "")
	if errors.Is(err, session.ErrNotFound) {
		return Joined{Elsewhere: NodeAgents + "/" + url.PathEscape(id)}, nil
	}
	if err != nil {
		return Joined{}, err
	}
	f, err := a.feeds.Join(ctx, id)
	switch {
	case errors.Is(err, follow.ErrClosed):
		return Joined{}, Refuse("yaya stops")
	case errors.Is(err, follow.ErrEnded):
		return Joined{}, Refuse("%s", sessionClosed)
	case err != nil && ctx.Err() != nil: // nobody reads it, and nothing went wrong
		return Joined{}, Refuse("the client has left")
	case err != nil:
		return Joined{}, err
	}
	leave := f.Watch(func() bool { return auth.Allow(c.Principal, auth.ApprovalsAnswer) == nil })
	context.AfterFunc(ctx, func() { // when the client leaves
		leave()
		f.Leave()
	})
	now, err := s.Snapshot()
	if err != nil {
		return Joined{}, err
	}
	res := AgentJoined{Cursor: Cursor{now.Epoch, now.AsOfSeq}, Snapshot: now}
	res.Snapshot.Text = "" // comes as a stream
	after := now.AsOfSeq
	switch {
	case since == nil:
	case since.Epoch != "" && since.Epoch != now.Epoch:
		res.Resync = "epoch"
	case since.Seq > now.AsOfSeq:
		res.Resync = "ahead"
	default:
		after = since.Seq
	}
	return Joined{
		Response: res, After: after, Last: now.AsOfSeq, Still: f, Live: f.live,
		Replay: func(_ context.Context, after, upTo int64, visit func(Event) error) error {
			return s.Entries(after+1, func(e session.Entry) error {
				if e.ID > upTo {
					return fs.SkipAll
				}
				if ev, ok := shown(e, id, now.Epoch); ok {
					return visit(ev)
				}
				return nil
			})
		},
	}, nil
}

// AgentEvent is an event of an agent.
type AgentEvent struct {
	Type    string `json:"type"` // the kind, as in tool.call.start
	AgentID string `json:"agent_id"`
	Data    any    `json:"data"` // the kind's payload, see docs/events
	Time    string `json:"ts"`
	TurnID  string `json:"turn_id,omitempty"`
	// ClientID is the id that a client has given to a message.
	ClientID string `json:"client_id,omitempty"`
	// Cursor is the client's position after this event; absent from volatile
	// events.
	Cursor *Cursor `json:"cursor,omitempty"`
}

// project returns an event as clients see it.
func project(ev event.Event, epoch string) Event {
	p := AgentEvent{Type: ev.Kind, AgentID: ev.SessionID, Data: ev.Payload, Time: control.Stamp(ev.Time), TurnID: ev.Turn, ClientID: ev.ClientID}
	if p.Data == nil {
		p.Data = struct{}{}
	}
	if ev.Entry > 0 {
		p.Cursor = &Cursor{epoch, ev.Entry}
	}
	return Event{Name: ev.Kind, Payload: p, Seq: ev.Entry, Soon: ev.Entry == 0}
}

// QueueChanged is the data of queue_changed: the messages that wait for the running
// turn to end.
type QueueChanged struct {
	Queue []Queued `json:"queue"`
}

// Queued is a message that waits.
type Queued struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

const queueChanged = "queue_changed"

// shown returns an entry as clients see it; ok is false for what they do not.
func shown(e session.Entry, id, epoch string) (out Event, ok bool) {
	ev, ok := e.Event(id)
	if !ok {
		return Event{}, false
	}
	ev.Entry = e.ID
	if ev.Kind != session.NoteQueue {
		return project(ev, epoch), true
	}
	// A note of the kernel's own, which others get in words that are documented.
	n, ok := e.Note()
	var q struct {
		Prompts []Queued `json:"prompts"`
	}
	if !ok || !e.Owns(n.Name) || json.Unmarshal(n.Data, &q) != nil {
		return Event{}, false
	}
	if q.Prompts == nil {
		q.Prompts = []Queued{}
	}
	ev.Kind, ev.Payload = queueChanged, QueueChanged{q.Prompts}
	return project(ev, epoch), true
}

// The payloads that clients push to agent:{id}.
type (
	agentMessage struct {
		Content string `json:"content"`
		// ID makes sending it again harmless.
		ID       string `json:"id,omitempty"`
		Delivery string `json:"delivery,omitempty"` // reject, queue, steer, interrupt
	}
	agentApproval struct {
		RequestID string `json:"request_id"`
		Response  string `json:"response"` // approve, approve_for_session, reject
		Feedback  string `json:"feedback,omitempty"`
	}
	streamRetry struct {
		Type      string `json:"type,omitempty"`
		RequestID string `json:"request_id"`
		Missing   []int  `json:"missing"`
	}
	interrupted struct {
		Cancelled bool `json:"cancelled"`
	}
	retried struct {
		Resent int   `json:"resent"`
		Gone   []int `json:"gone"`
	}
)

// Decode reads a payload; its error is for the sender.
func Decode(payload json.RawMessage, v any) error {
	if err := api.Unmarshal(payload, v); err != nil {
		return Refuse("%s", err.Message)
	}
	return nil
}

// Push implements [Topic].
func (a *Agents) Push(ctx context.Context, c Client, topic, name string, payload json.RawMessage) (any, error) {
	id := topic[len(AgentPrefix):]
	switch name {
	case "message":
		return a.say(ctx, c, id, payload)
	case "interrupt":
		if err := auth.Allow(c.Principal, auth.SessionsWrite); err != nil {
			return nil, err
		}
		return interrupted{a.cfg.Loop.Cancel(id)}, nil
	case "approval":
		return a.approve(c, payload)
	case "stream_retry":
		return a.retry(c, id, payload)
	case "history":
		return a.history(c, id, payload)
	}
	return nil, NoSuchEvent(name)
}

func (a *Agents) say(ctx context.Context, c Client, id string, payload json.RawMessage) (any, error) {
	if err := auth.Allow(c.Principal, auth.SessionsWrite); err != nil {
		return nil, err
	}
	var m agentMessage
	if err := Decode(payload, &m); err != nil {
		return nil, err
	}
	if m.Content == "" || len(m.ID) > 128 {
		return nil, Refuse("a message is {content, id?, delivery?}, and content says something")
	}
	if a.cfg.Begin != nil {
		if err := a.cfg.Begin(c.Principal, id); err != nil {
			return nil, err
		}
	}
	got, err := a.cfg.Loop.Submit(ctx, loop.Prompt{ID: m.ID, SessionID: id, Text: m.Content, Delivery: loop.Delivery(m.Delivery)})
	if errors.Is(err, loop.ErrBusy) || errors.Is(err, loop.ErrConflict) {
		return nil, Refuse("%v", err)
	}
	if err != nil {
		return nil, err
	}
	return got, nil
}

func (a *Agents) approve(c Client, payload json.RawMessage) (any, error) {
	if err := auth.Allow(c.Principal, auth.ApprovalsAnswer); err != nil {
		return nil, err
	}
	var m agentApproval
	if err := Decode(payload, &m); err != nil {
		return nil, err
	}
	d, err := a.cfg.Approvals.Answer(m.RequestID, event.ApprovalAnswer(m.Response), m.Feedback, c.Actor())
	switch {
	case errors.Is(err, approval.ErrAnswered): // the first answer counts, and is shown
		return nil, &Problem{Reason: "answered before: " + string(d.Response)}
	case err != nil:
		return nil, Refuse("%v", err)
	}
	return d, nil
}

func (a *Agents) retry(c Client, id string, payload json.RawMessage) (any, error) {
	var m streamRetry
	if err := Decode(payload, &m); err != nil {
		return nil, err
	}
	if len(m.Missing) == 0 || len(m.Missing) > maxRetry {
		return nil, Refuse("missing names 1 to %d chunks", maxRetry)
	}
	f, ok := a.feeds.Get(id)
	if !ok {
		return nil, Refuse("stream not found")
	}
	events, gone, ok := f.again(m.RequestID, m.Missing)
	if !ok {
		return nil, Refuse("stream not found")
	}
	for _, e := range events {
		c.Send(e)
	}
	return retried{len(events), gone}, nil
}
