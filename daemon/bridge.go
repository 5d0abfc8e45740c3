package daemon

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/toolsearch"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
	"github.com/yaya-ai/yaya/mcpbridge/oauth"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// bridge is the phase of MCP: the configured servers, and the server that offers clients
// all of them. The servers start with the kernel, as it loads the bridge.
type bridge struct {
	core     *core
	loaded   manage.Loaded
	http     upstream.Transport
	changes  *changes // for those who show this yaya
	mcp      *mcpbridge.Bridge
	host     *feature.Host
	down     *downstream.Server
	followed *bus.Subscription // settings of sandboxes

	endSkills func() // the watch over skills

	embeddings *toolsearch.Embeddings
	embedding  func() (toolsearch.Model, error) // that the settings name

	past pastStates

	mu        sync.Mutex
	brought   map[string][]servers.Server // by the package, see bring
	otherwise []func()                    // are called when the settings want other sandboxes
}

// newBridge puts both sides of the bridge together. Bridge, host and server know each other
// in a circle: the bridge is made first, and given the others. clients are those of the yaya
// that this one goes on for.
func newBridge(ctx context.Context, c *core, l manage.Loaded, clients downstream.Handover) (_ *bridge, err error) {
	at, st, k := c.st.at, c.st, c.kernel
	b := &bridge{core: c, loaded: l, http: upstream.NewTransport(), changes: new(changes)}
	grants := oauth.NewStore(at.data, at.vault)
	grants.Learn = at.secrets.Declare
	limits := serverLimits(at.settings)
	cfg := mcpbridge.Config{
		Servers: l.Servers, Invalid: l.Invalid, Registry: k.Tools, Dispatcher: k.Dispatch, Artifacts: k.Artifacts, Procs: c.procs, HTTP: b.http, Grants: grants, Trust: st.trust,
		Eras:    upstream.NewEras(at.data, func(err error) { at.log.Warn().Err(err).Msg("protocol eras") }),
		Secrets: at.secrets, Mask: at.secrets.String, Secret: at.vault.Get, Env: os.LookupEnv, PassEnv: func() []string { return at.settings.Texts("servers.pass_env") },
		Sandboxes: st.sandboxes, Permits: st.permitted, MayStart: c.mayStart, Refuse: st.self.refuse,
		Home: at.Home, Workspace: st.workspace, Limits: limits, Version: Version(), Log: at.log, Telemetry: c.telemetry, Vouch: vouch,
	}
	if n := st.cluster(); n != nil {
		cfg.Node, cfg.Elsewhere = n.nodes.Name(), n.elsewhere
	} else if n, err := nodeIn(at.data); err != nil {
		return nil, err
	} else if n != nil { // a command works alone
		cfg.Node = n.Name
	}
	b.mcp = mcpbridge.New(cfg)
	c.packages.bringTo(b.bring) // until somebody manages the servers
	b.host = feature.NewHost(feature.Config{Registry: k.Tools, Dispatcher: k.Dispatch, Log: at.log, OnStatus: b.onStatus, Mask: at.secrets.String})
	c.onStopped(b.endServers)
	router := b.mcp.Router()
	router.Servers = withOwn(router.Servers, c)
	b.mcp.Attach(b.host)
	k.OnBoundary(func(ctx context.Context) { b.host.Boundary(ctx) })
	b.newEmbeddings()
	down := downstream.Config{
		Dispatcher: k.Dispatch, Registry: k.Tools, Artifacts: k.Artifacts, Traffic: st.record.log, Telemetry: c.telemetry, Embeddings: b.embeddings,
		Boundary: b.host.Boundary, Settle: b.host.Settle, Watch: b.host.Watch, Absent: b.mcp.Absent, SessionEnded: b.mcp.Release, Router: router,
		MaxMessage: func() int { return limits().Message }, Caller: caller, Scope: c.scopeOf(router), Profiles: config.Derive(at.settings, profiles),
		Name: "yaya", Version: Version(), Log: at.log, TakeOver: clients,
		Instructions: "Tools and prompts of several MCP servers, each named <server>__<name>.",
	}
	if n := st.cluster(); n != nil {
		down.Node, down.Forward, down.Drained = n.nodes.Name(), n.forward.To, n.takers
	}
	b.down = downstream.New(down)
	c.tasks.through(b.down)
	b.endSkills = watchSkills(b.down.Listening, skillPrompts{c}.listed, func() { router.Changed(skillsServer, relay.Prompts) })
	b.mcp.Offer(mcpbridge.Face{Standing: b.down.Standing, Endpoint: endpointsOf(b.down)})
	if b.followed, err = b.followSandbox(); err != nil {
		return nil, errors.Join(err, b.Close(ctx))
	}
	for _, w := range l.Warnings {
		at.log.Warn().Msg(w)
	}
	return b, nil
}

// bring takes over the servers of a package where nobody manages servers.
func (b *bridge) bring(ctx context.Context, name string, l []servers.Server) (notes []string) {
	b.mu.Lock()
	was := b.brought[name]
	if b.brought == nil {
		b.brought = map[string][]servers.Server{}
	}
	b.brought[name] = l
	b.mu.Unlock()
	for _, x := range was {
		b.mcp.Remove(x.Name)
	}
	if !b.mcp.Loaded() {
		return nil
	}
	for _, x := range l {
		notes = append(notes, b.mcp.Add(context.WithoutCancel(ctx), x)...)
	}
	return notes
}

// onStatus reports the states of servers.
func (b *bridge) onStatus(st feature.Status) {
	b.mcp.OnStatus(st)
	b.past.note(st.ID, string(st.State), st.Since)
	b.changes.tell(admin.PartServers)
}

// Close ends the clients and what follows the settings. The servers go on until the turns that
// use them have ended, see [bridge.endServers].
func (b *bridge) Close(context.Context) error {
	b.endSkills()
	b.down.Close()
	b.embeddings.Close()
	if b.followed != nil {
		b.followed.Close()
	}
	return nil
}

// endServers ends the servers that the kernel has not ended with the plugin of the bridge,
// because it had not loaded it for instance.
func (b *bridge) endServers(ctx context.Context) error {
	err := b.host.Close(ctx)
	b.http.CloseIdleConnections()
	return err
}

// serverLimits returns what the settings say about messages and calls of all servers.
func serverLimits(settings *config.Store) func() upstream.Limits {
	get := config.Derive(settings, func(s *config.Store) (upstream.Limits, error) {
		return upstream.Limits{
			Message: min(max(s.Int("servers.max_message_bytes"), 1<<20), downstream.MaxMessage),
			Seconds: s.Int("servers.tool_max_sec"),
		}, nil
	})
	return func() upstream.Limits {
		l, _ := get() // it does not fail
		return l
	}
}
