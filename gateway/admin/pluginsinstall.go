package admin

import (
	"context"
	"errors"
	"net/http"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/masked"
)

// Installer installs plugins. An error that wraps [ErrRefused] refuses the source;
// any other one is a failure.
type Installer interface {
	// Propose fetches the package at a source, runs nothing of it, and describes it.
	Propose(ctx context.Context, source string, editable bool) (PluginPackage, error)
	// Update proposes the newest version of an installed plugin, or the named one.
	Update(ctx context.Context, name, version string) (PluginPackage, error)
	// Install installs the package at source, whose digest the user has agreed to.
	Install(ctx context.Context, source string, editable bool, digest string) error
	// Reload starts a plugin again; with a digest, it accepts the files that have it.
	Reload(ctx context.Context, name, digest string) error
	// Uninstall removes a plugin, with its state if purge is set.
	Uninstall(ctx context.Context, name string, purge bool) error
	// Packages describes the installed plugins, by name.
	Packages() map[string]Package
}

// PluginPackage describes a package that may be installed. Its texts are its author's.
type PluginPackage struct {
	Name          string   `json:"name"`
	Version       string   `json:"version"`
	Description   string   `json:"description,omitempty"`
	Category      string   `json:"category"`
	AdapterID     string   `json:"adapter_id,omitempty" doc:"of an adapter; no two plugins have the same"`
	ProviderID    string   `json:"provider_id,omitempty" doc:"of an llm-provider; no two plugins have the same"`
	StrategyID    string   `json:"strategy_id,omitempty" doc:"of a strategy, by which sessions choose it; no two plugins have the same"`
	MemoryKind    string   `json:"memory_kind,omitempty" doc:"of a memory: short-term or long-term"`
	Source        string   `json:"source" doc:"with the exact version"`
	Resolved      string   `json:"resolved,omitempty" doc:"what the version is: a commit, or the digest of a registry"`
	Digest        string   `json:"digest" doc:"of its files, for the request that installs them"`
	Runs          string   `json:"runs"`
	Builds        string   `json:"builds,omitempty" doc:"what has to be built before"`
	Parts         *Parts   `json:"parts,omitempty" doc:"of a package for agents, which has no program"`
	Requires      []string `json:"requires,omitempty"`
	Subscriptions []string `json:"subscriptions,omitempty"`
	Permissions   []string `json:"permissions" doc:"in words"`
	Editable      bool     `json:"editable,omitempty"`
	Installed     string   `json:"installed,omitempty" doc:"version of the installed one, which this one replaces"`
	Same          bool     `json:"same,omitempty" doc:"the installed files are the same"`
	Changes       []string `json:"changes,omitempty" doc:"what differs from the installed one, in words, new permissions first"`
}

// Parts lists the parts of a package for agents, in words. ${PLUGIN_ROOT} is its folder, and
// ${PLUGIN_DATA} the one that its servers may write.
type Parts struct {
	Format  string   `json:"format" doc:"Agent Plugins 1.0.0, Claude Code or Codex"`
	Servers []string `json:"servers,omitempty" doc:"MCP servers, with what they run and may do"`
	Skills  []string `json:"skills,omitempty" doc:"their names"`
	Hooks   []string `json:"hooks,omitempty" doc:"their events and commands"`
	LeftOut []string `json:"left_out,omitempty" doc:"what yaya does not use, and what is broken"`
}

type (
	outInstalled struct {
		Body struct {
			Source  string         `json:"source"`
			OK      bool           `json:"ok" doc:"whether it is installed"`
			Package *PluginPackage `json:"package,omitempty" doc:"what would be installed"`
		}
	}
	outPackage struct{ Body PluginPackage }
)

// installRoutes declares the routes that change which plugins there are.
func (a *API) installRoutes(r routes) {
	handle(r, "POST", "/api/plugins/install", "installPlugin", api.For(auth.ConfigWrite), "Show a plugin, and install it once its digest is given", http.StatusOK, func(ctx context.Context, in *struct {
		Body struct {
			Source   string `json:"source" minLength:"1" maxLength:"4096" doc:"the absolute path of a folder or a .tar.gz, git+https://…@TAG, npm:NAME@VERSION, pypi:NAME@VERSION or go:MODULE@VERSION"`
			Editable bool   `json:"editable,omitempty"`
			Digest   string `json:"digest,omitempty" maxLength:"128" doc:"of the files that were shown to the user; without it nothing is installed, and the answer describes the package"`
		}
	},
	) (*outInstalled, error) {
		if a.cfg.Installer == nil {
			return nil, api.Fail(http.StatusBadRequest, "this yaya installs no plugins: those that it has are built in")
		}
		event := "plugin_installing"
		if in.Body.Digest == "" {
			event = "plugin_proposed"
		}
		if err := a.audited(ctx, event, masked.Word(in.Body.Source), map[string]any{"editable": in.Body.Editable, "digest": in.Body.Digest}); err != nil {
			return nil, err
		}
		out := new(outInstalled)
		if in.Body.Digest == "" {
			p, err := a.cfg.Installer.Propose(ctx, in.Body.Source, in.Body.Editable)
			if err != nil {
				return nil, failedOr(err, "the plugin could not be fetched")
			}
			out.Body.Source, out.Body.Package = p.Source, &p
			return out, nil
		}
		if err := a.cfg.Installer.Install(ctx, in.Body.Source, in.Body.Editable, in.Body.Digest); err != nil {
			return nil, failedOr(err, "the plugin could not be installed")
		}
		out.Body.Source, out.Body.OK = in.Body.Source, true
		return out, nil
	})
	handle(r, "POST", "/api/plugins/{name}/update", "updatePlugin", api.For(auth.ConfigWrite), "Show another version of an installed plugin, for installPlugin to install", http.StatusOK, func(ctx context.Context, in *struct {
		InPlugin
		Body struct {
			Version string `json:"version,omitempty" maxLength:"256" doc:"the newest without it"`
		}
	},
	) (*outPackage, error) {
		if a.cfg.Installer == nil {
			return nil, api.Fail(http.StatusBadRequest, "this yaya has no plugins but those that are built in")
		}
		if err := a.audited(ctx, "plugin_proposed", in.Name, map[string]any{"version": in.Body.Version}); err != nil {
			return nil, err
		}
		p, err := a.cfg.Installer.Update(ctx, in.Name, in.Body.Version)
		if err != nil {
			return nil, failedOr(err, "the plugin could not be fetched")
		}
		return &outPackage{p}, nil
	})
	a.installedRoutes(r)
}

// installedRoutes declares the routes that start and remove an installed plugin.
func (a *API) installedRoutes(r routes) {
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

// NotStarted reports that a plugin is installed, and does not start.
type NotStarted struct{ Err error }

func (e *NotStarted) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *NotStarted) Unwrap() error { return e.Err }

// failedOr returns a refusal as it is, and everything else as a failure: of what, unless that was
// done.
func failedOr(err error, what string) error {
	if errors.Is(err, ErrRefused) {
		return err
	}
	if not, ok := errors.AsType[*NotStarted](err); ok {
		return api.Fail(http.StatusInternalServerError, "%.2000s", not)
	}
	return api.Fail(http.StatusInternalServerError, "%s: %.2000s", what, err)
}
