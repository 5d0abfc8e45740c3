package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/dashboard"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

func serveCommand(g *globals) *cobra.Command {
	var mcpConfig []string
	var strategy, upstream string
	var noOpen bool
	var listen listenFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway",
		Long: `Run the gateway: connect the configured MCP servers and offer all their tools
at http://127.0.0.1:8787/mcp, and a page to watch and steer it all at
http://127.0.0.1:8787/, which is opened if this is a terminal with a desktop.

Servers come from mcp.json in the configuration directory, or from the files
named with --mcp-config, in the format of any common MCP client.

Other machines reach yaya over https alone. Its certificate comes from one of

  --acme --host NAME          Let's Encrypt, or another authority with ACME, for
                              a name that leads to port 443 of this machine;
                              with it you agree to the authority's terms
  --tls-self-signed           yaya itself, for a home network: each device
                              compares a fingerprint (yaya device invite)
  --tls-cert and --tls-key    files
  --behind-proxy --host NAME  a proxy that serves https

With the first two, this machine goes on without TLS at http://127.0.0.1:8787/.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := listen.check(); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			for _, file := range mcpConfig {
				if missing(file) {
					return &usageError{c.CommandPath(), fmt.Errorf("--mcp-config: there is no file %s", file)}
				}
			}
			flags := map[string]string{}
			if strategy != "" {
				flags["strategy"] = strategy
			}
			return serve(c.Context(), g, c.OutOrStdout(), mcpConfig, &listen, upstream, !noOpen, flags)
		},
	}
	c.Flags().StringArrayVar(&mcpConfig, "mcp-config", nil, "`file` of MCP servers instead of yaya's own; repeatable")
	c.Flags().StringVar(&strategy, "strategy", "", "id of the strategy that drives agents (default react)")
	c.Flags().StringVar(&upstream, "upstream", "", "attach this kernel to a yaya elsewhere, where this machine is a device (yaya connect)")
	c.Flags().BoolVar(&noOpen, "no-open", false, "do not open the page in a browser")
	listen.register(c)
	return c
}

func serve(ctx context.Context, g *globals, out io.Writer, mcpConfig []string, listen *listenFlags, upstream string, open bool, flags map[string]string) (err error) {
	p, err := g.paths()
	if err != nil {
		return err
	}
	hup := hangups(ctx)
	l, err := loadServers(p, mcpConfig)
	if err != nil {
		return err
	}
	log := g.newLog(os.Stderr)
	data, settings, err := g.open(p, flags)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	unlock, err := lock(data)
	if err != nil {
		return err
	}
	defer unlock()

	known, err := p.folders(data, settings)
	if err != nil {
		return err
	}
	if err := l.here(mcpConfig, "", known); err != nil {
		return err
	}
	plane, err := openControl(data, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Close()) }()
	if n := g.sealSecrets(data, settings, log); n > 0 {
		if err := plane.sealed(n); err != nil {
			return err
		}
	}
	awaitSecrets, endSecrets := g.knowSecrets(ctx, log)
	defer endSecrets()
	a, err := newApp(appConfig{data: data, home: p.home, own: p.own(), outside: g.ownFiles(p, mcpConfig).listening(listen), settings: settings, servers: l, audit: plane.decided, enrolled: plane.devices.Enrolled, log: log, secrets: &g.secrets, vault: g.vault})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close(ctx)) }()

	socket := p.socket()
	if len(socket) > maxSocketPath {
		log.Warn().Str("path", socket).Msg("the data directory's path is too long for a socket: yaya's own commands cannot reach this daemon")
		socket = ""
	}
	tokens, err := verifier(settings, plane.devices.Now)
	if err != nil {
		return err
	}
	attempts := auth.NewAttempts(time.Now)
	defer rememberUses(ctx, data, plane.devices, log)()
	chats, err := a.chats(data)
	if err != nil {
		return err
	}
	defer chats.Close()
	sockets, endSockets := a.sockets(ctx, plane, attempts)
	defer endSockets()
	live, endLive, err := a.watch(ctx, plane, sockets)
	if err != nil {
		return err
	}
	defer endLive()
	a.folders.Audit(a.permits.forgetting(plane.trusted))
	mcpServers := newServerAdmin(a, p, l, len(mcpConfig) == 0)
	defer mcpServers.Close()
	settings.Begin()
	files := &reloader{a: a, p: p, named: mcpConfig, file: g.settingsFile(p), settings: settings, servers: mcpServers, plane: plane, log: log}
	source, err := listen.source(ctx, data, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	a.certificates = source.status
	var url string
	api := admin.New(admin.Config{
		Bus: a.kernel.Bus, Settings: settings, Plugins: a.kernel.Plugins, Devices: plane.devices, Control: plane.log,
		Servers: mcpServers, Files: files, Folders: a.folders, Registry: a.kernel.Tools, Dispatch: a.kernel.Dispatch, Artifacts: a.kernel.Artifacts, Approvals: a.kernel.Approvals,
		Secrets: &secretAdmin{g.vault, settings, mcpServers},
		Plane:   plane.plane, Live: live, Traffic: &admin.Traffic{Log: a.traffic, Data: data, Bodies: a.bodies}, Logs: a.bridge.Logs, Mask: a.secrets.String, CheckSetting: checkers(profileChecker(settings), a.listening), Doctor: a.doctor, Setup: func() admin.Setup { return a.setup(url, listen.remote()) }, Version: yayaVersion(), Log: log,
		Fingerprint: source.fingerprint,
		Sandbox:     func() admin.Sandbox { return sandboxReport(a.sandboxes, mcpServers.programs()) },
	})
	page, err := dashboard.New()
	if err != nil {
		return err
	}
	cfg := gateway.Config{
		Page: page, Tokens: tokens, Authority: plane.devices, Attempts: attempts, Wire: sockets, Shed: sockets.Shed, Tool: proc.Descends, Sandboxed: proc.InSandbox, RPC: plane.plane.Handler(), Agents: plane.plane.AgentsHandler(),
		Socket: socket, MCP: a.mcp, Metrics: a.metrics.Handler(), Log: log,
		Status: func() any {
			r := mcpServers.report(url + "/mcp")
			r.Refused, r.Listens, r.Own = files.Notices(), a.listening(), new(ownPaths)
			r.Own.Hidden, r.Own.Readable = a.sandboxes.Paths()
			return r
		},
		Ready: func() error { return a.ready(plane) },
		API:   api, Live: sockets.Local(), CLI: a.cli(ctx, chats.Service),
		Sessions: a.kernel.Sessions, V1: chats,
		BeforeDrain: func() { // ends the streams, so that draining does not wait for them
			a.mcp.Close()
			api.Close()
			endSockets()
			chats.Close()
		},
		OnFailure: func(err error) { a.kernel.Fail("web", err) },
	}
	if err := listen.apply(&cfg, source); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		log.Warn().Msg(asRoot)
	}
	web, err := gateway.New(ctx, cfg)
	if err != nil {
		return err
	}
	addrs := []string{web.Addr()}
	url = listen.base(web.Addr(), source)
	here := url
	if at := web.LocalAddr(); at != "" {
		addrs, here = append(addrs, at), "http://"+at
	}
	if source.plain != "" {
		addrs = append(addrs, source.plain)
	}
	a.listens.Store(&addrs)
	for _, err := range unreadable(settings, a.listening()) {
		log.Error().Err(err).Msg("a setting that says who may do what cannot be read: calls that it is about are refused until it is corrected")
	}
	a.gauges()
	if err := errors.Join(plane.watch(a.kernel.Bus), a.join(ctx, plane, sockets)); err != nil {
		return errors.Join(err, web.Close())
	}
	defer plane.plane.Close()
	detach, err := a.attach(upstream, data, plane)
	if err != nil {
		return errors.Join(err, web.Close())
	}
	defer detach()
	awaitSecrets()
	if err := a.kernel.Start(ctx, append(a.agents(), a.bridge, web)...); err != nil {
		return errors.Join(err, web.Close())
	}
	if i := slices.IndexFunc(a.kernel.Plugins.Snapshot(), func(s plugin.Status) bool { return s.Name == "web" && s.Status != plugin.Loaded }); i >= 0 {
		return errors.Join(errors.New("the plugin web is switched off, and without it there is nothing to serve: yaya config unset plugin.web.enabled"), web.Close())
	}
	defer source.run(ctx)()
	defer files.watch(ctx, hup)()
	var aside sync.WaitGroup
	defer aside.Wait()
	aside.Go(func() { a.repair(ctx) })
	aside.Go(a.tellSandbox)
	aside.Go(func() {
		if err := a.trust.Tidy(); err != nil {
			log.Warn().Err(err).Msg("what is known of servers cannot be read as a whole")
		}
	})
	if open && onTerminal(out) {
		page := here + "/"
		if len(l.servers)+len(l.invalid) == 0 && !a.setup(url, false).Done {
			page += "#/start"
		}
		if err := openPage(page); err != nil {
			log.Debug().Err(err).Msg("the page was not opened")
		}
	}
	welcome(a, out, where{base: url, here: here, remote: listen.remote(), source: source}, p, l)
	return a.run(ctx, out, l)
}

// run shows the servers while they start, and waits until yaya has to end: because of
// ctx, or because something failed that it cannot go on without.
func (a *app) run(ctx context.Context, out io.Writer, l loaded) error {
	starts, end := context.WithCancel(ctx)
	var work sync.WaitGroup
	defer work.Wait()
	defer end()
	if onTerminal(out) && len(l.servers) > 0 {
		work.Go(func() { watchTable(starts, a, out) })
	}
	required := make(chan error, 1)
	work.Go(func() {
		if err := a.required(starts, l); err != nil && starts.Err() == nil {
			required <- err
		}
	})
	select {
	case err := <-a.kernel.Failed():
		return err
	case err := <-required:
		return err
	case <-ctx.Done():
		return nil
	}
}

// asRoot says what is wrong with running as root.
const asRoot = "yaya runs as root: so do its servers and the commands of its agents; give it a user of its own"

// verifier returns what verifies tokens of the configured issuer, nil without
// one.
func verifier(settings *config.Store, now func() time.Time) (*auth.Verifier, error) {
	issuer, audience := settings.Text("auth.issuer"), settings.Text("auth.audience")
	if issuer == "" && audience == "" {
		return nil, nil //nolint:nilnil // no issuer is no error
	}
	v, err := auth.NewVerifier(auth.Config{Issuer: issuer, Audience: audience, Now: now})
	if err != nil {
		return nil, fmt.Errorf("auth.issuer and auth.audience: %w", err)
	}
	return v, nil
}

// repair ends the turns that a crash has left open, session by session, and says
// what it cannot read.
func (a *app) repair(ctx context.Context) {
	if err := a.kernel.Sessions.Repair(ctx); err != nil && ctx.Err() == nil {
		a.log.Error().Err(err).Msg("not every session is whole: yaya verify tells which")
	}
}

// ready says why this yaya is not ready, nil when it is (HT-31).
func (a *app) ready(c *controlPlane) error {
	switch {
	case !c.log.State().Quorum:
		return errors.New("the control log cannot be written")
	case slices.ContainsFunc(a.host.Status(), begins): // one that installs keeps nobody waiting
		return errors.New("servers are starting")
	}
	return nil
}

// gauges are what /metrics shows besides calls.
func (a *app) gauges() {
	if a.certificates != nil {
		a.metrics.Gauge("yaya_certificate_expiry_timestamp_seconds", "When the first certificate of the listener ends, in Unix time; 0 while a name has none.", func() float64 { return certificateGauge(a.certificates()) })
	}
	a.metrics.Gauge("yaya_mcp_sessions", "Sessions of MCP clients.", func() float64 { return float64(a.mcp.Sessions()) })
	a.metrics.Gauge("yaya_mcp_servers_ready", "Connected MCP servers that work.", func() float64 {
		n := 0
		for _, s := range a.host.Status() {
			if s.State.Usable() {
				n++
			}
		}
		return float64(n)
	})
	a.sandboxGauges()
}

func onTerminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) //nolint:gosec // a descriptor fits
}

// where is how clients reach yaya.
type where struct {
	base   string // of clients in general
	here   string // of those on this machine
	remote bool   // other machines can
	source *certSource
}

// welcome says where yaya is, and what to do next. It waits for no server.
func welcome(a *app, out io.Writer, at where, p paths, l loaded) {
	url, remote := at.base+"/mcp", at.remote
	var b strings.Builder
	if !onTerminal(out) || len(l.servers) == 0 { // else the table says so
		for _, inv := range a.bridge.InvalidServers() {
			fmt.Fprintf(&b, "server %q cannot be used: %s\n", inv.Name, feature.Clean(inv.Err.Error(), 500))
		}
	}
	fmt.Fprintf(&b, "yaya %s\n  page          %s/\n  MCP endpoint  %s\n", yayaVersion(), at.base, url)
	if at.here != at.base {
		fmt.Fprintf(&b, "  on this one   %s/ and %s/mcp\n", at.here, at.here)
	}
	at.source.welcome(&b)
	fmt.Fprintf(&b, "  Claude Code   claude mcp add --transport http yaya %s%s\n", url, tokenHeader(remote))
	if remote {
		fmt.Fprintf(&b, "  its token     yaya token create NAME\n")
	}
	fmt.Fprintf(&b, "  other clients {\"mcpServers\": {\"yaya\": {\"type\": \"http\", \"url\": %q%s}}}\n", url, tokenMember(remote))
	fmt.Fprintf(&b, "  over stdio    {\"mcpServers\": {\"yaya\": {\"command\": %s, \"args\": [\"mcp\", \"serve\"]}}}\n", jsonText(shownProgram()))
	fmt.Fprintf(&b, "  other devices yaya device invite\n")
	if len(l.servers)+len(l.invalid) == 0 {
		fmt.Fprintf(&b, "\nNo MCP servers are configured yet.\n")
		suggest(&b, p)
	} else {
		fmt.Fprintf(&b, "  servers       yaya mcp list\n\n")
	}
	_, _ = io.WriteString(out, b.String()) // nobody may be reading
}

// suggest says how to get servers: from other clients, or by hand.
func suggest(b *strings.Builder, p paths) {
	found := false
	for _, f := range discover(p.home) {
		if len(f.config.Servers) > 0 {
			fmt.Fprintf(b, "  found %d in %s\n", len(f.config.Servers), f.from())
			found = true
		}
	}
	if found {
		fmt.Fprintf(b, "  take them over  yaya mcp import\n")
	}
	fmt.Fprintf(b, "  add one         yaya mcp add fs npx -y @modelcontextprotocol/server-filesystem ~\n")
	fmt.Fprintf(b, "  or do so on the page, or edit %s: yaya takes it over at once.\n", p.servers())
}
