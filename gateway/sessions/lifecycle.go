package sessions

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/models"
	"github.com/yaya-ai/yaya/kernel/session"
)

const (
	maxPrompt = 256 << 10
	maxTitle  = 200
)

type (
	InSession struct {
		SessionID string `path:"session_id" doc:"sess_…"`
	}
	outSession struct{ Body Session }

	// State is a session with what it is doing now.
	State struct {
		Session
		State string `json:"state" enum:"idle,running,requires_action" doc:"what it is doing"`
		// Answering is nil if no model can answer; the next turn says why.
		Answering     *models.Choice `json:"answering_model,omitempty" doc:"the model that answers next"`
		Restricted    bool           `json:"restricted" doc:"nobody has trusted its folder: the agent can read and search there, and nothing else"`
		TurnID        string         `json:"turn_id,omitempty" doc:"the running turn"`
		PendingTurnID string         `json:"pending_turn_id,omitempty" doc:"the turn that a message waits for which has started none"`
		Cursor        string         `json:"cursor" doc:"<epoch>:<seq> of the last event"`
		Approvals     []askData      `json:"pending_approvals"`
		Queue         []queued       `json:"queue"`
	}

	// Snapshot is a session at one moment; the events from its cursor on continue it.
	Snapshot struct {
		SessionID     string    `json:"session_id"`
		Cursor        string    `json:"cursor" doc:"<epoch>:<seq>, for Last-Event-ID"`
		AsOfSeq       int64     `json:"as_of_seq"`
		TurnID        string    `json:"turn_id,omitempty" doc:"the running turn"`
		PendingTurnID string    `json:"pending_turn_id,omitempty"`
		Text          string    `json:"text" doc:"of the output in flight"`
		Approvals     []askData `json:"pending_approvals"`
		Queue         []queued  `json:"queue"`
	}

	newSession struct {
		Workspace       string `json:"workspace_path" minLength:"1" maxLength:"4096" doc:"absolute path of a folder that is there"`
		SystemPrompt    string `json:"system_prompt,omitempty" maxLength:"262144"`
		AutoRun         *bool  `json:"auto_run,omitempty" doc:"whether messages start turns unless they say otherwise; true by default"`
		Title           string `json:"title,omitempty" maxLength:"200"`
		Strategy        string `json:"strategy,omitempty" maxLength:"64"`
		Model           string `json:"model,omitempty" maxLength:"256" doc:"the model: the id of a provider, or ID/MODEL; empty: the active one, whichever that is"`
		Mode            string `json:"mode,omitempty" enum:"work,plan,edits" doc:"plan: the agent only reads until a person has approved its plan; edits: most changes of files need no question, and who sets it also needs approvals:answer; work by default"`
		ApprovalTimeout int    `json:"approval_timeout_seconds,omitempty" minimum:"0" maximum:"86400" doc:"how long asks wait; 0 is the configured time"`
	}
)

func snapshotOf(id string, sn session.Snapshot) Snapshot {
	asks := make([]askData, len(sn.Asks))
	for i, a := range sn.Asks {
		asks[i] = ask(a)
	}
	return Snapshot{id, cursorOf(sn.Epoch, sn.AsOfSeq), sn.AsOfSeq, sn.TurnID, sn.PendingTurn, sn.Text, asks, queue(sn.Queue)}
}

// state returns a session with what it is doing.
func (s *Service) state(id string) (State, error) {
	k, _, err := s.find(id)
	if err != nil {
		return State{}, err
	}
	sn, turn, goesOn, err := s.doing(k)
	if err != nil {
		return State{}, err
	}
	rec, err := s.settled(k, sn)
	if err != nil {
		return State{}, err
	}
	now := snapshotOf(id, sn)
	st := State{Session: rec, State: string(loop.Idle), Answering: s.answering(rec.Model), Restricted: !s.cfg.Trusted(id), TurnID: sn.TurnID, PendingTurnID: sn.PendingTurn, Cursor: now.Cursor, Approvals: now.Approvals, Queue: now.Queue}
	if turn != "" && sn.TurnID == "" { // it has just been taken in
		st.TurnID, st.PendingTurnID = turn, ""
	}
	switch {
	case len(sn.Asks) > 0:
		st.State, st.Status = string(loop.RequiresAction), Waiting
	case st.TurnID != "":
		st.State, st.Status = string(loop.Running), Active
	case goesOn && len(sn.Queue) > 0: // between two turns
		st.State = string(loop.Running)
	}
	return st, nil
}

// doing returns a session's snapshot, its running turn, and whether the loop goes on with it. Turns may
// begin and end between a look at the tape and one at the loop: what waits although nothing goes on is
// looked at again.
func (s *Service) doing(k *session.Session) (sn session.Snapshot, turn string, goesOn bool, err error) {
	for was := int64(-1); ; was = sn.AsOfSeq {
		if sn, err = k.Snapshot(); err != nil {
			return sn, "", false, err
		}
		_, turn = s.cfg.Loop.State(k.ID())
		goesOn = turn != "" || s.cfg.Loop.GoesOn(k.ID())
		waits := sn.PendingTurn != "" || len(sn.Queue) > 0
		if goesOn || !waits || sn.TurnID != "" || sn.AsOfSeq == was {
			return sn, turn, goesOn, nil
		}
	}
}

func (s *Service) sessionRoutes() {
	api.Handle(s.API, op("POST", "/v1/sessions", "createSession", auth.SessionsWrite, "Create a session", http.StatusCreated), func(ctx context.Context, in *struct {
		Key  string `header:"Idempotency-Key" maxLength:"256" doc:"the same key of the same client with the same body is the same session"`
		Body newSession
	},
	) (*struct {
		Body struct {
			SessionID string `json:"session_id"`
		}
	}, error) {
		m, err := s.checked(auth.FromContext(ctx), in.Body)
		if err != nil {
			return nil, err
		}
		if in.Key != "" {
			m.key = digestKey(ctx, in.Key)
		}
		r, err := s.make(m)
		if err != nil {
			return nil, err
		}
		out := new(struct {
			Body struct {
				SessionID string `json:"session_id"`
			}
		})
		out.Body.SessionID = r.ID
		return out, nil
	})
	api.Handle(s.API, op("GET", "/v1/sessions", "listSessions", auth.SessionsRead, "List sessions, the last changed first", http.StatusOK), func(ctx context.Context, in *struct {
		Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
		Cursor string `query:"cursor" maxLength:"200" doc:"next of the page before"`
		Status string `query:"status" enum:"active,waiting_approval,failed,completed,canceled"`
	},
	) (*outSessions, error) {
		return s.page(ctx, in.Limit, in.Cursor, Status(in.Status))
	})
	api.Handle(s.API, op("GET", "/v1/sessions/{session_id}", "getSession", auth.SessionsRead, "Get a session and its state", http.StatusOK), func(_ context.Context, in *InSession) (*struct{ Body State }, error) {
		st, err := s.state(in.SessionID)
		return &struct{ Body State }{st}, err
	})
	api.Handle(s.API, op("GET", "/v1/sessions/{session_id}/snapshot", "getSnapshot", auth.SessionsRead, "Get the state at one moment, with the cursor from which events continue", http.StatusOK), func(_ context.Context, in *InSession) (*struct{ Body Snapshot }, error) {
		k, _, err := s.find(in.SessionID)
		if err != nil {
			return nil, err
		}
		sn, err := k.Snapshot()
		return &struct{ Body Snapshot }{snapshotOf(in.SessionID, sn)}, err
	})
	api.Handle(s.API, op("PATCH", "/v1/sessions/{session_id}", "changeSession", auth.SessionsWrite, "Change fields of a session", http.StatusOK), func(ctx context.Context, in *struct {
		InSession
		Body changes
	},
	) (*outSession, error) {
		r, err := s.patch(ctx, in.SessionID, in.Body)
		return &outSession{r}, err
	})
	api.Handle(s.API, op("POST", "/v1/sessions/{session_id}/close", "closeSession", auth.SessionsWrite, "Close a session; it accepts no more messages", http.StatusOK), func(_ context.Context, in *InSession) (*outSession, error) {
		r, err := s.finish(in.SessionID)
		return &outSession{r}, err
	})
	api.Handle(s.API, op("POST", "/v1/sessions/{session_id}/fork", "forkSession", auth.SessionsWrite, "Fork a session: create one that continues from here", http.StatusCreated), func(ctx context.Context, in *InSession) (*outSession, error) {
		r, err := s.Fork(ctx, in.SessionID, "")
		return &outSession{r}, err
	})
	api.Handle(s.API, op("POST", "/v1/sessions/{session_id}/reset", "resetSession", auth.SessionsWrite, "Start a session over; the archive keeps its old tape", http.StatusOK), func(ctx context.Context, in *InSession) (*outSession, error) {
		r, _, err := s.Reset(ctx, in.SessionID, true)
		return &outSession{r}, err
	})
	api.Handle(s.API, op("POST", "/v1/sessions/{session_id}/archive", "archiveSession", auth.SessionsWrite, "Archive a session", http.StatusNoContent), func(_ context.Context, in *InSession) (*struct{}, error) {
		_, err := s.Archive(in.SessionID)
		return nil, err
	})
	api.Handle(s.API, op("GET", "/v1/archives", "listArchives", auth.SessionsRead, "List archived sessions, the last archived first", http.StatusOK), func(_ context.Context, in *struct {
		Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
		Cursor string `query:"cursor" maxLength:"200" doc:"next of the page before"`
	},
	) (*outArchives, error) {
		all, more, err := s.cfg.Sessions.Archives(in.Cursor, in.Limit)
		if err != nil {
			return nil, err
		}
		out := new(outArchives)
		out.Body.Archives = all
		if more {
			out.Body.Next = all[len(all)-1].Name
		}
		return out, nil
	})
	api.Handle(s.API, op("DELETE", "/v1/sessions/{session_id}", "deleteSession", auth.SessionsWrite, "Delete a session for good, with its files", http.StatusNoContent), func(ctx context.Context, in *InSession) (*struct{}, error) {
		_, err := s.Delete(ctx, in.SessionID)
		return nil, err
	})
}

// SessionRow is a session in the list, with what it is doing now: its status is
// active whether or not it does anything.
type SessionRow struct {
	Session
	State string `json:"state" enum:"idle,running,requires_action" doc:"what it is doing"`
	Node  string `json:"node,omitempty" doc:"the node of the cluster that has it, if that is another one"`
}

type outSessions struct {
	Body struct {
		Sessions []SessionRow `json:"sessions"`
		Next     string       `json:"next,omitempty" doc:"cursor of the next page"`
		Missing  []string     `json:"missing_nodes,omitempty" doc:"nodes of the cluster that have not answered: their sessions are listed as they were last, or missing"`
	}
}

// maxPage is how many sessions a page has at most.
const maxPage = 1000

type outArchives struct {
	Body struct {
		Archives []session.Archived `json:"archives"`
		Next     string             `json:"next,omitempty" doc:"cursor of the next page"`
	}
}

// ownPage returns a page of this node's sessions. The cursor is the last session of the page
// before: what changes in the meantime moves to the front.
func (s *Service) ownPage(limit int, cursor string, status Status) (*nodePage, error) {
	if status != "" {
		if err := s.noted(); err != nil {
			return nil, err
		}
	}
	var after session.Place
	if cursor != "" {
		us, id, ok := cutCursor(cursor)
		if !ok || id == "" {
			return nil, api.Coded(http.StatusBadRequest, "bad_cursor", "the cursor is not one of a page")
		}
		after = session.Place{Changed: time.UnixMicro(us), ID: id}
	}
	infos, more, err := s.cfg.Sessions.Page(after, limit, func(id, mark string) bool {
		is, _, _ := strings.Cut(mark, ":")
		return (status == "" || is == string(status)) && addressable(id)
	})
	if err != nil {
		return nil, err
	}
	out := &nodePage{Sessions: []placed{}, More: more}
	left := maxCounted
	for _, t := range infos {
		if r, ok := s.row(t, &left); ok {
			state, _ := s.cfg.Loop.State(t.ID)
			out.Sessions = append(out.Sessions, placed{SessionRow{Session: r, State: string(state)}, t.Modified.UnixMicro()})
		}
	}
	if more {
		last := infos[len(infos)-1]
		out.Last = placeOf(last.Modified.UnixMicro(), last.ID)
	}
	return out, nil
}

func cutCursor(c string) (int64, string, bool) {
	for i := range len(c) {
		if c[i] == '.' {
			ms, err := strconv.ParseInt(c[:i], 10, 64)
			return ms, c[i+1:], err == nil
		}
	}
	return 0, "", false
}

type changes struct {
	Title           *string `json:"title,omitempty" maxLength:"200"`
	AutoRun         *bool   `json:"auto_run,omitempty"`
	SystemPrompt    *string `json:"system_prompt,omitempty" maxLength:"262144"`
	Strategy        *string `json:"strategy,omitempty" maxLength:"64"`
	Model           *string `json:"model,omitempty" maxLength:"256" doc:"the model: the id of a provider, or ID/MODEL; empty: the active one, whichever that is; a turn that runs goes on with it"`
	Mode            *string `json:"mode,omitempty" enum:"work,plan,edits" doc:"plan: the agent only reads until a person has approved its plan; edits: most changes of files need no question, and who sets it also needs approvals:answer; a turn that runs keeps to it from its next call"`
	ApprovalTimeout *int    `json:"approval_timeout_seconds,omitempty" minimum:"0" maximum:"86400"`
}

func (s *Service) patch(ctx context.Context, id string, c changes) (Session, error) {
	k, _, err := s.steer(ctx, id)
	if err != nil {
		return Session{}, err
	}
	if c.Strategy != nil && *c.Strategy != "" && !s.cfg.HasStrategy(*c.Strategy) {
		return Session{}, api.Coded(http.StatusBadRequest, "bad_strategy", "there is no strategy %q", *c.Strategy)
	}
	for _, text := range []*string{c.Title, c.SystemPrompt} {
		if text != nil {
			*text = s.cfg.Secrets.ConcealString(*text)
		}
	}
	if c.Mode != nil {
		if err := maySet(auth.FromContext(ctx), session.Mode(*c.Mode)); err != nil {
			return Session{}, err
		}
	}
	if c.Model != nil {
		if err := s.checkModel(*c.Model); err != nil {
			return Session{}, err
		}
		if err := k.SetModel(ctx, *c.Model); err != nil {
			return Session{}, err
		}
	}
	if c.Mode != nil {
		if err := k.SetMode(ctx, session.Mode(*c.Mode)); err != nil {
			return Session{}, err
		}
	}
	if c.SystemPrompt != nil {
		if err := k.SetSystem(*c.SystemPrompt); err != nil {
			return Session{}, err
		}
	}
	return s.change(id, func(r *record) {
		set(&r.Title, c.Title)
		set(&r.AutoRun, c.AutoRun)
		set(&r.SystemPrompt, c.SystemPrompt)
		set(&r.Strategy, c.Strategy)
		set(&r.Model, c.Model)
		set(&r.Mode, (*session.Mode)(c.Mode))
		set(&r.ApprovalTimeout, c.ApprovalTimeout)
	})
}

// maySet returns why a client may not set a mode. Changes without a question are for who may answer one.
func maySet(who auth.Principal, mode session.Mode) error {
	if mode != session.Edits {
		return nil
	}
	return auth.Allow(who, auth.ApprovalsAnswer)
}

func set[T any](dst, src *T) {
	if src != nil {
		*dst = *src
	}
}
