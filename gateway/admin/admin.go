// Package admin is the control plane over HTTP: JSON in, JSON out, below /api/.
//
// The handlers say what they take and give, and the OpenAPI document
// (/api/openapi.json) is made from that. Errors are {"detail": "…"} (Y-201). Bodies
// are bounded and strict. What this yaya does not have answers 503 (Y-200). Who may
// reach a resource is decided by the routes of gateway; what a caller may do with
// devices, and whether it may see secrets (?show=1), is asked of package auth. What
// changes something stands in the audit before it happens (W-44, R30).
//
// [Live] tells clients on the topics dashboard:main and dashboard:metrics that
// something has changed, so that nobody has to poll. Its goroutines end with
// [Live.Close]. Everything is safe for concurrent use.
package admin

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/openapi"
	"github.com/yaya-ai/yaya/gateway/rpc"
	"github.com/yaya-ai/yaya/internal/control"
	"github.com/yaya-ai/yaya/internal/linelog"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Config assembles the API. What is nil is not there: its resources answer 503.
type Config struct {
	Bus       *bus.Bus
	Settings  *config.Store
	Plugins   *plugin.Registry
	Installer Installer
	Devices   *auth.Authority
	Control   control.Log
	Servers   Servers
	Files     Files
	Registry  *tool.Registry
	Dispatch  *tool.Dispatcher
	Artifacts *tool.Store
	Approvals *approval.Runtime
	Folders   *folder.Store
	Plane     *rpc.Plane
	Secrets   Secrets
	Live      *Live
	Traffic   *Traffic
	// Logs returns what a server has said, nil if there is no such server; Mask hides
	// the secrets in it.
	Logs func(server string) *linelog.Ring
	Mask func(string) string
	// CheckSetting refuses values that the kernel does not know to be wrong; nil refuses
	// none.
	CheckSetting func(key string, v json.RawMessage) error
	// Setup says how to begin with this yaya.
	Setup func() Setup
	// Doctor asks every part how it is, and waits for each at most that long.
	Doctor func(context.Context, time.Duration) []plugin.Diagnosis
	// Sandbox says what sandboxes enforce.
	Sandbox func() Sandbox
	// Fingerprint is that of the listener's key, by which devices know it; "" or nil when
	// an authority speaks for its certificate.
	Fingerprint func() string
	Version     string
	Log         zerolog.Logger
}

// API is the handler.
type API struct {
	cfg     Config
	mux     func() *http.ServeMux // made when it is used first: it takes a while
	changes changes

	streams atomic.Int64
	closed  chan struct{} // streams end with it
	closing func()
}

// Error is the body of every answer that is none (Y-201).
type Error struct {
	status int
	Detail string `json:"detail"`
}

func (e *Error) Error() string { return e.Detail }

// GetStatus implements [huma.StatusError].
func (e *Error) GetStatus() int { return e.status }

func fail(status int, format string, args ...any) error {
	return &Error{status, fmt.Sprintf(format, args...)}
}

// New returns the API.
func New(cfg Config) *API {
	a := &API{cfg: cfg, closed: make(chan struct{})}
	a.closing = sync.OnceFunc(func() { close(a.closed) })
	a.mux = sync.OnceValue(a.routes)
	return a
}

// routes makes the operations, and the document of them.
func (a *API) routes() *http.ServeMux {
	mux := http.NewServeMux()
	api := openapi.New(mux, huma.Info{
		Title: "yaya administration", Version: a.cfg.Version,
		Description: "Configuration, plugins, providers, MCP servers, tools, approvals, devices and the audit. On the same machine the user that runs yaya needs no credentials; elsewhere a device token is sent as a bearer token.",
	}, func(_ huma.Context, f *openapi.Failure) any { return &Error{f.Status, f.Message} })
	a.settingsRoutes(api)
	a.pluginRoutes(api)
	a.sandboxRoutes(api)
	a.providerRoutes(api)
	a.serverRoutes(api)
	a.changeRoutes(api)
	a.toolRoutes(api)
	a.approvalRoutes(api)
	a.folderRoutes(api)
	a.deviceRoutes(api)
	a.tokenRoutes(api)
	a.secretRoutes(api)
	a.fileRoutes(api)
	a.registryRoutes(api)
	a.trafficRoutes(api)
	openapi.Errors[Error](api.OpenAPI())
	openapi.Serve(mux, "/api", api.OpenAPI(), func(w http.ResponseWriter, _ *http.Request, err error) {
		if e, ok := errors.AsType[*Error](a.answer(err)); ok {
			refuse(w, e)
		}
	})
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		if allowed := openapi.Methods(mux, r, "/api/"); allowed != "" {
			w.Header().Set("Allow", allowed)
			refuse(w, &Error{http.StatusMethodNotAllowed, "this resource knows " + allowed})
			return
		}
		refuse(w, &Error{http.StatusNotFound, "there is no such resource"})
	})
	return mux
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if err := openapi.Strict(w, r); err != nil {
		refuse(w, &Error{err.Status, err.Detail})
		return
	}
	a.mux().ServeHTTP(w, r)
}

func refuse(w http.ResponseWriter, e *Error) {
	raw, err := json.Marshal(e)
	if err != nil { // cannot be
		raw = []byte(`{"detail":"internal error"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.status)
	_, _ = w.Write(append(raw, '\n')) // a client that went away gets nothing
}

// routes registers operations that need a part of yaya.
type routes struct {
	a    *API
	api  huma.API
	tag  string
	have bool
	what string // the part
}

// handle registers an operation: its errors become ones that its caller may read.
func handle[I, O any](r routes, method, path, id string, scope auth.Scope, summary string, status int, f func(context.Context, *I) (*O, error)) {
	huma.Register(r.api, openapi.Operation(r.tag, method, path, id, string(scope), summary, status), func(ctx context.Context, in *I) (*O, error) {
		if !r.have {
			return nil, fail(http.StatusServiceUnavailable, "this yaya has no %s", r.what)
		}
		out, err := f(ctx, in)
		if err != nil {
			return nil, r.a.answer(err)
		}
		return out, nil
	})
}

// errorStatus are errors of others with what is answered.
var errorStatus = []struct {
	err    error
	status int
}{
	{control.ErrUnavailable, http.StatusServiceUnavailable},
	{auth.ErrForbidden, http.StatusForbidden},
	{auth.ErrBadRequest, http.StatusBadRequest},
	{auth.ErrNotFound, http.StatusNotFound},
	{auth.ErrConflict, http.StatusConflict},
	{auth.ErrExists, http.StatusConflict},
	{auth.ErrBusy, http.StatusTooManyRequests},
	{ErrUnknown, http.StatusNotFound},
	{ErrRefused, http.StatusBadRequest},
	{ErrStale, http.StatusConflict},
	{ErrFailed, http.StatusInternalServerError},
}

// What the parts of yaya that the API works with say of a request; the errors'
// texts are for its caller.
var (
	ErrUnknown = errors.New("there is no such thing")
	ErrRefused = errors.New("that cannot be done")
	ErrStale   = errors.New("it has changed since it was shown")
	ErrFailed  = errors.New("it failed") // on this machine, whatever was asked for
)

func (a *API) answer(err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	for _, known := range errorStatus {
		if errors.Is(err, known.err) {
			if known.status == http.StatusInternalServerError {
				a.cfg.Log.Error().Err(err).Msg("a request failed")
			}
			return fail(known.status, "%v", err)
		}
	}
	id := "req_" + rand.Text()
	a.cfg.Log.Error().Err(err).Str("request_id", id).Msg("a request failed")
	return fail(http.StatusInternalServerError, "internal error, request id %s; yaya's log has the details", id)
}

// none is the input or output of an operation that has none.
type none struct{}

// audited puts into the audit what a caller is about to change; what cannot be
// recorded does not happen (W-44, R30).
func (a *API) audited(ctx context.Context, event, target string, payload any) error {
	if a.cfg.Control == nil {
		return nil
	}
	_, err := a.cfg.Control.Append(ctx, control.Change{Event: event, Actor: auth.FromContext(ctx).Actor(), Target: target, Payload: payload}, nil)
	return err
}

// recorded does what is audited before. If it fails, the audit says that as well: the
// first entry alone would tell of a change that never was.
func (a *API) recorded(ctx context.Context, event, target string, payload any, do func() error) error {
	if err := a.audited(ctx, event, target, payload); err != nil {
		return err
	}
	err := do()
	if err == nil {
		return nil
	}
	// Whoever asked may be gone; what was done is said all the same.
	said := a.audited(context.WithoutCancel(ctx), event+"_failed", target, map[string]string{"error": err.Error()})
	if said != nil {
		a.cfg.Log.Error().Err(said).Str("event", event).Str("target", target).Msg("the audit does not say that this failed")
	}
	return err
}

// mayShow reports whether a caller may see secrets, which is audited (Y-209).
func (a *API) mayShow(ctx context.Context, what string) error {
	if auth.Allow(auth.FromContext(ctx), auth.ConfigWrite) != nil {
		return fail(http.StatusForbidden, "who may not change secrets may not see them: it needs the scope %s", auth.ConfigWrite)
	}
	return a.audited(ctx, "secrets_shown", what, nil)
}
