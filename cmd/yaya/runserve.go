package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/session"
)

// runWish is what yaya run asks for.
type runWish struct {
	Session   string `json:"session"`
	Workspace string `json:"workspace,omitempty"` // absolute; "" for the session's own
	Folder    string `json:"folder"`              // in which a new session works without a workspace
	Prompt    string `json:"prompt"`
	Provider  string `json:"provider,omitempty"`
	Strategy  string `json:"strategy,omitempty"`
	Approve   string `json:"approve"`            // ask, rules or never
	Declined  bool   `json:"declined,omitempty"` // the user does not trust the folder
}

// runLine is a line of the answer: one of its members.
type runLine struct {
	Note  string          `json:"note,omitempty"`  // for the person
	Event json.RawMessage `json:"event,omitempty"` // of the session
	End   *runEnd         `json:"end,omitempty"`   // the last one
}

// runEnd is how a run ended. Without a kind the turn has not begun.
type runEnd struct {
	Kind  string `json:"kind,omitempty"`
	Error string `json:"error,omitempty"`
}

// maxWish bounds the body of a run, in bytes: a prompt in JSON, and the rest.
const maxWish = 6*maxPrompt + 64<<10

// cli serves what yaya's own commands ask for beside the APIs; only the user that runs
// yaya reaches it, over the socket. Runs end with ctx. v1 is nil where nobody but this
// process has the sessions.
func (a *app) cli(ctx context.Context, v1 *sessions.Service) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /cli/mcp", a.mcp.CommandLine())
	mux.HandleFunc("POST /cli/run", func(w http.ResponseWriter, r *http.Request) {
		var wish runWish
		if err := decodeWish(r, &wish); err != nil {
			refuseCommand(w, http.StatusBadRequest, err)
			return
		}
		within, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(ctx, cancel)()
		w.Header().Set("Content-Type", "application/x-ndjson")
		out := &runAnswer{w: w}
		end, err := a.runHere(within, wish, out)
		if err != nil {
			end = runEnd{Error: feature.Clean(err.Error(), 4096)}
		}
		_ = out.write(runLine{End: &end}) // who is gone is not told
	})
	mux.HandleFunc("POST /cli/sessions/{id}/cancel", func(w http.ResponseWriter, r *http.Request) {
		if !a.kernel.Loop.Cancel(r.PathValue("id")) {
			refuseCommand(w, http.StatusConflict, errors.New("no turn is running"))
			return
		}
		answerCommand(w, struct{}{})
	})
	if v1 != nil {
		mux.HandleFunc("POST /cli/sessions/{id}/{what}", func(w http.ResponseWriter, r *http.Request) {
			var wish sessionWish
			err := decodeWish(r, &wish)
			if err == nil && wish.Workspace != "" { // the one that the API will find
				_, err = a.kernel.Sessions.Find(r.PathValue("id"), wish.Workspace)
			}
			var done sessionDone
			if err == nil {
				done, err = changeSession(r.Context(), v1, r.PathValue("id"), r.PathValue("what"), wish)
			}
			if err != nil {
				refuseCommand(w, http.StatusConflict, err)
				return
			}
			answerCommand(w, done)
		})
	}
	return mux
}

func decodeWish(r *http.Request, v any) error {
	dec := json.NewDecoder(io.LimitReader(r.Body, maxWish))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("the request cannot be read: %w", err)
	}
	return nil
}

func answerCommand(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // a client that went away gets nothing
}

func refuseCommand(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"detail": feature.Clean(err.Error(), 4096)}) // as above
}

// runAnswer writes the lines of an answer. It is safe for concurrent use.
type runAnswer struct {
	mu sync.Mutex
	w  http.ResponseWriter
}

func (o *runAnswer) write(line runLine) error {
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
	return o.write(runLine{Note: fmt.Sprintf(format, args...)})
}

// runHere submits the prompt of a run, and writes what comes of it until the turn ends.
func (a *app) runHere(ctx context.Context, w runWish, out *runAnswer) (runEnd, error) {
	if err := a.checkWish(w); err != nil {
		return runEnd{}, err
	}
	release, ok := a.commands.hold(w.Session, w.Approve)
	if !ok {
		return runEnd{}, fmt.Errorf("session %s: %w: wait for it, or use another --session", w.Session, session.ErrBusy)
	}
	defer release()
	s, err := a.runSession(w)
	if errors.Is(err, journal.ErrLocked) {
		err = fmt.Errorf("%w: wait for it, or use another --session", err)
	}
	if err != nil {
		return runEnd{}, err
	}
	a.kernel.Loop.SetProvider(w.Session, w.Provider)
	a.kernel.Loop.SetStrategy(w.Session, w.Strategy)
	defer func() { // they are of this run
		a.kernel.Loop.SetProvider(w.Session, "")
		a.kernel.Loop.SetStrategy(w.Session, "")
	}()
	if w.Declined {
		a.gate.Decline(w.Session)
	}
	if err := errors.Join(a.noteServers(ctx, out), a.noteBrought(s.Workspace(), out)); err != nil {
		return runEnd{}, err
	}
	f, err := a.follow(w, out)
	if err != nil {
		return runEnd{}, err
	}
	defer f.stop()
	res, err := a.kernel.Loop.Run(ctx, loop.Prompt{SessionID: w.Session, Text: w.Prompt})
	if errors.Is(err, session.ErrBusy) {
		err = fmt.Errorf("session %s: %w: wait for it, or use another --session", w.Session, err)
	}
	if err != nil {
		return runEnd{}, err
	}
	f.wait(res.TurnID)
	if res.Err != nil {
		return runEnd{cmp.Or(res.Kind, "failed"), feature.Clean(res.Err.Error(), 4096)}, nil
	}
	return runEnd{Kind: "completed"}, nil
}

// follower writes the events of a session into an answer.
type follower struct {
	a       *app
	session string
	conn    *session.Connection
	ended   chan string   // ids of turns
	beating chan struct{} // closed with the heartbeat
}

// follow begins to write the events of a run's session, until stop is called.
func (a *app) follow(w runWish, out *runAnswer) (*follower, error) {
	f := &follower{a: a, session: w.Session, ended: make(chan string, 16), beating: make(chan struct{})}
	var err error
	f.conn, err = a.kernel.Sessions.Attach(w.Session, session.AttachOptions{Adapter: "cli", Answers: func() bool { return w.Approve == "ask" }, Send: func(_ context.Context, it session.Item) error {
		if it.Resync != nil || it.Snapshot != nil {
			return nil
		}
		raw, err := json.Marshal(it.Event)
		if err == nil {
			err = out.write(runLine{Event: raw})
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
				_ = a.kernel.Sessions.Heartbeat(w.Session, f.conn.ID()) // gone is gone
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
	_ = f.a.kernel.Sessions.Detach(f.session, f.conn.ID()) // it may have ended by itself
	<-f.conn.Done()
	<-f.beating
}

func (a *app) checkWish(w runWish) error {
	switch w.Approve {
	case "ask", "rules", "never":
	default:
		return fmt.Errorf("a run is approved by ask, rules or never, not by %q", w.Approve)
	}
	if err := event.CheckClientSession(w.Session); err != nil {
		return err
	}
	if w.Workspace != "" { // the current folder need not be one: then tools say why
		if err := a.guard.Check(w.Workspace); err != nil {
			return err
		}
	}
	if w.Provider != "" && a.kernel.Settings.Providers().GetInstance(w.Provider) == nil {
		return fmt.Errorf("there is no provider %q: yaya provider list shows those that there are", w.Provider)
	}
	return nil
}

// runSession opens the session of a run: the one that there is of that id in the folder
// or elsewhere, or a new one.
func (a *app) runSession(w runWish) (*session.Session, error) {
	m := a.kernel.Sessions
	s, known := m.Get(w.Session)
	var err error
	for _, dir := range []string{w.Folder, ""} {
		if known || w.Workspace != "" {
			break
		}
		if s, err = m.Find(w.Session, dir); err == nil {
			known = true
		} else if !errors.Is(err, session.ErrNotFound) {
			return nil, err
		}
	}
	if !known || w.Workspace != "" {
		if s, err = m.Open(w.Session, cmp.Or(w.Workspace, w.Folder)); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// noteServers waits for the servers that start, and says which are not there.
func (a *app) noteServers(ctx context.Context, out *runAnswer) error {
	all := a.host.Status()
	if len(all) > 0 && !settled(all) {
		if err := out.note("starting %d MCP servers …", len(all)); err != nil {
			return err
		}
		a.waitSettled(ctx, nil)
	}
	for _, st := range a.host.Status() {
		if st.State.Usable() {
			continue
		}
		why := cmp.Or(st.Reason, st.LastError, string(st.State))
		if st.State == feature.Installing {
			why = "it is still installing: " + why
		}
		if err := out.note("%s is not there: %s", st.ID, oneLine(why)); err != nil {
			return err
		}
	}
	return nil
}

// noteBrought says which servers a trusted folder brings that this yaya, which runs in
// another, has not started.
func (a *app) noteBrought(dir string, out *runAnswer) error {
	here, err := folder.Resolve(a.workspace)
	if err != nil {
		return err
	}
	if at, err := folder.Resolve(dir); err != nil || at == here {
		return nil //nolint:nilerr // a session without a folder
	}
	var l loaded
	if err := l.project(dir, a.folders); err != nil {
		return nil //nolint:nilerr // tools say what is wrong with the folder
	}
	for _, s := range l.servers {
		if err := out.note("the server %s of %s is not used: yaya runs in %s (use it with --mcp-config %s)", s.Name, s.File, here, s.File); err != nil {
			return err
		}
	}
	return nil
}
