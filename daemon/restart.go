package daemon

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/systemd"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
)

// Bounds of a restart.
const (
	CheckEnv     = "YAYA_SERVE_CHECK" // set for a successor that only says whether it could start
	successorIs  = "yaya can take over: "
	checkTime    = 20 * time.Second
	maxChecked   = 64 << 10 // bytes
	DefaultDrain = 10 * time.Second
	MaxDrain     = 10 * time.Minute
)

// States of a restart.
const (
	RestartRunning = "running" // this process has not been replaced yet
	RestartDone    = "done"
	RestartFailed  = "failed"
)

// RestartRequest asks for a restart.
type RestartRequest struct {
	DrainMS int64 `json:"drain_ms"` // how long calls may take to end
}

// Restart is the last restart of a yaya.
type Restart struct {
	ID      string `json:"id,omitempty"` // "" if there was none
	State   string `json:"state,omitempty"`
	Error   string `json:"error,omitempty"`
	From    string `json:"from,omitempty"` // versions
	To      string `json:"to,omitempty"`
	Drained bool   `json:"drained"` // no call was cut off
	TookMS  int64  `json:"took_ms,omitempty"`
}

// restarts are the restarts that users ask for. Methods are safe for concurrent use.
type restarts struct {
	program string // of the successor
	check   func(ctx context.Context, program string) (version string, err error)
	audit   func(event, actor string, payload map[string]any) error
	asked   chan *restart // to whoever waits for the end of this yaya
	// draining says that nobody is accepted, and the service manager has to be patient.
	draining atomic.Bool

	mu   sync.Mutex
	last Restart
}

// restart is one that was asked for.
type restart struct {
	id    string
	drain time.Duration
	began time.Time
}

// newRestarts returns those of a yaya; in is what it was started with.
func newRestarts(f *front, in *Inherited) (*restarts, error) {
	r := &restarts{check: f.checkSuccessor, asked: make(chan *restart, 1)}
	var err error
	if r.program, err = startedAs(); err != nil {
		return nil, err
	}
	r.audit = func(event, actor string, payload map[string]any) error {
		controlPlane := f.bridge.core.st.controlPlane
		_, err := controlPlane.log.Append(context.Background(), control.Change{Event: event, Actor: actor, Target: controlPlane.kernel, Payload: payload}, nil)
		if controlPlane.cluster != nil && errors.Is(err, control.ErrUnavailable) { // a node can restart while it is cut off
			f.bridge.core.st.at.log.Warn().Err(err).Str("event", event).Msg("the audit has no entry about this")
			return nil
		}
		return err
	}
	if in.Restarted() {
		n := in.note
		r.last = Restart{ID: n.ID, State: RestartRunning, From: n.Version, To: Version(), Drained: n.Drained, Error: n.Failed}
	}
	return r, nil
}

// settled says that this yaya serves, after a restart.
func (r *restarts) settled(in *Inherited, kernel string) error {
	if !in.Restarted() {
		return nil
	}
	r.mu.Lock()
	r.last.State, r.last.TookMS = RestartDone, time.Since(in.note.Began).Milliseconds()
	if r.last.Error != "" {
		r.last.State = RestartFailed
	}
	last := r.last
	r.mu.Unlock()
	payload := map[string]any{"from": last.From, "to": last.To, "took_ms": last.TookMS, "drained": last.Drained}
	if last.State == RestartFailed {
		payload["error"] = feature.Clean(last.Error, 1024)
		return r.audit("restart_failed", kernel, payload)
	}
	return r.audit("restarted", kernel, payload)
}

// now returns the last restart.
func (r *restarts) now() Restart {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// idle reports whether no restart goes on.
func (r *restarts) idle() bool { return r.now().State != RestartRunning }

// failed ends a restart that has left this yaya running.
func (r *restarts) failed(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last.State, r.last.Error = RestartFailed, feature.Clean(why.Error(), 4096)
}

// ask begins a restart, if the successor could start.
func (r *restarts) ask(ctx context.Context, actor string, drain time.Duration) (Restart, *api.Failure) {
	if noRestart != nil {
		return Restart{}, api.Fail(http.StatusConflict, "yaya does not restart here: %s", noRestart)
	}
	r.mu.Lock()
	if r.last.State == RestartRunning {
		r.mu.Unlock()
		return Restart{}, api.Fail(http.StatusConflict, "yaya restarts already")
	}
	was := r.last
	r.last = Restart{ID: rand.Text(), State: RestartRunning, From: Version()}
	r.mu.Unlock()
	version, err := r.check(ctx, r.program)
	if err == nil {
		err = r.audit("restart_begun", actor, map[string]any{"from": Version(), "to": version, "drain_ms": drain.Milliseconds()})
	} else if aerr := r.audit("restart_refused", actor, map[string]any{"error": feature.Clean(err.Error(), 1024)}); aerr != nil {
		err = errors.Join(err, aerr)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.last = was
		return Restart{}, api.Fail(http.StatusConflict, "yaya was not restarted, and goes on as before: %s", feature.Clean(err.Error(), 4096))
	}
	r.last.To = version
	r.asked <- &restart{id: r.last.ID, drain: drain, began: time.Now()} // there is one at a time
	return r.last, nil
}

// routes are those of yaya restart.
func (r *restarts) routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /cli/restart", func(w http.ResponseWriter, _ *http.Request) { api.Write(w, http.StatusOK, r.now()) })
	mux.HandleFunc("POST /cli/restart", func(w http.ResponseWriter, req *http.Request) {
		var in RestartRequest
		if err := api.Decode(req, maxRequest, &in); err != nil {
			api.Refuse(w, req, api.Detail, err)
			return
		}
		drain := time.Duration(in.DrainMS) * time.Millisecond
		if in.DrainMS < 0 || drain > MaxDrain {
			api.Refuse(w, req, api.Detail, api.Fail(http.StatusBadRequest, "drain_ms: 0 to %d", MaxDrain.Milliseconds()))
			return
		}
		out, refused := r.ask(req.Context(), auth.FromContext(req.Context()).Actor(), drain)
		if refused != nil {
			api.Refuse(w, req, api.Detail, refused)
			return
		}
		api.Write(w, http.StatusAccepted, out)
	})
}

// checkSuccessor runs the program of a restart with this one's arguments, to hear whether it
// could start: a broken binary and a mistake in the configuration end here.
func (f *front) checkSuccessor(ctx context.Context, program string) (version string, err error) {
	p, err := f.bridge.core.procs.Start(proc.Spec{Path: program, Args: os.Args[1:], Env: append(os.Environ(), CheckEnv+"=1")})
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	defer context.AfterFunc(ctx, p.Kill)()
	defer p.Stop(ctx)
	said, err := io.ReadAll(io.LimitReader(p.Stdout, maxChecked)) //nolint:forbidigo // bounded by the reader
	if err == nil {
		select {
		case <-p.Done():
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "", fmt.Errorf("%s did not check its configuration within %v", program, checkTime)
	}
	if err != nil {
		return "", fmt.Errorf("check %s: %w", program, err)
	}
	for line := range strings.Lines(string(said)) {
		if version, ok := strings.CutPrefix(strings.TrimSpace(line), successorIs); ok && p.ExitCode() == 0 {
			return version, nil
		}
	}
	why := strings.TrimPrefix(strings.TrimSpace(p.Stderr()), "yaya: ")
	if p.ExitCode() == 0 {
		why = "it is not a yaya that can take over from this one: stop this yaya and start that program"
	}
	return "", fmt.Errorf("%s cannot start: %s (%w)", program, why, p.Err())
}

// CheckServe finds, beside a running daemon, what would keep [Serve] from starting, and says
// on out that nothing does.
func CheckServe(ctx context.Context, g *Flags, o Options, out io.Writer) (err error) {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	p.readOnly = true // the yaya that runs may be an older one, which upgrades nothing
	at, err := openPlace(g, p, access{settings: o.Settings, log: g.NewLog(os.Stderr)})
	if err != nil {
		return err
	}
	defer end(ctx, at, &err)
	if err := checkServe(at, o); err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, successorIs+Version())
	return err
}

func checkServe(at *place, o Options) error {
	if _, err := manage.Load(at.Servers(), o.MCPConfig); err != nil {
		return err
	}
	if _, err := verifier(at.settings, time.Now); err != nil {
		return err
	}
	on := true
	if v, _, ok := at.settings.Get("plugin.web.enabled"); ok && json.Unmarshal(v, &on) == nil && !on {
		return errWebOff
	}
	if o.Listen.Cert == "" {
		return nil
	}
	_, err := (&certificate{cert: o.Listen.Cert, key: o.Listen.Key}).get(nil)
	return err
}

// handOver ends serving for the program of a restart. If it fails before anything was ended,
// this yaya goes on.
func (r *running) handOver(ctx context.Context, asked *restart) (_ *Successor, err error) {
	f, at := r.front, r.front.bridge.core.st.at
	s := &Successor{path: f.restarts.program, args: os.Args, note: note{ID: asked.id, Version: Version(), Began: asked.began, Args: os.Args}}
	defer func() {
		if err != nil {
			_ = s.close() // nothing was written there
		}
	}()
	if s.file, err = at.scratch(); err != nil {
		return nil, err
	}
	if s.lock, err = duplicate(at.lock); err != nil {
		return nil, err
	}
	if program, err := os.Open(ownProgram); err == nil { //nolint:forbidigo // a kernel file; elsewhere there is no way back
		s.program = program
	}
	if plain := f.in.source.listener; plain != nil {
		x, err := systemd.Keep(acmeSocket, plain)
		if err != nil {
			return nil, err
		}
		s.sockets = append(s.sockets, x)
	}
	at.service.tell(append(systemd.Reload("restarts"), systemd.Alive)...)
	f.restarts.draining.Store(true)
	defer f.restarts.draining.Store(false)
	left, err := f.web.Leave(ctx, asked.drain, func() {
		f.bridge.down.Leave()
		f.api.Close()
		f.endSockets()
	})
	at.service.tell(systemd.Alive) // for the end of this program, and the start of the next
	if err != nil {
		return nil, err
	}
	s.sockets, s.conns = append(s.sockets, left.Sockets...), left.Conns
	s.note.Drained, s.note.MCP = left.Drained, f.bridge.down.HandOver()
	at.log.Info().Str("program", s.path).Bool("drained", left.Drained).Int("connections", len(left.Conns)).Msg("restarting")
	return s, nil
}

// close closes what a successor does not get.
func (s *Successor) close() error {
	var errs []error
	for _, f := range []*os.File{s.file, s.lock, s.program} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	for _, x := range s.sockets {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}
