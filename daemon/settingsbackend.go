package daemon

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/rs/zerolog"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// WithAgents runs f with the daemon, or with the agents' plugins in this process and no
// MCP server.
func WithAgents(ctx context.Context, g *Flags, f func(*Backend) error) error {
	return withAdmin(ctx, g, AppOptions{Agents: true, Log: zerolog.Nop(), bare: true}, f)
}

// withAdmin runs f with the daemon, or with a process that is opened as how says and
// whose servers have started or failed. With --config it asks no daemon.
func withAdmin(ctx context.Context, g *Flags, how AppOptions, f func(*Backend) error) error {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	if g.ConfigFile == "" {
		if done, err := WithDaemon(ctx, p, f); done {
			return err
		}
	}
	return WithoutDaemon(ctx, g, how, func(a *App) error {
		if !how.bare {
			a.bridge.waitSettled(ctx, nil)
		}
		return f(ownBackend(a.API()))
	})
}

// API is the admin API of a process that serves nobody else.
func (a *App) API() *admin.API { return admin.New(a.admin()) }

func (a *App) admin() admin.Config {
	k := a.bridge.core.kernel
	d := doctor{bridge: a.bridge, configured: func() []servers.Server { return a.bridge.loaded.Servers }}
	return admin.Config{
		Bus: k.Bus, Settings: k.Settings, Plugins: k.Plugins, Installer: a.bridge.core.plugins, Approvals: k.Approvals, Models: a.bridge.core.models, Doctor: d.examine, CheckSetting: SettingChecker(k.Settings, nil), Version: Version(), Log: a.bridge.core.st.at.log,
	}
}

// Shortly bounds what a command does on its way out.
func Shortly() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), 5*time.Second)
}

// WithSettings runs f with the settings of the daemon, or with those of this process if
// none runs or if --config names others.
func WithSettings(ctx context.Context, g *Flags, f func(*Backend) error) error {
	return WithStore(ctx, g, f, func(_ Paths, _ *os.Root, settings *config.Store) (admin.Config, error) {
		return admin.Config{Settings: settings, CheckSetting: SettingChecker(settings, nil)}, nil
	})
}

// WithStore runs f with the daemon, or with what alone makes of the settings if none
// runs or if --config names others.
func WithStore(ctx context.Context, g *Flags, f func(*Backend) error, alone func(Paths, *os.Root, *config.Store) (admin.Config, error)) (err error) {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	if g.ConfigFile == "" {
		if done, err := WithDaemon(ctx, p, f); done {
			return err
		}
	}
	data, settings, err := g.Open(p, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	c, err := alone(p, data, settings)
	if err != nil {
		return err
	}
	c.Version, c.Log = Version(), zerolog.Nop()
	return f(ownBackend(admin.New(c)))
}
