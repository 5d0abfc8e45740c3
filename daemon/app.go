package daemon

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// AppOptions say how much of a daemon a command needs in its own process.
type AppOptions struct {
	MCPConfig []string // files of servers, instead of yaya's own
	Workspace string   // of sessions that are opened without one; "" is the current folder
	Agents    bool     // with the plugins of agents
	Log       zerolog.Logger

	lock    bool // no other process works on the data directory meanwhile
	bare    bool // without servers
	lenient bool // goes on without a server that is required: to look at it
}

// TestOptions are those for running a hook without a daemon and without servers.
func TestOptions(log zerolog.Logger) AppOptions { return AppOptions{Log: log, bare: true} }

// App holds the phases of a process without a daemon, up to the bridge, with its kernel
// started.
type App struct {
	MCP    *downstream.Server
	bridge *bridge
}

// WithoutDaemon runs f with servers, and with agents if they are asked for, of this process's
// own, which are stopped when f has returned.
func WithoutDaemon(ctx context.Context, g *Flags, o AppOptions, f func(*App) error) (err error) {
	p, err := g.Paths()
	if err != nil {
		return err
	}
	at, err := openPlace(g, p, access{lock: o.lock, log: o.Log})
	if err != nil {
		return err
	}
	defer end(ctx, at, &err)
	st, err := openStores(ctx, at, holdings{workspace: o.Workspace, outside: g.OwnFiles(p, o.MCPConfig)})
	if err != nil {
		return err
	}
	defer end(ctx, st, &err)
	if o.Agents && !o.lenient && !o.bare { // all calls that the settings are about would be refused
		if err := unruled(at.settings, g.settingsFile(p)); err != nil {
			return err
		}
	}
	var l manage.Loaded
	if !o.bare {
		if l, err = manage.Load(p.Servers(), o.MCPConfig); err != nil {
			return err
		}
		if err := l.Here(o.MCPConfig, st.workspace, st.folders); err != nil {
			return err
		}
	}
	c, err := openCore(ctx, st)
	if err != nil {
		return err
	}
	defer end(ctx, c, &err)
	b, err := newBridge(ctx, c, l, downstream.Handover{})
	if err != nil {
		return err
	}
	defer end(ctx, b, &err)
	plugins := []plugin.Plugin{b.mcp}
	if o.Agents {
		plugins = append(c.agents(), b.mcp)
		c.kernel.OnBundled(c.plugins.load)
	} else {
		c.kernel.OnBundled(c.plugins.loadGuards)
	}
	st.awaitSecrets()
	if err := c.kernel.Start(ctx, plugins...); err != nil {
		return err
	}
	if err := b.required(ctx); err != nil && !o.lenient {
		return err
	}
	return f(&App{MCP: b.down, bridge: b})
}

// Report is the answer of GET /status and the output of `yaya mcp list --json`.
type Report struct {
	Version string           `json:"version"`
	PID     int              `json:"pid"`
	MCP     string           `json:"mcp_url,omitempty"`
	Listens []string         `json:"listens,omitempty"` // where yaya is, as the kernel has it
	Own     *OwnPaths        `json:"own,omitempty"`     // what no sandbox shows or changes
	Clients int              `json:"clients"`
	Servers []feature.Status `json:"servers"`
	Invalid []InvalidServer  `json:"invalid"`
	// Disabled are switched off.
	Disabled []disabledServer `json:"disabled,omitempty"`
	// Refused are files whose present content is not in use.
	Refused []admin.Notice `json:"refused,omitempty"`
}

type disabledServer struct {
	Name      string `json:"name"`
	File      string `json:"file"`
	Transport string `json:"transport"`
}

// InvalidServer is a server of the configuration that cannot be used as it is.
type InvalidServer struct {
	Name  string `json:"name"`
	State string `json:"state"` // invalid, or waiting for its folder to be trusted
	File  string `json:"file"`
	Error string `json:"error"`
}

// report says how the configured servers are.
func (b *bridge) report(mcpURL string, configured []servers.Server) Report {
	r := Report{Version: Version(), PID: os.Getpid(), MCP: mcpURL, Clients: b.down.Sessions(), Servers: b.host.Status(), Invalid: []InvalidServer{}}
	for _, inv := range b.mcp.InvalidServers() {
		state := "invalid"
		if errors.Is(inv.Err, manage.ErrNotTrusted) {
			state = "waiting"
		}
		r.Invalid = append(r.Invalid, InvalidServer{inv.Name, state, inv.File, feature.Clean(inv.Err.Error(), 1024)})
	}
	slices.SortFunc(r.Invalid, func(x, y InvalidServer) int { return strings.Compare(x.Name, y.Name) })
	for _, s := range configured {
		if s.Disabled {
			r.Disabled = append(r.Disabled, disabledServer{s.Name, s.File, string(s.Transport)})
		}
	}
	slices.SortFunc(r.Disabled, func(x, y disabledServer) int { return strings.Compare(x.Name, y.Name) })
	return r
}
