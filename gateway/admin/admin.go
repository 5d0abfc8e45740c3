// Package admin is the administration of yaya over HTTP: JSON in, JSON out, below /api/.
//
// The handlers say what they take and give, and the OpenAPI document
// (/api/openapi.json) is made from that. Errors are {"detail": "…"}. Bodies
// are bounded and strict. A resource that this yaya does not have answers 503. Each
// operation declares who may reach it, and the listener enforces that; package auth
// decides what a caller may do with devices, and whether it may see secrets (?show=1).
// A change is recorded in the audit before it happens.
//
// [Live] tells clients on the topics dashboard:main and dashboard:metrics that
// something has changed, so that nobody has to poll. Its goroutines end with
// [Live.Close]. Everything is safe for concurrent use.
package admin

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/nodes"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/plane"
	"github.com/yaya-ai/yaya/internal/linelog"
	"github.com/yaya-ai/yaya/internal/toolsearch"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Config assembles the API. The resources of a nil field answer 503.
type Config struct {
	Bus       *bus.Bus
	Settings  *config.Store
	Plugins   *plugin.Registry
	Installer Installer
	Devices   *auth.Authority
	Control   control.Log
	Servers   Servers
	Catalog   Catalog
	Models    Models
	Files     Files
	Registry  *tool.Registry
	Dispatch  *tool.Dispatcher
	Artifacts *tool.Store
	Approvals *approval.Runtime
	Folders   *folder.Store
	Plane     *plane.Plane
	Nodes     *nodes.Nodes // of the cluster
	Others    api.Nodes    // of them than this one
	Secrets   Secrets
	Clients   Clients
	// LocalModels are the services of models that may run on this machine, by name: the base
	// URL of each, on the loopback.
	LocalModels map[string]string
	Live        *Live
	Reads       *Reads // a projection of Control
	Traffic     *Traffic
	// Logs returns what a server has said, nil if it is unknown; Mask hides the
	// secrets in it.
	Logs func(server string) *linelog.Ring
	Mask func(string) string
	// CheckSetting refuses values that the kernel does not know to be wrong; nil refuses
	// none.
	CheckSetting func(key string, v json.RawMessage) error
	// Setup says how to begin with this yaya.
	Setup func() Setup
	// Doctor asks every part how it is, and waits for each at most that long. It looks at the files of a
	// folder, too, unless that is "".
	Doctor func(ctx context.Context, timeout time.Duration, folder string) []plugin.Diagnosis
	// Hooks and Skills list those of the user and of yaya's own folder.
	Hooks  func() Hooks
	Skills func() Skills
	// Title returns the title of a session, "" if none is known.
	Title func(session string) string
	// Sandbox says what sandboxes enforce.
	Sandbox func() Sandbox
	// Embeddings rank tools by meaning, too; nil for words alone.
	Embeddings *toolsearch.Embeddings
	// Fingerprint is that of the listener's key, by which devices know it; "" or nil when
	// an authority speaks for its certificate.
	Fingerprint func() string
	Version     string
	Log         zerolog.Logger
}

// API is the administration, an [http.Handler] for everything below /api/.
type API struct {
	*api.API
	cfg     Config
	changes changes
	found   toolIndex
	clients clientChanges

	streams atomic.Int64
	closed  chan struct{} // streams end with it
	closing func()
}

// New returns the API.
func New(cfg Config) *API {
	a := &API{cfg: cfg, closed: make(chan struct{})}
	a.closing = sync.OnceFunc(func() { close(a.closed) })
	a.API = api.New(api.Config{
		Base: "/api", Style: api.Detail, Docs: api.For(auth.ConfigRead), Rest: api.For(auth.SessionsRead), Log: cfg.Log,
		Info: huma.Info{
			Title: "yaya administration", Version: cfg.Version,
			Description: "Configuration, plugins, providers, MCP servers, tools, approvals, devices and the audit. On the same machine the user that runs yaya needs no credentials; elsewhere a device token is sent as a bearer token.",
		},
	})
	for _, declare := range []func(){
		a.settingsRoutes, a.pluginRoutes, a.extraRoutes, a.sandboxRoutes, a.providerRoutes, a.modelRoutes, a.serverRoutes, a.catalogRoutes, a.changeRoutes, a.toolRoutes, a.approvalRoutes,
		a.folderRoutes, a.deviceRoutes, a.tokenRoutes, a.secretRoutes, a.clientRoutes, a.fileRoutes, a.clusterRoutes, a.trafficRoutes, a.notificationRoutes,
	} {
		declare()
	}
	return a
}

// routes declares operations that need a part of yaya.
type routes struct {
	a    *API
	tag  string
	have bool
	what string // the part
}

// handle declares an operation.
func handle[I, O any](r routes, method, path, id string, access api.Access, summary string, status int, f func(context.Context, *I) (*O, error)) {
	noted(r, "", method, path, id, access, summary, status, f)
}

// noted declares an operation with a note for the table of routes: what else it asks of whom.
func noted[I, O any](r routes, note, method, path, id string, access api.Access, summary string, status int, f func(context.Context, *I) (*O, error)) {
	o := api.Operation{Method: method, Path: path, ID: id, Tag: r.tag, Summary: summary, Access: access, Note: note, Status: status}
	api.Handle(r.a.API, o, func(ctx context.Context, in *I) (*O, error) {
		if !r.have {
			return nil, api.Fail(http.StatusServiceUnavailable, "this yaya has no %s", r.what)
		}
		return f(ctx, in)
	})
}

// Errors that the parts of yaya behind the API return for a request.
var (
	ErrUnknown = api.ErrUnknown
	ErrRefused = api.ErrRefused
	ErrStale   = api.ErrStale
	ErrFailed  = api.ErrFailed
)

// none is the input or output of an operation that has none.
type none struct{}

// audited puts into the audit what a caller is about to change; what cannot be
// recorded does not happen.
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
	return a.recordedIf(ctx, event, target, payload, func(record func() error) error {
		if err := record(); err != nil {
			return err
		}
		return do()
	})
}

// recordedIf does what calls record before it changes something, and does not if it finds
// that nothing would change. See recorded.
func (a *API) recordedIf(ctx context.Context, event, target string, payload any, do func(record func() error) error) error {
	begun := false
	err := do(func() error {
		err := a.audited(ctx, event, target, payload)
		begun = err == nil
		return err
	})
	if err == nil || !begun {
		return err
	}
	// The caller may be gone; the audit records the failure all the same.
	unaudited := a.audited(context.WithoutCancel(ctx), event+"_failed", target, map[string]string{"error": err.Error()})
	if unaudited != nil {
		a.cfg.Log.Error().Err(unaudited).Str("event", event).Str("target", target).Msg("the audit does not say that this failed")
	}
	return err
}

// mayShow reports whether a caller may see secrets, which is audited.
func (a *API) mayShow(ctx context.Context, what string) error {
	if auth.Allow(auth.FromContext(ctx), auth.ConfigWrite) != nil {
		return api.Fail(http.StatusForbidden, "who may not change secrets may not see them: it needs the scope %s", auth.ConfigWrite)
	}
	return a.audited(ctx, "secrets_shown", what, nil)
}
