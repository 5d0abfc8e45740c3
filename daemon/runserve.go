package daemon

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
)

// RunRequest is the request of yaya run.
type RunRequest struct {
	Session   string `json:"session"`
	Named     bool   `json:"named,omitempty"`     // by the user, who may expect that it exists
	Workspace string `json:"workspace,omitempty"` // absolute; "" for the session's own
	Folder    string `json:"folder"`              // in which a new session works without a workspace
	Prompt    string `json:"prompt"`
	Provider  string `json:"provider,omitempty"`
	Model     string `json:"model,omitempty"` // is chosen for the session
	Strategy  string `json:"strategy,omitempty"`
	Approve   string `json:"approve"`            // ask, rules or never
	Plan      bool   `json:"plan,omitempty"`     // the session plans first
	Declined  bool   `json:"declined,omitempty"` // the user does not trust the folder
}

// RunEvent is a line of the answer: one of its members.
type RunEvent struct {
	Note  string          `json:"note,omitempty"`  // for the person
	Event json.RawMessage `json:"event,omitempty"` // of the session
	End   *RunOutcome     `json:"end,omitempty"`   // the last one
}

// RunOutcome is how a run ended. Without a kind the turn has not begun.
type RunOutcome struct {
	Kind  string `json:"kind,omitempty"`
	Error string `json:"error,omitempty"`
}

// maxRequest bounds the body of a command's request, in bytes: a prompt in JSON, and the rest.
const maxRequest = 6*MaxPrompt + 64<<10

// CLI serves what yaya run asks for.
func (a *App) CLI(ctx context.Context) http.Handler { return newCLI(ctx, a.bridge, nil, nil) }

// newCLI serves what yaya's own commands ask for beside the APIs; only the user that runs
// yaya reaches it, over the socket. Runs end with ctx. v1 is nil where nobody but this
// process has the sessions, and r where nothing can be restarted.
func newCLI(ctx context.Context, b *bridge, v1 *sessions.Service, r *restarts) http.Handler {
	mux := http.NewServeMux()
	if r != nil {
		r.routes(mux)
	}
	mux.Handle("POST /cli/mcp", b.down.CommandLine())
	mux.HandleFunc("POST /cli/run", func(w http.ResponseWriter, r *http.Request) {
		var req RunRequest
		if err := api.Decode(r, maxRequest, &req); err != nil {
			api.Refuse(w, r, api.Detail, err)
			return
		}
		within, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		w.Header().Set("Content-Type", "application/x-ndjson")
		out := &runAnswer{w: w}
		end, err := b.runTurn(within, req, out)
		if err != nil {
			end = RunOutcome{Error: feature.Clean(err.Error(), 4096)}
		}
		_ = out.write(RunEvent{End: &end}) // who is gone is not told
	})
	mux.HandleFunc("POST /cli/sessions/{id}/cancel", func(w http.ResponseWriter, r *http.Request) {
		if !b.core.kernel.Loop.Cancel(r.PathValue("id")) {
			api.Refuse(w, r, api.Detail, api.Fail(http.StatusConflict, "no turn is running"))
			return
		}
		api.Write(w, http.StatusOK, struct{}{})
	})
	if c := b.core.st.controlPlane; c != nil {
		c.noteRoute(mux)
	}
	if v1 != nil {
		mux.HandleFunc("POST /cli/prune", func(w http.ResponseWriter, r *http.Request) {
			var req PruneRequest
			if err := api.Decode(r, maxRequest, &req); err != nil {
				api.Refuse(w, r, api.Detail, err)
				return
			}
			done, err := prune(r.Context(), b.core.kernel.Sessions, v1, req, b.core.st.audit())
			if err != nil {
				api.Refuse(w, r, api.Detail, api.Fail(http.StatusConflict, "%s", feature.Clean(err.Error(), 4096)))
				return
			}
			api.Write(w, http.StatusOK, done)
		})
		mux.HandleFunc("POST /cli/sessions/{id}/{what}", func(w http.ResponseWriter, r *http.Request) {
			var req SessionRequest
			if err := api.Decode(r, maxRequest, &req); err != nil {
				api.Refuse(w, r, api.Detail, err)
				return
			}
			var err error
			if req.Workspace != "" { // the one that the API will find
				_, err = b.core.kernel.Sessions.Find(r.PathValue("id"), req.Workspace)
			}
			var done SessionAnswer
			if err == nil {
				done, err = changeSession(r.Context(), v1, r.PathValue("id"), r.PathValue("what"), req)
			}
			if err != nil {
				api.Refuse(w, r, api.Detail, api.Fail(http.StatusConflict, "%s", feature.Clean(err.Error(), 4096)))
				return
			}
			api.Write(w, http.StatusOK, done)
		})
	}
	return owners(mux)
}

// owners refuses whoever has not been established to be the user that runs yaya.
func owners(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := auth.Established(r.Context())
		if err == nil && auth.FromContext(r.Context()).Kind != auth.Owner {
			err = errors.New("this is for the commands of the user that runs yaya")
		}
		if err != nil {
			api.Refuse(w, r, api.Detail, api.Fail(http.StatusForbidden, "%v", err))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// runAnswer writes the lines of an answer. It is safe for concurrent use.
type runAnswer struct {
	mu sync.Mutex
	w  http.ResponseWriter
}

func (o *runAnswer) write(line RunEvent) error {
	raw, err := json.Marshal(line)
	if err != nil {
		return err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if _, err := o.w.Write(append(raw, '\n')); err != nil {
		return err
	}
	return http.NewResponseController(o.w).Flush()
}

func (o *runAnswer) note(format string, args ...any) error {
	return o.write(RunEvent{Note: fmt.Sprintf(format, args...)})
}

// runTurn submits the prompt of a run, and writes what comes of it until the turn ends.
func (b *bridge) runTurn(ctx context.Context, w RunRequest, out *runAnswer) (RunOutcome, error) {
	if err := b.checkRun(w); err != nil {
		return RunOutcome{}, err
	}
	release, ok := b.core.commands.hold(w.Session, w.Approve)
	if !ok {
		return RunOutcome{}, orElsewhere(fmt.Errorf("session %s: %w", w.Session, session.ErrBusy))
	}
	defer release()
	s, begun, err := b.runSession(w)
	if err != nil {
		return RunOutcome{}, orElsewhere(err)
	}
	// A turn of another client would go on with what this run asks for.
	if err := b.core.kernel.Loop.AtRest(w.Session, s, func() error { return b.prepareRun(ctx, s, w) }); err != nil {
		return RunOutcome{}, orElsewhere(err)
	}
	defer func() { // they are of this run
		b.core.kernel.Loop.SetProvider(w.Session, "")
		b.core.kernel.Loop.SetStrategy(w.Session, "")
	}()
	if err := noteSession(s, begun, w, out); err != nil {
		return RunOutcome{}, err
	}
	if w.Declined {
		b.core.gate.Decline(w.Session)
	}
	if err := errors.Join(b.noteServers(ctx, out), b.noteBrought(s.Workspace(), out)); err != nil {
		return RunOutcome{}, err
	}
	f, err := b.follow(w, out)
	if err != nil {
		return RunOutcome{}, err
	}
	defer f.stop()
	res, err := b.core.kernel.Loop.Run(ctx, loop.Prompt{SessionID: w.Session, Text: w.Prompt})
	if err != nil {
		return RunOutcome{}, orElsewhere(err)
	}
	f.wait(res.TurnID)
	if res.Err != nil {
		return RunOutcome{cmp.Or(res.Kind, "failed"), feature.Clean(res.Err.Error(), 4096)}, nil
	}
	return RunOutcome{Kind: "completed"}, nil
}

// noteSession says of a session that the user has named whether it is new, or works in another folder
// than the one in which the user is.
func noteSession(s *session.Session, begun bool, w RunRequest, out *runAnswer) error {
	switch at := s.Workspace(); {
	case !w.Named:
	case begun:
		return out.note("the session %s is new (yaya session list shows those that there are)", w.Session)
	case w.Workspace == "" && at != "" && at != w.Folder:
		return out.note("the session %s works in %s", w.Session, OneLine(at))
	}
	return nil
}

// prepareRun gives the session of a run what the run asks for.
func (b *bridge) prepareRun(ctx context.Context, s *session.Session, w RunRequest) error {
	if w.Plan {
		if err := s.SetMode(ctx, session.Plan); err != nil {
			return err
		}
	}
	if w.Model != "" {
		if err := s.SetModel(ctx, w.Model); err != nil {
			return err
		}
	}
	b.core.kernel.Loop.SetProvider(w.Session, w.Provider)
	b.core.kernel.Loop.SetStrategy(w.Session, w.Strategy)
	return nil
}

// orElsewhere adds to the error of a session that somebody else uses what the user can do.
func orElsewhere(err error) error {
	if errors.Is(err, session.ErrBusy) || errors.Is(err, journal.ErrLocked) {
		return fmt.Errorf("%w: wait for it, or use another --session", err)
	}
	return err
}

// follower writes the events of a session into an answer.
type follower struct {
	sessions *session.Manager
	session  string
	conn     *session.Connection
	ended    chan string   // ids of turns
	beating  chan struct{} // closed with the heartbeat
}

// follow begins to write the events of a run's session, until stop is called.
func (b *bridge) follow(w RunRequest, out *runAnswer) (*follower, error) {
	f := &follower{sessions: b.core.kernel.Sessions, session: w.Session, ended: make(chan string, 16), beating: make(chan struct{})}
	var err error
	f.conn, err = b.core.kernel.Sessions.Attach(w.Session, session.AttachOptions{Adapter: "cli", Answers: func() bool { return w.Approve == "ask" }, Send: func(_ context.Context, it session.Item) error {
		if it.Resync != nil || it.Snapshot != nil {
			return nil
		}
		raw, err := json.Marshal(it.Event)
		if err == nil {
			err = out.write(RunEvent{Event: raw})
		}
		switch p := it.Event.Payload.(type) {
		case event.TurnCompleted:
			f.end(p.TurnID)
		case event.TurnFailed:
			f.end(p.TurnID)
		case event.TurnCancelled:
			f.end(p.TurnID)
		}
		return err
	}})
	if err != nil {
		return nil, err
	}
	go func() {
		defer close(f.beating)
		beat := time.NewTicker(20 * time.Second)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				_ = b.core.kernel.Sessions.Heartbeat(w.Session, f.conn.ID()) // gone is gone
			case <-f.conn.Done():
				return
			}
		}
	}()
	return f, nil
}

func (f *follower) end(turn string) {
	select {
	case f.ended <- turn:
	default: // nobody waits for so many
	}
}

// lastEvents is how long the last events of a turn may take to be written.
const lastEvents = 5 * time.Second

// wait waits until the end of that turn has been written, for a moment at most.
func (f *follower) wait(turn string) {
	late := time.NewTimer(lastEvents)
	defer late.Stop()
	for {
		select {
		case id := <-f.ended:
			if id == turn {
				return
			}
		case <-f.conn.Done():
			return
		case <-late.C:
			return
		}
	}
}

func (f *follower) stop() {
	_ = f.sessions.Detach(f.session, f.conn.ID()) // it may have ended by itself
	<-f.conn.Done()
	<-f.beating
}

func (b *bridge) checkRun(w RunRequest) error {
	switch w.Approve {
	case "ask", "rules", "never":
	default:
		return fmt.Errorf("a run is approved by ask, rules or never, not by %q", w.Approve)
	}
	if err := event.CheckClientSession(w.Session); err != nil {
		return err
	}
	if w.Workspace != "" { // the current folder need not be one: then tools say why
		if err := b.core.st.guard.Check(w.Workspace); err != nil {
			return err
		}
	}
	if w.Provider != "" && b.core.kernel.Settings.Providers().GetInstance(w.Provider) == nil {
		return fmt.Errorf("there is no provider %q: yaya provider list shows those that there are", w.Provider)
	}
	if w.Model != "" {
		if _, err := b.core.kernel.Choose(w.Model); err != nil {
			return err
		}
	}
	return nil
}

// runSession opens the session of a run: the one that there is of that id in the folder
// or elsewhere, or a new one.
func (b *bridge) runSession(w RunRequest) (s *session.Session, begun bool, err error) {
	m := b.core.kernel.Sessions
	s, known := m.Get(w.Session)
	for _, dir := range []string{w.Folder, ""} {
		if known || w.Workspace != "" {
			break
		}
		if s, err = m.Find(w.Session, dir); err == nil {
			known = true
		} else if !errors.Is(err, session.ErrNotFound) {
			return nil, false, err
		}
	}
	if !known && w.Workspace != "" {
		if _, err = m.Find(w.Session, w.Workspace); err == nil {
			known = true
		} else if !errors.Is(err, session.ErrNotFound) {
			return nil, false, err
		}
	}
	if !known || w.Workspace != "" {
		if s, err = m.Open(w.Session, cmp.Or(w.Workspace, w.Folder)); err != nil {
			return nil, false, err
		}
	}
	return s, !known, nil
}

// noteServers waits for the servers that start, and says which are not there.
func (b *bridge) noteServers(ctx context.Context, out *runAnswer) error {
	all := b.host.Status()
	if len(all) > 0 && !Settled(all) {
		if err := out.note("starting %s …", worded.Count(len(all), "MCP server", "MCP servers")); err != nil {
			return err
		}
		b.waitSettled(ctx, nil)
	}
	for _, st := range b.host.Status() {
		if st.State.Usable() {
			continue
		}
		why := cmp.Or(st.Reason, st.LastError, string(st.State))
		if st.State == feature.Installing {
			why = "it is still installing: " + why
		}
		if err := out.note("%s is not there: %s", st.ID, OneLine(why)); err != nil {
			return err
		}
	}
	return nil
}

// noteBrought says which servers a trusted folder brings that this yaya, which runs in
// another, has not started.
func (b *bridge) noteBrought(dir string, out *runAnswer) error {
	here, err := folder.Resolve(b.core.st.workspace)
	if err != nil {
		return err
	}
	if at, err := folder.Resolve(dir); err != nil || at == here {
		return nil //nolint:nilerr // a session without a folder
	}
	var l manage.Loaded
	if err := l.Project(dir, b.core.st.folders); err != nil {
		return nil //nolint:nilerr // tools say what is wrong with the folder
	}
	for _, s := range l.Servers {
		if err := out.note("the server %s of %s is not used: yaya runs in %s (use it with --mcp-config %s)", s.Name, s.File, here, s.File); err != nil {
			return err
		}
	}
	return nil
}

// MaxPrompt bounds a prompt, in bytes.
const MaxPrompt = 1 << 20
