package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/cmd/yaya/chat"
	"github.com/yaya-ai/yaya/internal/jsonrpc"
)

// Options are the version that the agent names, and the log for what no client is told.
type Options struct {
	Version string
	Log     zerolog.Logger
}

// Serve speaks the protocol until in ends, or ctx does. Turns that run then go on in yaya.
func Serve(ctx context.Context, api *chat.Client, o Options, in io.Reader, out io.Writer) error {
	a := &agent{o: o, api: api, open: map[string]*session{}}
	a.life, a.end = context.WithCancel(ctx)
	a.conn = newConn(out, a)
	err := a.conn.serve(ctx, in)
	a.end()
	a.work.Wait()
	return err
}

// agent is the side of the protocol that works. It answers on the goroutines of its
// connection.
type agent struct {
	o    Options
	api  *chat.Client
	conn *conn
	life context.Context // a base context: of what the open sessions run
	end  context.CancelFunc
	work sync.WaitGroup

	mu   sync.Mutex
	open map[string]*session
}

// request implements [handler]. A prompt begins at once: session/cancel may be the next line.
func (a *agent) request(method string, params []byte) func(context.Context) (any, error) {
	if method != "session/prompt" {
		return func(ctx context.Context) (any, error) { return a.answer(ctx, method, params) }
	}
	var s *session
	var t *turn
	content, err := handle(params, func(p prompt) (content []block, err error) {
		if s, err = a.session(p.Session); err == nil {
			t, err = s.begin()
		}
		return p.Content, err
	})
	if run := commandOf(content); err == nil && run != nil {
		var life context.Context
		life, t.stop = context.WithCancel(s.ctx)
		return func(ctx context.Context) (any, error) { return s.do(ctx, life, t, run) }
	}
	return func(ctx context.Context) (any, error) {
		if err != nil {
			return nil, err
		}
		return s.answer(ctx, t, content)
	}
}

func (a *agent) answer(ctx context.Context, method string, params []byte) (any, error) {
	switch method {
	case "initialize":
		return a.initialize(), nil // of an older or newer client, too: it learns which version this is
	case "authenticate":
		return nil, wrong("yaya needs no sign-in here: who may start it may use it")
	case "session/new":
		return handle(params, func(p opening) (any, error) { return a.create(ctx, p) })
	case "session/load":
		return handle(params, func(p opening) (any, error) { return a.load(ctx, p, true) })
	case "session/resume":
		return handle(params, func(p opening) (any, error) { return a.load(ctx, p, false) })
	case "session/set_mode":
		return handle(params, func(p setMode) (any, error) {
			if _, err := a.session(p.Session); err != nil {
				return nil, err
			}
			return struct{}{}, fault(a.api.SetMode(ctx, p.Session, p.Mode))
		})
	case "session/set_config_option":
		return handle(params, func(p setOption) (any, error) { return a.setOption(ctx, p) })
	case "session/list":
		return handle(params, func(p listing) (any, error) { return a.list(ctx, p) })
	case "session/close":
		return handle(params, func(p inSession) (any, error) { return struct{}{}, a.close(ctx, p.Session) })
	case "session/delete":
		return handle(params, func(p inSession) (any, error) {
			if err := a.close(ctx, p.Session); err != nil {
				return nil, err
			}
			err := a.api.Delete(ctx, p.Session)
			if refused, ok := errors.AsType[*chat.Error](err); ok && refused.Status == http.StatusNotFound {
				err = nil // it is gone, as it should be
			}
			return struct{}{}, err
		})
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "yaya does not know the method " + method}
}

func (a *agent) notification(method string, params []byte) {
	var p inSession
	if method != "session/cancel" || json.Unmarshal(params, &p) != nil {
		return // others may be ignored
	}
	if s, err := a.session(p.Session); err == nil {
		s.cancel(s.running()) // not the next one, which may be in the next line
	}
}

func (a *agent) initialize() initialized {
	return initialized{
		Version: version, Auth: []struct{}{}, Agent: named{"yaya", "yaya", a.o.Version},
		Capabilities: capabilities{
			Load: true, Prompt: map[string]bool{"image": true, "embeddedContext": true},
			Session: map[string]struct{}{"list": {}, "resume": {}, "close": {}, "delete": {}},
		},
	}
}

func (a *agent) create(ctx context.Context, p opening) (any, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	id, err := a.api.New(ctx, p.Folder)
	if err != nil {
		return nil, fault(err)
	}
	s := newSession(a, id, p)
	a.opened(s)
	return begun{id, modesNow(works), a.configured(ctx, ""), s}, nil
}

// The modes of a session: see ADR 90.
const (
	works = "work"
	plans = "plan"
	edits = "edits"
)

func modesNow(now string) modes {
	return modes{cmp.Or(now, works), []mode{
		{works, "Work", "Reads, changes files and runs commands, as far as you allow it"},
		{edits, "Accept edits", "Changes files without a question, and asks before it runs commands"},
		{plans, "Plan", "Only reads, until you approve a plan"},
	}}
}

// load opens a session that is there. Its past is sent before the answer, or not at all.
func (a *agent) load(ctx context.Context, p opening, past bool) (any, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	at, err := a.api.Session(ctx, p.Session)
	if err != nil {
		return nil, fault(err)
	}
	if filepath.Clean(at.Workspace) != filepath.Clean(p.Folder) {
		return nil, wrong("the session works in " + at.Workspace + ", not in " + p.Folder)
	}
	s := newSession(a, p.Session, p)
	if past {
		s.last, err = a.api.Past(ctx, p.Session, s.take)
	}
	var now chat.Snapshot
	if err == nil {
		now, err = a.api.Snapshot(ctx, p.Session)
	}
	if err != nil {
		s.end()
		return nil, fault(err)
	}
	s.last, s.waiting = cmp.Or(s.last, now.Cursor), now.Asks
	a.opened(s)
	return loaded{modesNow(at.Mode), a.configured(ctx, at.Model), s}, nil
}

// opened notes that a session is open.
func (a *agent) opened(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if old := a.open[s.id]; old != nil {
		old.end() // this one replaces it
	}
	a.open[s.id] = s
}

func (a *agent) list(ctx context.Context, p listing) (*listed, error) {
	all, next, err := a.api.Sessions(ctx, p.Cursor)
	if err != nil {
		return nil, fault(err)
	}
	out := &listed{Sessions: []listedSession{}, Next: next}
	for _, s := range all {
		if filepath.IsAbs(s.Workspace) && (p.Folder == "" || filepath.Clean(p.Folder) == filepath.Clean(s.Workspace)) {
			out.Sessions = append(out.Sessions, listedSession{s.ID, s.Workspace, s.Title, s.Updated.UTC().Format(time.RFC3339)})
		}
	}
	return out, nil
}

// close ends the work of a session that is open here; the session stays.
func (a *agent) close(ctx context.Context, id string) error {
	s, err := a.session(id)
	if err != nil {
		return nil //nolint:nilerr // there is nothing to close
	}
	err = s.abandon(ctx, s.running())
	a.forget(s)
	return fault(err)
}

func (a *agent) forget(s *session) {
	a.mu.Lock()
	if a.open[s.id] == s {
		delete(a.open, s.id)
	}
	a.mu.Unlock()
	s.end()
}

func (a *agent) session(id string) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.open[id]; s != nil {
		return s, nil
	}
	return nil, &jsonrpc.Error{Code: codeNoFind, Message: fmt.Sprintf("the session %q is not open: session/new or session/load opens one", id)}
}

func (p opening) check() error {
	if !filepath.IsAbs(p.Folder) {
		return wrong("cwd is the absolute path of a folder")
	}
	if len(p.More) > 0 {
		return wrong("an agent of yaya works in one folder: additionalDirectories are not supported")
	}
	return nil
}

// handle decodes the parameters of a request.
func handle[P, R any](params []byte, f func(P) (R, error)) (out R, err error) {
	var p P
	if err := json.Unmarshal(params, &p); err != nil {
		return out, wrong("the parameters do not have the form that the method has: " + err.Error())
	}
	return f(p)
}

func wrong(why string) error { return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: why} }

// fault is an error of the session API as one of the protocol.
func fault(err error) error {
	refused, ok := errors.AsType[*chat.Error](err)
	switch {
	case ok && refused.Status == http.StatusNotFound:
		return &jsonrpc.Error{Code: codeNoFind, Message: refused.Message}
	case ok && refused.Status < http.StatusInternalServerError:
		return wrong(refused.Message)
	}
	return err
}
