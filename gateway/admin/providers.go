package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// testTimeout bounds the test of a provider (Y-97).
const testTimeout = 5 * time.Second

// Provider is a provider instance as the API shows it (Y-90).
type Provider struct {
	ID           string                     `json:"id"`
	Plugin       string                     `json:"plugin"`
	Label        string                     `json:"label"`
	Active       bool                       `json:"active"`
	Config       map[string]json.RawMessage `json:"config"`
	ConfigSchema json.RawMessage            `json:"config_schema"`
}

// row renders an instance, secrets masked unless show is set.
func (a *API) row(i config.Instance, show bool) Provider {
	p := Provider{ID: i.ID, Plugin: i.Plugin, Label: i.Label, Active: i.ID == a.cfg.Settings.Providers().ActiveID(), Config: i.Config, ConfigSchema: json.RawMessage("null")}
	if !show {
		for k, v := range p.Config {
			p.Config[k] = config.Mask(k, v)
		}
	}
	if s, ok := a.plugin(i.Plugin); ok {
		p.ConfigSchema = s.ConfigSchema
	}
	return p
}

// plugin returns a loaded provider plugin.
func (a *API) plugin(name string) (plugin.Status, bool) {
	all := a.cfg.Plugins.Snapshot()
	i := slices.IndexFunc(all, func(s plugin.Status) bool {
		return s.Name == name && s.Category == plugin.LLMProvider && s.Status == plugin.Loaded
	})
	if i < 0 {
		return plugin.Status{}, false
	}
	return all[i], true
}

func (a *API) instance(id string) (config.Instance, error) {
	i := a.cfg.Settings.Providers().GetInstance(id)
	if i == nil {
		return config.Instance{}, fail(http.StatusNotFound, "there is no provider %q", id)
	}
	return *i, nil
}

func (a *API) listProviders(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	rows := []Provider{}
	show := r.URL.Query().Get("show") == "1"
	if show && auth.Allow(auth.FromContext(r.Context()), auth.ConfigWrite) != nil {
		return 0, nil, fail(http.StatusForbidden, "who may not change secrets may not see them: it needs the scope %s", auth.ConfigWrite)
	}
	if show {
		if err := a.audited(r, "secrets_shown", "llm-providers", nil); err != nil {
			return 0, nil, err
		}
	}
	for _, i := range a.cfg.Settings.Providers().ListInstances() {
		rows = append(rows, a.row(i, show))
	}
	return http.StatusOK, rows, nil
}

// fields are the members of config in a body.
type fields map[string]json.RawMessage

// set writes a provider's fields one after the other (Y-99).
func (a *API) set(id string, label *string, f fields) error {
	at := "providers." + id + "."
	if label != nil {
		raw, err := json.Marshal(*label)
		if err != nil {
			return err
		}
		if err := a.cfg.Settings.Set(at+"label", raw); err != nil {
			return err
		}
	}
	for _, k := range slices.Sorted(maps.Keys(f)) {
		if err := a.cfg.Settings.Set(at+k, f[k]); err != nil {
			return err
		}
	}
	return nil
}

// providerChange is what the audit says of a change: which fields, never their
// values.
type providerChange struct {
	Plugin string   `json:"plugin,omitempty"`
	Fields []string `json:"fields,omitempty"`
}

func names(f fields, label *string) []string {
	out := slices.Sorted(maps.Keys(f))
	if label != nil {
		out = append(out, "label")
	}
	return out
}

// checkFields refuses what cannot be written before anything is.
func checkFields(id string, f fields) error {
	for k, v := range f {
		if k == "plugin" || k == "label" {
			return fail(http.StatusBadRequest, "config cannot have the field %q: it stands beside config", k)
		}
		if err := config.CheckValue("providers."+id+"."+k, v); err != nil {
			return fail(http.StatusBadRequest, "%v", err)
		}
	}
	return nil
}

func (a *API) createProvider(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var body struct {
		ID     *string `json:"id"`
		Plugin string  `json:"plugin"`
		Label  *string `json:"label"`
		Config fields  `json:"config"`
	}
	if err := decode(w, r, &body); err != nil {
		return 0, nil, err
	}
	if _, ok := a.plugin(body.Plugin); !ok {
		return 0, nil, fail(http.StatusBadRequest, "%q is no loaded plugin for providers", body.Plugin)
	}
	id := body.Plugin + "-" + uuid.NewString()[:8] // Y-92
	if body.ID != nil {
		id = *body.ID
	}
	if !config.ValidInstanceID(id) {
		return 0, nil, fail(http.StatusBadRequest, "%q cannot be an id: 3 to 64 lower-case letters, digits and dashes, no dash at either end", id)
	}
	if a.cfg.Settings.Providers().GetInstance(id) != nil {
		return 0, nil, fail(http.StatusConflict, "there is a provider %q already", id)
	}
	if err := checkFields(id, body.Config); err != nil {
		return 0, nil, err
	}
	raw, err := json.Marshal(body.Plugin)
	if err != nil {
		return 0, nil, err
	}
	if body.Label == nil {
		body.Label = &id
	}
	if err := a.audited(r, "provider_created", id, providerChange{Plugin: body.Plugin, Fields: names(body.Config, body.Label)}); err != nil {
		return 0, nil, err
	}
	err = a.cfg.Settings.Set("providers."+id+".plugin", raw)
	if err == nil {
		err = a.set(id, body.Label, body.Config)
	}
	if err != nil {
		return 0, nil, a.partial(id, err)
	}
	i, err := a.instance(id)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusCreated, a.row(i, false), nil
}

// partial tells the operator how to clear away what a failed write has left
// (Y-99).
func (a *API) partial(id string, err error) error {
	a.cfg.Log.Error().Err(err).Str("provider", id).Msg("a provider was written in part")
	return fail(http.StatusInternalServerError, "the provider was written in part: %v; clear it away with: yaya config unset 'providers.%s.*'", err, id)
}

func (a *API) updateProvider(w http.ResponseWriter, r *http.Request) (int, any, error) {
	id := r.PathValue("id")
	if _, err := a.instance(id); err != nil {
		return 0, nil, err
	}
	var body struct {
		Plugin *json.RawMessage `json:"plugin"`
		Label  *string          `json:"label"`
		Config fields           `json:"config"`
	}
	if err := decode(w, r, &body); err != nil {
		return 0, nil, err
	}
	if body.Plugin != nil {
		return 0, nil, fail(http.StatusBadRequest, "the plugin of a provider cannot be changed: delete the provider and create another")
	}
	if err := checkFields(id, body.Config); err != nil {
		return 0, nil, err
	}
	if err := a.audited(r, "provider_changed", id, providerChange{Fields: names(body.Config, body.Label)}); err != nil {
		return 0, nil, err
	}
	if err := a.set(id, body.Label, body.Config); err != nil {
		return 0, nil, a.partial(id, err)
	}
	i, err := a.instance(id)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, a.row(i, false), nil
}

func (a *API) deleteProvider(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	view := a.cfg.Settings.Providers()
	i, err := a.instance(r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	switch {
	case i.ID == view.ActiveID():
		return 0, nil, fail(http.StatusConflict, "%s is the active provider: make another active first", i.ID)
	case len(view.InstancesForPlugin(i.Plugin)) == 1:
		return 0, nil, fail(http.StatusConflict, "%s is the last provider of the plugin %s", i.ID, i.Plugin)
	}
	if err := a.audited(r, "provider_deleted", i.ID, providerChange{Plugin: i.Plugin}); err != nil {
		return 0, nil, err
	}
	if _, err := a.cfg.Settings.Unset("providers." + i.ID + ".*"); err != nil {
		return 0, nil, a.partial(i.ID, err)
	}
	if view.GetInstance(i.ID) != nil {
		return 0, nil, fail(http.StatusConflict, "%s stands in the configuration file or in the environment", i.ID)
	}
	return http.StatusNoContent, nil, nil
}

func (a *API) activateProvider(w http.ResponseWriter, r *http.Request) (int, any, error) {
	var body struct {
		Name string `json:"name"`
	}
	if err := decode(w, r, &body); err != nil {
		return 0, nil, err
	}
	i, err := a.instance(body.Name)
	if err != nil {
		return 0, nil, err
	}
	if _, ok := a.plugin(i.Plugin); !ok {
		return 0, nil, fail(http.StatusBadRequest, "%s needs the plugin %s, which is not loaded", i.ID, i.Plugin)
	}
	raw, err := json.Marshal(i.ID)
	if err != nil {
		return 0, nil, err
	}
	if err := a.audited(r, "provider_activated", i.ID, nil); err != nil {
		return 0, nil, err
	}
	if err := a.cfg.Settings.Set(config.ActiveKey, raw); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, a.row(i, false), nil
}

// testResult is what came of a test (Y-97).
type testResult struct {
	OK        bool   `json:"ok"`
	LatencyMS int64  `json:"latency_ms"`
	Error     string `json:"error,omitempty"`
}

// testProvider asks a provider for a word, on a session of its own (Y-98).
func (a *API) testProvider(_ http.ResponseWriter, r *http.Request) (int, any, error) {
	i, err := a.instance(r.PathValue("id"))
	if err != nil {
		return 0, nil, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), testTimeout)
	defer cancel()
	session := event.BridgePrefix + "web-api-test:" + uuid.NewString()
	start := time.Now()
	ev, err := bus.Request(ctx, a.cfg.Bus.Kernel(), event.LLMCallRequest, session, event.LLMRequest{
		Provider: i.ID, Model: i.Text("model"), Messages: []event.Message{{Role: "user", Content: "ping"}}, Params: json.RawMessage("{}"),
	}, event.LLMCallResponse.Kind(), event.LLMCallError.Kind())
	res := testResult{OK: err == nil, LatencyMS: time.Since(start).Milliseconds()}
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		res.Error = "timeout"
		// Whoever still works on it may stop.
		if _, err := bus.Publish(a.cfg.Bus.Kernel(), event.UserInterrupt, session, event.Empty{}); err != nil {
			return 0, nil, err
		}
	case err != nil:
		res.Error = err.Error()
	default:
		if e, failed := ev.Payload.(event.LLMError); failed {
			res.OK, res.Error = false, fmt.Sprintf("%s: %s", e.EffectiveKind(), e.Error)
		}
	}
	return http.StatusOK, res, nil
}
