package admin

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// Provider is a provider instance as the API shows it.
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
	for k, v := range p.Config {
		p.Config[k] = config.Mask(k, v)
		if !show {
			continue
		}
		var err error
		if p.Config[k], err = a.cfg.Settings.Shown("providers."+i.ID+"."+k, v); err != nil {
			a.cfg.Log.Warn().Err(err).Str("provider", i.ID).Str("field", k).Msg("a secret cannot be shown")
			p.Config[k] = v
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
		return config.Instance{}, api.Fail(http.StatusNotFound, "there is no provider %q", id)
	}
	return *i, nil
}

type (
	InProvider struct {
		ID string `path:"id" maxLength:"128"`
	}
	outProvider struct{ Body Provider }
)

func (a *API) providerRoutes() {
	r := routes{a, "llm-providers", a.cfg.Settings != nil && a.cfg.Plugins != nil && a.cfg.Bus != nil, "providers"}
	noted(r, "`show=1` needs `config:write`, too", "GET", "/api/llm-providers", "listProviders", api.For(auth.ConfigRead), "List provider instances, with secrets masked", http.StatusOK, func(ctx context.Context, in *struct {
		Show bool `query:"show" doc:"1 shows secrets; it needs config:write, and is audited"`
	},
	) (*struct{ Body []Provider }, error) {
		if in.Show {
			if err := a.mayShow(ctx, "llm-providers"); err != nil {
				return nil, err
			}
		}
		rows := []Provider{}
		for _, i := range a.cfg.Settings.Providers().ListInstances() {
			rows = append(rows, a.row(i, in.Show))
		}
		return &struct{ Body []Provider }{rows}, nil
	})
	handle(r, "POST", "/api/llm-providers", "createProvider", api.For(auth.ConfigWrite), "Create a provider instance", http.StatusCreated, func(ctx context.Context, in *struct{ Body newProvider }) (*outProvider, error) {
		return a.createProvider(ctx, in.Body)
	})
	handle(r, "PATCH", "/api/llm-providers/active", "activateProvider", api.For(auth.ConfigWrite), "Choose the active provider", http.StatusOK, func(ctx context.Context, in *struct {
		Body struct {
			Name string `json:"name" maxLength:"128"`
		}
	},
	) (*outProvider, error) {
		return a.activateProvider(ctx, in.Body.Name)
	})
	handle(r, "PATCH", "/api/llm-providers/{id}", "updateProvider", api.For(auth.ConfigWrite), "Change fields of a provider; other fields stay", http.StatusOK, func(ctx context.Context, in *struct {
		InProvider
		Body providerPatch
	},
	) (*outProvider, error) {
		return a.updateProvider(ctx, in.ID, in.Body)
	})
	handle(r, "DELETE", "/api/llm-providers/{id}", "deleteProvider", api.For(auth.ConfigWrite), "Delete a provider", http.StatusNoContent, func(ctx context.Context, in *InProvider) (*none, error) {
		return nil, a.deleteProvider(ctx, in.ID)
	})
	handle(r, "POST", "/api/llm-providers/{id}/test", "testProvider", api.For(auth.ConfigWrite), "Send a test prompt to a provider", http.StatusOK, func(ctx context.Context, in *struct {
		InProvider
		TimeoutMS int64 `query:"timeout_ms" minimum:"1" maximum:"600000" default:"5000" doc:"how long to wait for it"`
		Measure   bool  `query:"measure" doc:"measures its speed, and asks it to call a tool as well"`
	},
	) (*struct{ Body Tested }, error) {
		got, err := a.testProvider(ctx, in.ID, time.Duration(in.TimeoutMS)*time.Millisecond, in.Measure)
		return &struct{ Body Tested }{got}, err
	})
	handle(r, "GET", "/api/local-models", "localModels", api.For(auth.ConfigWrite), "Look for services of models on this machine, at their usual ports", http.StatusOK, func(ctx context.Context, _ *none) (*struct{ Body []LocalModels }, error) {
		return &struct{ Body []LocalModels }{lookForModels(ctx, a.cfg.LocalModels)}, nil
	})
}

// fields are the members of config in a body.
type fields map[string]json.RawMessage

// at returns the settings that the fields of a provider are, with its plugin if there
// is one.
func (f fields) at(id string, plugin json.RawMessage) map[string]json.RawMessage {
	out := make(map[string]json.RawMessage, len(f)+1)
	for k, v := range f {
		out["providers."+id+"."+k] = v
	}
	if plugin != nil {
		out["providers."+id+".plugin"] = plugin
	}
	return out
}

// setFields writes a provider's fields one after the other.
func (a *API) setFields(id string, label *string, f fields) error {
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

// providerChange is the audit's record of a change: which fields, never their
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
func (a *API) checkFields(id string, f fields) error {
	for k, v := range f {
		if k == "plugin" || k == "label" {
			return api.Fail(http.StatusBadRequest, "config cannot have the field %q: it stands beside config", k)
		}
		err := config.CheckValue("providers."+id+"."+k, v)
		if err == nil && a.cfg.CheckSetting != nil {
			err = a.cfg.CheckSetting("providers."+id+"."+k, v)
		}
		if err != nil {
			return api.Fail(http.StatusBadRequest, "%v", err)
		}
	}
	return nil
}

type newProvider struct {
	ID     *string `json:"id,omitempty" doc:"<plugin>-<8 hex digits> if there is none"`
	Plugin string  `json:"plugin"`
	Label  *string `json:"label,omitempty" maxLength:"256"`
	Config fields  `json:"config,omitempty"`
}

func (a *API) createProvider(ctx context.Context, body newProvider) (*outProvider, error) {
	if _, ok := a.plugin(body.Plugin); !ok {
		return nil, api.Fail(http.StatusBadRequest, "%q is not a loaded provider plugin", body.Plugin)
	}
	id := body.Plugin + "-" + uuid.NewString()[:8]
	if body.ID != nil {
		id = *body.ID
	}
	if !config.ValidInstanceID(id) {
		return nil, api.Fail(http.StatusBadRequest, "%q cannot be an id: 3 to 64 lower-case letters, digits and dashes, no dash at either end", id)
	}
	if a.cfg.Settings.Providers().GetInstance(id) != nil {
		return nil, api.Fail(http.StatusConflict, "there is a provider %q already: to change it, yaya config set providers.%s.FIELD VALUE (a key: yaya config set providers.%s.api_key -), or the page", id, id, id)
	}
	if err := a.checkFields(id, body.Config); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(body.Plugin)
	if err != nil {
		return nil, err
	}
	if body.Label == nil {
		body.Label = &id
	}
	if err := a.keepsSecrets(body.Config.at(id, raw)); err != nil {
		return nil, err
	}
	if err := a.audited(ctx, "provider_created", id, providerChange{Plugin: body.Plugin, Fields: names(body.Config, body.Label)}); err != nil {
		return nil, err
	}
	err = a.cfg.Settings.Set("providers."+id+".plugin", raw)
	if err == nil {
		err = a.setFields(id, body.Label, body.Config)
	}
	if err != nil {
		return nil, a.partial(id, err)
	}
	i, err := a.instance(id)
	if err != nil {
		return nil, err
	}
	return &outProvider{a.row(i, false)}, nil
}

// partial tells the operator how to clear away what a failed write has left.
func (a *API) partial(id string, err error) error {
	a.cfg.Log.Error().Err(err).Str("provider", id).Msg("a provider was written in part")
	return api.Fail(http.StatusInternalServerError, "the provider was written in part: %v; clear it away with: yaya config unset 'providers.%s.*'", err, id)
}

type providerPatch struct {
	Plugin json.RawMessage `json:"plugin,omitempty" doc:"refused: the plugin of a provider cannot be changed"`
	Label  *string         `json:"label,omitempty" maxLength:"256"`
	Config fields          `json:"config,omitempty"`
}

func (a *API) updateProvider(ctx context.Context, id string, body providerPatch) (*outProvider, error) {
	if _, err := a.instance(id); err != nil {
		return nil, err
	}
	if len(body.Plugin) > 0 {
		return nil, api.Fail(http.StatusBadRequest, "the plugin of a provider cannot be changed: delete the provider and create another")
	}
	if err := a.checkFields(id, body.Config); err != nil {
		return nil, err
	}
	if err := a.keepsSecrets(body.Config.at(id, nil)); err != nil {
		return nil, err
	}
	// The audit names the fields that change.
	at := "providers." + id + "."
	maps.DeleteFunc(body.Config, func(k string, v json.RawMessage) bool { return a.cfg.Settings.Same(at+k, v) })
	if body.Label != nil {
		raw, err := json.Marshal(*body.Label)
		if err != nil {
			return nil, err
		}
		if a.cfg.Settings.Same(at+"label", raw) {
			body.Label = nil
		}
	}
	if changed := names(body.Config, body.Label); len(changed) > 0 {
		if err := a.audited(ctx, "provider_changed", id, providerChange{Fields: changed}); err != nil {
			return nil, err
		}
	}
	if err := a.setFields(id, body.Label, body.Config); err != nil {
		return nil, a.partial(id, err)
	}
	i, err := a.instance(id)
	if err != nil {
		return nil, err
	}
	return &outProvider{a.row(i, false)}, nil
}

func (a *API) deleteProvider(ctx context.Context, id string) error {
	view := a.cfg.Settings.Providers()
	i, err := a.instance(id)
	if err != nil {
		return err
	}
	switch {
	case i.ID == view.ActiveID():
		return api.Fail(http.StatusConflict, "%s is the active provider: make another active first", i.ID)
	case len(view.InstancesForPlugin(i.Plugin)) == 1:
		return api.Fail(http.StatusConflict, "%s is the last provider of the plugin %s", i.ID, i.Plugin)
	}
	if err := a.audited(ctx, "provider_deleted", i.ID, providerChange{Plugin: i.Plugin}); err != nil {
		return err
	}
	if _, err := a.cfg.Settings.Unset("providers." + i.ID + ".*"); err != nil {
		return a.partial(i.ID, err)
	}
	if view.GetInstance(i.ID) != nil {
		return api.Fail(http.StatusConflict, "%s stands in the configuration file or in the environment", i.ID)
	}
	return nil
}

func (a *API) activateProvider(ctx context.Context, id string) (*outProvider, error) {
	i, err := a.instance(id)
	if err != nil {
		return nil, err
	}
	if _, ok := a.plugin(i.Plugin); !ok {
		return nil, api.Fail(http.StatusBadRequest, "%s needs the plugin %s, which is not loaded", i.ID, i.Plugin)
	}
	raw, err := json.Marshal(i.ID)
	if err != nil {
		return nil, err
	}
	if err := a.set(ctx, "provider_activated", i.ID, nil, map[string]json.RawMessage{config.ActiveKey: raw}); err != nil {
		return nil, err
	}
	return &outProvider{a.row(i, false)}, nil
}
