package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/dashboard"
	"github.com/yaya-ai/yaya/gateway/forward"
	"github.com/yaya-ai/yaya/gateway/rpc"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/models"
	"github.com/yaya-ai/yaya/mcpbridge/manage"
)

// front is the phase of the gateway: everything that answers those who come in through the
// entrance. It is the plugin that the kernel begins to serve with.
type front struct {
	bridge     *bridge
	in         *entrance
	sockets    *wire.Server
	agents     *wire.Agents
	endSockets func()
	chats      *chatAPI
	manager    *manage.Manager
	catalog    *catalogAdmin
	files      *reloader
	doctor     *doctor
	api        *admin.API
	web        *gateway.Server
	restarts   *restarts
	ends       undo
}

// openFront puts the gateway together. The stores have a control plane.
func openFront(ctx context.Context, b *bridge, in *entrance, named []string, with *Inherited) (_ *front, err error) {
	c, st := b.core, b.core.st
	at := st.at
	f := &front{bridge: b, in: in, doctor: &doctor{bridge: b, certificates: in.source.status}}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close(ctx))
		}
	}()
	tokens, err := verifier(at.settings, st.controlPlane.devices.Now)
	if err != nil {
		return nil, err
	}
	attempts := auth.NewAttempts(time.Now)
	f.ends.add(rememberUses(ctx, at.data, st.controlPlane.devices, at.log))
	if f.chats, err = openChats(b); err != nil {
		return nil, err
	}
	f.ends.add(f.chats.Close)
	b.down.OfferRun(newTaskTool(c, f.chats.Service))
	endResources, err := offerSessions(b, f.chats.Service)
	if err != nil {
		return nil, err
	}
	f.ends.add(endResources)
	f.sockets, f.agents, f.endSockets = newSockets(ctx, b, attempts)
	f.ends.add(f.endSockets)
	live, endLive, err := newLive(ctx, b, f.sockets)
	if err != nil {
		return nil, err
	}
	f.ends.add(endLive)
	f.manager = newManager(b, len(named) == 0)
	f.catalog = newCatalogAdmin(at, f.manager)
	f.doctor.configured = f.manager.Configured
	f.ends.add(f.manager.Close)
	at.settings.Begin()
	f.files = &reloader{
		changes: b.changes, bridge: b.mcp, listens: in.addrs, p: at.Paths, named: named, file: at.flags.settingsFile(at.Paths),
		settings: at.settings, manager: f.manager, controlPlane: st.controlPlane, log: at.log, logs: at.logs,
		service: at.service, base: in.bases[0],
	}
	f.files.protected = st.outside.protect(f.files.files())
	f.api = f.newAPI(live)
	if f.restarts, err = newRestarts(f, with); err != nil {
		return nil, err
	}
	f.files.reloads = f.restarts.idle
	page, err := dashboard.New()
	if err != nil {
		return nil, err
	}
	cfg := in.web
	cfg.Page, cfg.Tokens, cfg.Attempts = page, tokens, attempts
	cfg.SlowPath = !at.settings.Bool("http.fast_path")
	if n := st.cluster(); n != nil {
		cfg.Age = func() time.Duration { return n.log.State().Behind }
	}
	f.answer(ctx, &cfg)
	f.web = gateway.New(in.listeners, cfg)
	for _, err := range unreadable(at.settings, in.addrs) {
		at.log.Error().Err(err).Msg("a setting cannot be used: calls that it is about are refused until it is corrected")
	}
	f.gauges()
	if n := st.cluster(); n != nil {
		f.ends.add(n.serve(ctx, st.controlPlane.devices, f.passedOn(), at.log))
	}
	return f, nil
}

// passedOn serves the requests that other nodes pass on, and answers those of the nodes themselves.
func (f *front) passedOn() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", f.bridge.down)
	mux.Handle("/mcp/{profile}", f.bridge.down)
	mux.Handle("/v1/", f.chats.API)
	mux.Handle("POST /api/approvals/{id}", f.api.API)
	mux.Handle("GET "+wire.NodeTopics, f.sockets.PassedOn())
	mux.Handle("GET "+wire.NodeAgents+"/{id}", forward.ForNodes(f.agents.ForNodes))
	asks, chats := forward.ForNodes(f.api.ForNodes), forward.ForNodes(f.chats.ForNodes)
	mux.Handle("GET "+admin.NodeApprovals, asks)
	mux.Handle("GET "+admin.NodeApprovals+"/{id}", asks)
	mux.Handle("GET "+admin.NodeAudience, asks)
	mux.Handle("GET "+admin.NodeDays, asks)
	if n := f.bridge.core.st.cluster(); n != nil {
		n.tellNodes(mux)
	}
	mux.Handle(nodeServers+"{server}", forward.ForNodes(f.bridge.serveNode))
	mux.Handle("GET "+sessions.NodePath, chats)
	mux.Handle("GET "+sessions.NodePath+"/{id}", chats)
	return mux
}

// newAPI makes the admin API.
func (f *front) newAPI(live *admin.Live) *admin.API {
	b, c, st := f.bridge, f.bridge.core, f.bridge.core.st
	k, at := c.kernel, st.at
	cfg := admin.Config{
		Bus: k.Bus, Settings: at.settings, Plugins: k.Plugins, Installer: c.plugins, Devices: st.controlPlane.devices, Control: st.controlPlane.log,
		Servers: serverAdmin{f.manager, c.metrics, at.log, &f.bridge.past}, Files: f.files, Folders: st.folders, Registry: k.Tools, Dispatch: k.Dispatch, Artifacts: k.Artifacts, Approvals: k.Approvals,
		Catalog: f.catalog, Models: c.models, Secrets: f.catalog.secrets, Plane: st.controlPlane.plane, Live: live, Reads: st.controlPlane.reads, Title: f.chats.Title,
		Traffic: &admin.Traffic{Log: st.record.log, Data: at.data, Bodies: st.record.bodies}, Logs: b.mcp.Logs, Mask: at.secrets.String,
		CheckSetting: SettingChecker(at.settings, f.in.addrs), Doctor: f.doctor.examine, Fingerprint: f.in.source.fingerprint,
		Embeddings:  b.embeddings,
		Nodes:       st.controlPlane.members(),
		Clients:     clientFiles{at.flags},
		LocalModels: models.LocalServices(),
		Setup:       func() admin.Setup { return c.setup(f.in.bases, f.in.flags.remote()) },
		Sandbox:     func() admin.Sandbox { return sandboxReport(st.sandboxes, b.programsNow(f.manager.Configured())) },
		Hooks:       c.listHooks, Skills: c.listSkills,
		Version: Version(), Log: at.log,
	}
	if n := st.cluster(); n != nil {
		cfg.Others = n.forward
	}
	return admin.New(cfg)
}

// beside assembles the admin API beside chats: servers, tools, and folders, whose trust is recorded in the
// audit as that which the daemon records.
func (a *App) beside(ctx context.Context) (cfg admin.Config, done func(), err error) {
	b := a.bridge
	st, k := b.core.st, b.core.kernel
	c, err := openControlPlane(ctx, st.at)
	if err != nil {
		return cfg, nil, err
	}
	st.folders.Audit(st.permits.Forgetting(c.trusted))
	m := newManager(b, true)
	cfg = a.admin()
	cfg.Devices, cfg.Control, cfg.Folders = c.devices, c.log, st.folders
	cfg.Servers, cfg.Registry, cfg.Dispatch = serverAdmin{m: m, log: st.at.log, past: &b.past}, k.Tools, k.Dispatch
	return cfg, func() {
		m.Close()
		if err := c.Close(context.WithoutCancel(ctx)); err != nil {
			st.at.log.Error().Err(err).Msg("the control log was not closed")
		}
	}, nil
}

// answer writes into cfg who answers which requests.
func (f *front) answer(ctx context.Context, cfg *gateway.Config) {
	b, c, st := f.bridge, f.bridge.core, f.bridge.core.st
	cfg.Authority, cfg.Tool, cfg.Sandboxed = st.controlPlane.devices, proc.Descends, proc.InSandbox
	if n := st.controlPlane.cluster; n != nil {
		cfg.Joins = n.nodes
	}
	cfg.Wire, cfg.Live, cfg.Shed = f.sockets, f.sockets.Local(), f.sockets.Shed
	cfg.Routes = slices.Concat(rpc.Routes(st.controlPlane.plane, st.at.log), f.api.Routes(), f.chats.Routes())
	cfg.MCP, cfg.CLI = b.down, newCLI(ctx, b, f.chats.Service, f.restarts)
	cfg.Sessions, cfg.Metrics, cfg.Profiles = c.kernel.Sessions, c.metrics.Handler(), gateway.Profiles()
	cfg.Status, cfg.Ready = f.status, f.doctor.ready
	cfg.BeforeDrain = func() { // ends the streams, so that draining does not wait for them
		b.down.Close()
		f.api.Close()
		f.endSockets()
		f.chats.Close()
	}
	cfg.OnFailure = func(err error) { c.kernel.Fail("web", err) }
}

// status returns the answer of GET /status.
func (f *front) status() any {
	r := f.bridge.report(f.in.bases[0]+"/mcp", f.manager.Configured())
	r.Refused, r.Listens, r.Own = f.files.Notices(), f.in.addrs, new(OwnPaths)
	r.Own.Hidden, r.Own.Readable = f.bridge.core.st.sandboxes.Paths()
	return r
}

// Close ends the streams, and what looks after them, once these have the end of the turns that run. The
// listeners are the entrance's, and who asks something is answered until the kernel stops.
func (f *front) Close(ctx context.Context) error {
	c := f.bridge.core
	ctx, cancel := c.st.at.closing(ctx, writeTime)
	defer cancel()
	err := c.kernel.EndTurns(ctx, "stopped")
	f.ends.all()
	return err
}

// verifier returns what verifies tokens of the configured issuer, nil without
// one.
func verifier(settings *config.Store, now func() time.Time) (*auth.Verifier, error) {
	issuer, audience := settings.Text("auth.issuer"), settings.Text("auth.audience")
	if issuer == "" && audience == "" {
		return nil, nil //nolint:nilnil // no issuer is no error
	}
	switch {
	case audience == "":
		return nil, errors.New("auth.issuer is set and auth.audience is not: yaya config set auth.audience URL (the URL of the MCP endpoint), or yaya config unset auth.issuer")
	case issuer == "":
		return nil, errors.New("auth.audience is set and auth.issuer is not: yaya config set auth.issuer URL (the authorization server), or yaya config unset auth.audience")
	}
	v, err := auth.NewVerifier(auth.Config{Issuer: issuer, Audience: audience, Now: now})
	if err != nil {
		return nil, fmt.Errorf("auth.issuer and auth.audience: %w", err)
	}
	return v, nil
}
