// Package admin is the control plane over HTTP: JSON in, JSON out, below /api/.
//
// Errors are {"detail": "…"} (Y-201). Bodies are bounded and strict. Who may
// reach a resource is decided by the routes of gateway; what a caller may do with
// devices, and whether it may see secrets (?show=1), is asked of package auth.
package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"net/http"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/httpbody"
	"github.com/yaya-ai/yaya/internal/control"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// maxBody bounds a request's body, in bytes.
const maxBody = 1 << 20

// Config assembles the API. All fields are required, but those that say
// otherwise.
type Config struct {
	Bus      *bus.Bus
	Settings *config.Store
	Plugins  *plugin.Registry
	Devices  *auth.Authority // nil for none
	Control  control.Log     // nil for none
	Log      zerolog.Logger
}

// API is the handler.
type API struct {
	cfg Config
	mux *http.ServeMux
}

// New returns the API.
func New(cfg Config) *API {
	a := &API{cfg: cfg, mux: http.NewServeMux()}
	resources := map[string]handler{
		"GET /api/llm-providers":            a.listProviders,
		"POST /api/llm-providers":           a.createProvider,
		"PATCH /api/llm-providers/active":   a.activateProvider,
		"PATCH /api/llm-providers/{id}":     a.updateProvider,
		"DELETE /api/llm-providers/{id}":    a.deleteProvider,
		"POST /api/llm-providers/{id}/test": a.testProvider,
	}
	if cfg.Devices != nil {
		maps.Copy(resources, map[string]handler{
			"GET /api/devices":              a.listDevices,
			"POST /api/devices/invite":      a.inviteDevice,
			"POST /api/devices/approve":     a.approveDevice,
			"POST /api/devices/reject":      a.rejectDevice,
			"POST /api/devices/rotate-keys": a.rotateKeys,
			"POST /api/devices/{id}/revoke": a.revokeDevice,
			"PUT /api/devices/{id}/scopes":  a.setScopes,
		})
	}
	if cfg.Control != nil {
		resources["GET /api/audit"] = a.audit
	}
	for pattern, h := range resources {
		a.mux.Handle(pattern, a.serve(h))
	}
	a.mux.Handle("/api/", a.serve(func(http.ResponseWriter, *http.Request) (int, any, error) {
		return 0, nil, fail(http.StatusNotFound, "there is no such resource")
	}))
	return a
}

func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// handler returns a status with a value to encode, or an error to map; only
// serve writes.
type handler func(w http.ResponseWriter, r *http.Request) (status int, body any, err error)

// problem is an error that its caller gets to read.
type problem struct {
	status int
	detail string
}

func (p *problem) Error() string { return p.detail }

func fail(status int, format string, args ...any) error {
	return &problem{status, fmt.Sprintf(format, args...)}
}

func (a *API) serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body, err := h(w, r)
		if err != nil {
			p, ok := errors.AsType[*problem](err)
			if !ok {
				a.cfg.Log.Error().Err(err).Str("path", r.URL.Path).Msg("a request failed")
				p = &problem{http.StatusInternalServerError, "internal error; yaya's log has the details"}
			}
			status, body = p.status, map[string]string{"detail": p.detail}
		}
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if body == nil {
			w.WriteHeader(status)
			return
		}
		raw, err := json.Marshal(body)
		if err != nil {
			a.cfg.Log.Error().Err(err).Str("path", r.URL.Path).Msg("an answer could not be written")
			status, raw = http.StatusInternalServerError, []byte(`{"detail":"internal error"}`)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(append(raw, '\n')) // a client that went away gets nothing
	})
}

// audited puts into the audit what a caller is about to change; what cannot be
// recorded does not happen (W-44, R30).
func (a *API) audited(r *http.Request, event, target string, payload any) error {
	if a.cfg.Control == nil {
		return nil
	}
	_, err := a.cfg.Control.Append(r.Context(), control.Change{Event: event, Actor: auth.FromContext(r.Context()).Actor(), Target: target, Payload: payload}, nil)
	return deviceError(err)
}

// decode reads a JSON body; what v does not know is an error.
func decode(w http.ResponseWriter, r *http.Request, v any) error {
	if err := httpbody.Decode(w, r, maxBody, v); err != nil {
		return &problem{err.Status, err.Detail}
	}
	return nil
}
