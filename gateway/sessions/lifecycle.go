package sessions

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
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

	// State is a session with what it is doing now (S-8).
	State struct {
		Session
		State         string    `json:"state" enum:"idle,running,requires_action" doc:"what it is doing"`
		Restricted    bool      `json:"restricted" doc:"nobody has trusted its folder: the agent can read and search there, and nothing else"`
		TurnID        string    `json:"turn_id,omitempty" doc:"the running turn"`
		PendingTurnID string    `json:"pending_turn_id,omitempty" doc:"the turn that a message waits for which has started none"`
		Cursor        string    `json:"cursor" doc:"<epoch>:<seq> of the last event"`
		Approvals     []askData `json:"pending_approvals"`
		Queue         []queued  `json:"queue"`
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
	sn, err := k.Snapshot()
	if err != nil {
		return State{}, err
	}
	rec, err := s.settled(k, sn)
	if err != nil {
		return State{}, err
	}
	now := snapshotOf(id, sn)
	st := State{Session: rec, State: string(loop.Idle), Restricted: !s.cfg.Trusted(id), TurnID: sn.TurnID, PendingTurnID: sn.PendingTurn, Cursor: now.Cursor, Approvals: now.Approvals, Queue: now.Queue}
	if _, turn := s.cfg.Loop.State(id); turn != "" && sn.TurnID == "" { // it has just been taken in
		st.TurnID, st.PendingTurnID = turn, ""
	}
	switch {
	case len(sn.Asks) > 0:
		st.State, st.Status = string(loop.RequiresAction), Waiting
	case st.TurnID != "":
		st.State, st.Status = string(loop.Running), Active
	}
	return st, nil
}

func (s *Service) sessionRoutes(api huma.API) {
	huma.Register(api, op("POST", "/v1/sessions", "createSession", "sessions:write", "Make a session", http.StatusCreated), handle(s, func(ctx context.Context, in *struct {
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
	}))
	huma.Register(api, op("GET", "/v1/sessions", "listSessions", "sessions:read", "List sessions, the one changed last first", http.StatusOK), handle(s, func(_ context.Context, in *struct {
		Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
		Cursor string `query:"cursor" maxLength:"200" doc:"next of the page before"`
		Status string `query:"status" enum:"active,waiting_approval,failed,completed,canceled"`
	},
	) (*outSessions, error) {
		return s.page(in.Limit, in.Cursor, Status(in.Status))
	}))
	huma.Register(api, op("GET", "/v1/sessions/{session_id}", "getSession", "sessions:read", "A session and its state", http.StatusOK), handle(s, func(_ context.Context, in *InSession) (*struct{ Body State }, error) {
		st, err := s.state(in.SessionID)
		return &struct{ Body State }{st}, err
	}))
	huma.Register(api, op("GET", "/v1/sessions/{session_id}/snapshot", "getSnapshot", "sessions:read", "The state of one moment, with the cursor from which events continue it", http.StatusOK), handle(s, func(_ context.Context, in *InSession) (*struct{ Body Snapshot }, error) {
		k, _, err := s.find(in.SessionID)
		if err != nil {
			return nil, err
		}
		sn, err := k.Snapshot()
		return &struct{ Body Snapshot }{snapshotOf(in.SessionID, sn)}, err
	}))
	huma.Register(api, op("PATCH", "/v1/sessions/{session_id}", "changeSession", "sessions:write", "Change what a session is", http.StatusOK), handle(s, func(ctx context.Context, in *struct {
		InSession
		Body changes
	},
	) (*outSession, error) {
		r, err := s.patch(ctx, in.SessionID, in.Body)
		return &outSession{r}, err
	}))
	huma.Register(api, op("POST", "/v1/sessions/{session_id}/close", "closeSession", "sessions:write", "Close a session: it takes no more messages", http.StatusOK), handle(s, func(_ context.Context, in *InSession) (*outSession, error) {
		r, err := s.finish(in.SessionID)
		return &outSession{r}, err
	}))
	huma.Register(api, op("POST", "/v1/sessions/{session_id}/fork", "forkSession", "sessions:write", "Make a session that goes on from where this one is", http.StatusCreated), handle(s, func(ctx context.Context, in *InSession) (*outSession, error) {
		r, err := s.Fork(ctx, in.SessionID, "")
		return &outSession{r}, err
	}))
	huma.Register(api, op("POST", "/v1/sessions/{session_id}/reset", "resetSession", "sessions:write", "Begin a session anew; what was is kept in the archive", http.StatusOK), handle(s, func(ctx context.Context, in *InSession) (*outSession, error) {
		r, _, err := s.Reset(ctx, in.SessionID, true)
		return &outSession{r}, err
	}))
	huma.Register(api, op("POST", "/v1/sessions/{session_id}/archive", "archiveSession", "sessions:write", "Put a session away", http.StatusNoContent), handle(s, func(_ context.Context, in *InSession) (*struct{}, error) {
		_, err := s.Archive(in.SessionID)
		return nil, err
	}))
}

// Archive puts a session away, and returns where its tape is.
func (s *Service) Archive(id string) (string, error) {
	if _, _, err := s.find(id); err != nil {
		return "", err
	}
	path, err := s.cfg.Sessions.Archive(id, "")
	if err != nil {
		return "", err
	}
	if err := s.away(id); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	return path, nil // it was made elsewhere, and has no folder
}

// digestKey is an Idempotency-Key as it is kept. Clients choose their keys without
// knowing those of others, so each principal has its own.
func digestKey(ctx context.Context, key string) string {
	p := auth.FromContext(ctx)
	if p.Kind == auth.Owner {
		return digest(key)
	}
	return digest(key, strconv.Itoa(int(p.Kind)), p.Actor())
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write([]byte(strconv.Itoa(len(p)) + ":" + p))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// checked checks a request for a session.
func (s *Service) checked(who auth.Principal, b newSession) (made, error) {
	if !filepath.IsAbs(b.Workspace) {
		return made{}, problem(http.StatusBadRequest, "bad_workspace", "workspace_path has to be absolute")
	}
	dir, err := s.cfg.MayUse(who, b.Workspace)
	if err != nil {
		return made{}, problem(http.StatusForbidden, "workspace_not_allowed", "%v", err)
	}
	info, err := os.Stat(dir) //nolint:forbidigo // the workspace is named by the user, and may be anywhere
	if err != nil || !info.IsDir() {
		return made{}, problem(http.StatusBadRequest, "bad_workspace", "workspace_path is no folder that can be used")
	}
	if b.Strategy != "" && !s.cfg.HasStrategy(b.Strategy) {
		return made{}, problem(http.StatusBadRequest, "bad_strategy", "there is no strategy %q", b.Strategy)
	}
	raw, err := json.Marshal(b)
	if err != nil {
		return made{}, err
	}
	secrets := s.cfg.Secrets
	return made{
		workspace: filepath.Clean(dir), system: secrets.ConcealString(b.SystemPrompt), title: secrets.ConcealString(b.Title), strategy: b.Strategy,
		autoRun: b.AutoRun == nil || *b.AutoRun, approvalTimeout: b.ApprovalTimeout, digest: digest(string(raw)),
	}, nil
}

// SessionRow is a session in the list, with what it is doing now: its status is
// active whether or not it does anything.
type SessionRow struct {
	Session
	State string `json:"state" enum:"idle,running,requires_action" doc:"what it is doing"`
}

type outSessions struct {
	Body struct {
		Sessions []SessionRow `json:"sessions"`
		Next     string       `json:"next,omitempty" doc:"cursor of the next page"`
	}
}

// page returns a page of the list. The cursor is the last session of the page
// before: what changes in the meantime moves to the front.
func (s *Service) page(limit int, cursor string, status Status) (*outSessions, error) {
	all, err := s.list()
	if err != nil {
		return nil, err
	}
	out := new(outSessions)
	out.Body.Sessions = []SessionRow{}
	var at time.Time
	var after string
	var last listed
	if cursor != "" {
		ms, id, ok := cutCursor(cursor)
		if !ok {
			return nil, problem(http.StatusBadRequest, "bad_cursor", "the cursor is not one of a page")
		}
		at, after = time.UnixMicro(ms), id
	}
	for _, r := range all {
		if status != "" && r.Status != status {
			continue
		}
		if cursor != "" {
			u := r.changed.Truncate(time.Microsecond)
			if u.After(at) || (u.Equal(at) && r.ID >= after) {
				continue
			}
		}
		if len(out.Body.Sessions) == limit {
			out.Body.Next = strconv.FormatInt(last.changed.UnixMicro(), 10) + "." + last.ID
			break
		}
		state, _ := s.cfg.Loop.State(r.ID)
		out.Body.Sessions, last = append(out.Body.Sessions, SessionRow{r.Session, string(state)}), r
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
	ApprovalTimeout *int    `json:"approval_timeout_seconds,omitempty" minimum:"0" maximum:"86400"`
}

func (s *Service) patch(ctx context.Context, id string, c changes) (Session, error) {
	k, _, err := s.steer(ctx, id)
	if err != nil {
		return Session{}, err
	}
	if c.Strategy != nil && *c.Strategy != "" && !s.cfg.HasStrategy(*c.Strategy) {
		return Session{}, problem(http.StatusBadRequest, "bad_strategy", "there is no strategy %q", *c.Strategy)
	}
	for _, text := range []*string{c.Title, c.SystemPrompt} {
		if text != nil {
			*text = s.cfg.Secrets.ConcealString(*text)
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
		set(&r.ApprovalTimeout, c.ApprovalTimeout)
	})
}

func set[T any](dst, src *T) {
	if src != nil {
		*dst = *src
	}
}

// finish closes a session.
func (s *Service) finish(id string) (Session, error) {
	k, rec, err := s.find(id)
	if err != nil {
		return Session{}, err
	}
	if rec.Status == Completed {
		return rec, nil
	}
	sn, err := k.Snapshot()
	if err != nil {
		return Session{}, err
	}
	if sn.TurnID != "" {
		return Session{}, session.ErrBusy
	}
	f, err := s.feed(id)
	if err != nil {
		return Session{}, err
	}
	defer f.release()
	entry, err := k.Note(event.Event{Kind: noteClosed, SessionID: id, ID: uuid.NewString(), Time: time.Now(), Source: event.KernelSource}, struct{}{})
	if err != nil {
		return Session{}, err
	}
	if err := k.Sync(context.Background(), entry); err != nil {
		return Session{}, err
	}
	return s.change(id, func(r *record) { r.Status = Completed })
}

// Fork makes a session that goes on from where another is, with the id child or, if that
// is "", with a new one.
func (s *Service) Fork(ctx context.Context, id, child string) (Session, error) {
	k, rec, err := s.steer(ctx, id)
	if err != nil {
		return Session{}, err
	}
	s.create.Lock()
	defer s.create.Unlock()
	now := now()
	if child == "" {
		child = newID("sess_", now)
	} else if _, err := s.cfg.Sessions.Find(child, k.Workspace()); !errors.Is(err, session.ErrNotFound) {
		return Session{}, errors.Join(problem(http.StatusConflict, "exists", "there is a session %s already", child), err)
	}
	r := record{Session: rec}
	r.ID, r.ParentID, r.CreatedAt, r.UpdatedAt = child, id, now, now
	r.Status, r.LastTurnID, r.Usage = Active, "", SessionUsage{}
	r.touch(time.Now())
	if err := s.save(r); err != nil {
		return Session{}, err
	}
	k, err = s.cfg.Sessions.Fork(id, r.ID)
	if err == nil && r.SystemPrompt != "" {
		err = k.SetSystem(r.SystemPrompt)
	}
	if err != nil {
		return Session{}, err
	}
	s.mu.Lock()
	s.records[r.ID] = &r
	s.mu.Unlock()
	f, err := s.feed(r.ID)
	if err != nil {
		return Session{}, err
	}
	f.done()
	return r.Session, nil
}

// Reset starts a session again from nothing, and returns where its old tape is kept: ""
// if keep was not set, and no fork needs it.
func (s *Service) Reset(ctx context.Context, id string, keep bool) (Session, string, error) {
	k, rec, err := s.steer(ctx, id)
	if err != nil {
		return Session{}, "", err
	}
	f, err := s.feed(id) // so that its readers hear of it
	if err != nil {
		return Session{}, "", err
	}
	defer f.release()
	path, err := k.Reset(keep)
	if err != nil {
		return Session{}, "", err
	}
	if rec.SystemPrompt != "" {
		if err := k.SetSystem(rec.SystemPrompt); err != nil {
			return Session{}, path, err
		}
	}
	s.recount(id)
	r, err := s.change(id, func(r *record) { r.Status, r.LastTurnID = Active, "" })
	return r, path, err
}

// away takes a session's folder out of where sessions are: its files are with its
// tape, in the archive of sessions.
func (s *Service) away(id string) error {
	s.forget(id)
	if err := s.cfg.Root.MkdirAll(archived, 0o700); err != nil {
		return err
	}
	return s.cfg.Root.Rename(event.Folder(id), archived+"/"+event.Folder(id)+"."+strconv.FormatInt(time.Now().UnixMilli(), 10))
}

// archived is the folder of sessions that were put away. No session has such an id.
const archived = ".archive"
