package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// Installer installs plugins. An error that wraps [ErrRefused] refuses the source;
// any other one is a failure.
type Installer interface {
	// Install installs the files at source, whose digest the user has agreed to.
	Install(ctx context.Context, source string, editable bool, digest string) error
	// Reload starts a plugin again; with a digest, it accepts the files that have it.
	Reload(ctx context.Context, name, digest string) error
	// Uninstall removes a plugin, with its state if purge is set.
	Uninstall(ctx context.Context, name string, purge bool) error
}

// Plugin is a plugin as the API shows it.
type Plugin struct {
	Name          string                     `json:"name"`
	Category      string                     `json:"category"`
	Status        string                     `json:"status" enum:"loaded,unloading,failed,unloaded"`
	Version       string                     `json:"version"`
	Enabled       bool                       `json:"enabled"`
	Bundled       bool                       `json:"bundled"`
	Error         string                     `json:"error,omitempty"`
	Guards        []string                   `json:"guards,omitempty" doc:"points at which it is asked, and denies while it does not work: pre_tool, prompt"`
	Package       *Package                   `json:"package,omitempty" doc:"absent for a part of yaya"`
	ConfigSchema  json.RawMessage            `json:"config_schema" doc:"JSON Schema of its settings, or null"`
	CurrentConfig map[string]json.RawMessage `json:"current_config" doc:"its settings, nested, secrets masked"`
}

type (
	InPlugin struct {
		Name string `path:"name" maxLength:"128"`
	}
	outPlugins struct {
		Body struct {
			Plugins []Plugin `json:"plugins"`
		}
	}
	outEnabled struct {
		Body struct {
			Name    string `json:"name"`
			Enabled bool   `json:"enabled"`
			Reload  bool   `json:"reload_required"`
		}
	}
	outInstalled struct {
		Body struct {
			Source string `json:"source"`
			OK     bool   `json:"ok"`
		}
	}
	outReloaded struct {
		Body struct {
			Name     string `json:"name"`
			Reloaded bool   `json:"reloaded"`
		}
	}
	outRemoved struct {
		Body struct {
			Name    string `json:"name"`
			Removed bool   `json:"removed"`
		}
	}
)

func (a *API) pluginRoutes() {
	r := routes{a, "plugins", a.cfg.Plugins != nil && a.cfg.Settings != nil, "plugin registry"}
	handle(r, "GET", "/api/plugins", "listPlugins", api.For(auth.ConfigRead), "List plugins, in load order", http.StatusOK, func(context.Context, *none) (*outPlugins, error) {
		out := new(outPlugins)
		out.Body.Plugins = []Plugin{}
		for _, s := range a.cfg.Plugins.Snapshot() {
			out.Body.Plugins = append(out.Body.Plugins, a.shown(s))
		}
		a.describe(out.Body.Plugins)
		return out, nil
	})
	health := routes{a, "plugins", a.cfg.Doctor != nil, "health checks"}
	handle(health, "GET", "/api/doctor", "doctor", api.For(auth.ConfigRead), "Check the health of every plugin", http.StatusOK, func(ctx context.Context, in *struct {
		TimeoutMS int `query:"timeout_ms" minimum:"1" maximum:"600000" default:"3000" doc:"how long to wait for each"`
	},
	) (*struct{ Body []plugin.Diagnosis }, error) {
		return &struct{ Body []plugin.Diagnosis }{a.cfg.Doctor(ctx, time.Duration(in.TimeoutMS)*time.Millisecond)}, nil
	})
	handle(r, "PATCH", "/api/plugins/{name}", "switchPlugin", api.For(auth.ConfigWrite), "Enable or disable a plugin from the next start on", http.StatusOK, func(ctx context.Context, in *struct {
		InPlugin
		Body struct {
			Enabled bool `json:"enabled"`
		}
	},
	) (*outEnabled, error) {
		if _, err := a.status(in.Name); err != nil {
			return nil, err
		}
		raw, err := json.Marshal(in.Body.Enabled)
		if err != nil {
			return nil, err
		}
		key := "plugin." + config.Namespace(in.Name) + ".enabled"
		if _, _, chosen := a.cfg.Settings.Get(key); chosen || !in.Body.Enabled { // else it is on already, as all are
			err = a.set(ctx, "plugin_switched", in.Name, map[string]bool{"enabled": in.Body.Enabled}, map[string]json.RawMessage{key: raw})
		}
		out := new(outEnabled)
		out.Body.Name, out.Body.Enabled, out.Body.Reload = in.Name, in.Body.Enabled, true
		return out, err
	})
	a.installRoutes(r)
}

// installRoutes declares the routes that change which plugins there are.
func (a *API) installRoutes(r routes) {
	handle(r, "POST", "/api/plugins/install", "installPlugin", api.For(auth.ConfigWrite), "Install a plugin", http.StatusOK, func(ctx context.Context, in *struct {
		Body struct {
			Source   string `json:"source" minLength:"1" maxLength:"4096"`
			Editable bool   `json:"editable,omitempty"`
			Digest   string `json:"digest,omitempty" maxLength:"128" doc:"of the files that were shown to the user; without it the answer is a refusal that names it"`
		}
	},
	) (*outInstalled, error) {
		if a.cfg.Installer == nil {
			return nil, api.Fail(http.StatusBadRequest, "this yaya installs no plugins: those that it has are built in")
		}
		if err := a.audited(ctx, "plugin_installing", masked.Word(in.Body.Source), map[string]any{"editable": in.Body.Editable, "digest": in.Body.Digest}); err != nil {
			return nil, err
		}
		if err := a.cfg.Installer.Install(ctx, in.Body.Source, in.Body.Editable, in.Body.Digest); err != nil {
			return nil, failedOr(err, "the plugin could not be installed")
		}
		out := new(outInstalled)
		out.Body.Source, out.Body.OK = in.Body.Source, true
		return out, nil
	})
	handle(r, "POST", "/api/plugins/{name}/reload", "reloadPlugin", api.For(auth.ConfigWrite), "Start an installed plugin again, or accept its changed files", http.StatusOK, func(ctx context.Context, in *struct {
		InPlugin
		Body struct {
			Digest string `json:"digest,omitempty" maxLength:"128" doc:"of the changed files that were shown to the user"`
		}
	},
	) (*outReloaded, error) {
		if a.cfg.Installer == nil {
			return nil, api.Fail(http.StatusBadRequest, "this yaya has no plugins but those that are built in")
		}
		if err := a.audited(ctx, "plugin_reloaded", in.Name, map[string]string{"digest": in.Body.Digest}); err != nil {
			return nil, err
		}
		if err := a.cfg.Installer.Reload(ctx, in.Name, in.Body.Digest); err != nil {
			return nil, failedOr(err, "the plugin could not be loaded")
		}
		out := new(outReloaded)
		out.Body.Name, out.Body.Reloaded = in.Name, true
		return out, nil
	})
	handle(r, "DELETE", "/api/plugins/{name}", "removePlugin", api.For(auth.ConfigWrite), "Remove an installed plugin", http.StatusOK, func(ctx context.Context, in *struct {
		InPlugin
		Purge bool `query:"purge" doc:"1 removes its state as well"`
	},
	) (*outRemoved, error) {
		s, err := a.status(in.Name)
		if err != nil {
			return nil, err
		}
		if !s.Bundled {
			if err := a.audited(ctx, "plugin_removed", in.Name, nil); err != nil {
				return nil, err
			}
		}
		if a.cfg.Installer != nil && !s.Bundled {
			err = a.cfg.Installer.Uninstall(ctx, in.Name, in.Purge)
		} else {
			err = a.cfg.Plugins.Remove(in.Name)
		}
		if err != nil {
			return nil, api.Fail(http.StatusBadRequest, "%v", err)
		}
		out := new(outRemoved)
		out.Body.Name, out.Body.Removed = in.Name, true
		return out, nil
	})
}

// failedOr returns a refusal as it is, and everything else as a failure.
func failedOr(err error, what string) error {
	if errors.Is(err, ErrRefused) {
		return err
	}
	return api.Fail(http.StatusInternalServerError, "%s: %.2000s", what, err)
}

func (a *API) status(name string) (plugin.Status, error) {
	for _, s := range a.cfg.Plugins.Snapshot() {
		if s.Name == name {
			return s, nil
		}
	}
	return plugin.Status{}, api.Fail(http.StatusNotFound, "there is no plugin %q", name)
}

func (a *API) shown(s plugin.Status) Plugin {
	p := Plugin{
		Name: s.Name, Category: string(s.Category), Status: string(s.Status), Version: s.Version, Enabled: s.Enabled, Bundled: s.Bundled, Error: s.Error, Guards: s.Guards,
		ConfigSchema: s.ConfigSchema, CurrentConfig: map[string]json.RawMessage{},
	}
	if p.ConfigSchema == nil {
		p.ConfigSchema = json.RawMessage("null")
	}
	at := "plugin." + config.Namespace(s.Name) + "."
	nested := map[string]any{}
	for _, v := range a.cfg.Settings.All(at) {
		put(nested, strings.Split(strings.TrimPrefix(v.Key, at), "."), config.Mask(v.Key, v.Value))
	}
	for k, v := range nested {
		if raw, err := json.Marshal(v); err == nil {
			p.CurrentConfig[k] = raw
		}
	}
	return p
}

// put sets a value in nested maps. Where a key is both a value and the start of
// others, those stand beside it under their whole name.
func put(m map[string]any, path []string, v json.RawMessage) {
	for i, k := range path[:len(path)-1] {
		next, ok := m[k].(map[string]any)
		if !ok {
			if m[k] != nil {
				m[strings.Join(path[i:], ".")] = v
				return
			}
			next = map[string]any{}
			m[k] = next
		}
		m = next
	}
	m[path[len(path)-1]] = v
}
