package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/registry"
	"github.com/yaya-ai/yaya/gateway/sessions"
	"github.com/yaya-ai/yaya/internal/certs"
	"github.com/yaya-ai/yaya/internal/masked"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/internal/sandbox"
	"github.com/yaya-ai/yaya/internal/secrets"
	"github.com/yaya-ai/yaya/internal/traffic"
	"github.com/yaya-ai/yaya/internal/workspace"
	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/folder"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
	"github.com/yaya-ai/yaya/mcpbridge/oauth"
	"github.com/yaya-ai/yaya/mcpbridge/relay"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/trust"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
	"github.com/yaya-ai/yaya/plugins/agent_tool"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
	"github.com/yaya-ai/yaya/plugins/llm_openai"
	"github.com/yaya-ai/yaya/plugins/memory_sqlite"
	"github.com/yaya-ai/yaya/plugins/strategy_coder"
	"github.com/yaya-ai/yaya/plugins/strategy_react"
	"github.com/yaya-ai/yaya/plugins/tool_shell"
	"github.com/yaya-ai/yaya/plugins/tool_workspace"
)

// app is everything below the surfaces, put together.
type app struct {
	log     zerolog.Logger
	kernel  *kernel.Kernel
	host    *feature.Host
	bridge  *mcpbridge.Bridge
	mcp     *downstream.Server
	metrics *gateway.Metrics
	mix     *registry.Mix
	memory  *memory_sqlite.Plugin
	procs   *proc.Manager
	http    upstream.Transport
	v1      atomic.Pointer[sessions.Service]
	live    atomic.Pointer[admin.Live]
	trust   *trust.Store
	folders *folder.Store
	gate    *folder.Gate
	files   *tool_workspace.Plugin
	shell   *tool_shell.Plugin
	coder   *strategy_coder.Plugin
	// commands are the sessions that yaya run has given rules of its own.
	commands commands
	home     string
	data     string
	guard    *workspace.Guard
	// sandboxes are what programs that yaya starts run in.
	sandboxes *sandbox.Sandboxes
	permits   *permits
	secrets   *masked.Secrets // that are shown nowhere
	vault     *secrets.Store
	traffic   *traffic.Log
	// Of the record of calls.
	trafficSettings func() (trafficSettings, error)
	enrolled        func() int
	unfollow        func()
	// workspace of sessions that are opened without one.
	workspace string
	// outside are the files of this yaya that may lie outside of its folders.
	outside ownFiles
	// configured are the servers that were found at the start.
	configured []servers.Server
	// listens are the addresses that this yaya listens on, nil when it does not.
	listens atomic.Pointer[[]string]
	// certificates is how those of the listener are, nil when it has none.
	certificates func() []certs.Status
}

// appConfig says what to put together.
type appConfig struct {
	data     *os.Root
	home     string
	own      []workspace.Own // folders that no tool reaches
	outside  ownFiles        // that no program in a sandbox changes
	settings *config.Store
	servers  loaded
	// workspace of sessions that are opened without one; "" is the current folder.
	workspace string
	// bare leaves the servers out.
	bare bool
	// lenient goes on without a server that is required: to look at it.
	lenient bool
	// enrolled counts the devices that may call; nil if there can be none.
	enrolled func() int
	// audit is told of answers to asks.
	audit func(approval.Request, approval.Decision) error
	log   zerolog.Logger
	// secrets are those that log hides; vault has those that are kept.
	secrets *masked.Secrets
	vault   *secrets.Store
}

// newApp builds the parts; nothing is started yet. Close takes down what was.
func newApp(c appConfig) (*app, error) {
	if c.workspace == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, fmt.Errorf("the current folder: %w", err)
		}
		c.workspace = dir
	}
	a := &app{log: c.log, secrets: c.secrets, vault: c.vault, metrics: gateway.NewMetrics(), mix: new(registry.Mix), memory: memory_sqlite.New(filepath.Join(c.data.Name(), "memory.db")), procs: &proc.Manager{Guard: true}, http: upstream.NewTransport(), home: c.home, data: c.data.Name(), permits: newPermits(c.data.Name()), trust: trust.NewStore(c.data), workspace: c.workspace, configured: c.servers.servers}
	var err error
	if a.guard, err = workspace.NewGuard(c.own...); err != nil {
		return nil, err
	}
	a.outside, a.sandboxes = c.outside, sandboxes(c)
	a.sandboxes.Listens = a.listening
	a.outside.prepare(a.log)
	a.kernel, err = kernel.New(kernel.Config{
		Data: c.data, Settings: c.settings, Workspace: c.workspace, Version: yayaVersion(), Observer: observers{a.metrics, usage{a.mix}, calls{a}}, Unreviewed: func(c tool.Change) (func() error, error) { return a.shell.Unreviewed(c) }, Approver: a.approver, Asker: mcpbridge.AskCaller, Audit: c.audit, ApprovalTimeout: a.approvalTimeout, Answers: a.answers, Scopes: auth.ScopeNames(), Secrets: a.secrets,
		Boundary: func(ctx context.Context) { a.host.Boundary(ctx) }, Log: c.log,
	})
	if err != nil {
		return nil, err
	}
	a.procs.Adopt() // before anything is started
	k := a.kernel
	a.folders = folders(c.data, c.settings, a.guard)
	a.gate = folder.NewGate(folder.GateConfig{Store: a.folders, Folder: a.folder, Ask: a.askPeople})
	k.Dispatch.SetGate(a.gate)
	a.files = tool_workspace.New(a.folder, a.guard, k.Artifacts)
	a.shell = tool_shell.New(tool_shell.Config{Folder: a.folder, Agreed: a.gate.Agreed, Guard: a.guard, Artifacts: k.Artifacts, Procs: a.procs, Data: c.data, Sandboxes: a.sandboxes, Ask: a.askAboutHost, Unasked: a.commands.unasked,
		Hosts: func() []string { return c.settings.Texts(commandHosts) }, Write: func() []string { return c.settings.Texts(commandWrite) }})
	a.coder = strategy_coder.New(strategy_coder.Config{Folder: a.folder, Trusted: a.gate.Trusted, Guard: a.guard, Verify: a.shell})
	for _, h := range []tool.Hook{a.files.Hook(), a.shell.Hook(), a.coder.Hook(), &a.commands} {
		k.Dispatch.AddHook(h)
	}
	grants := oauth.NewStore(c.data, c.vault)
	grants.Learn = a.secrets.Declare
	limits := serverLimits(c.settings)
	a.bridge = mcpbridge.New(mcpbridge.Config{
		Secrets: a.secrets, Mask: a.secrets.String,
		Servers: c.servers.servers, Invalid: c.servers.invalid,
		Registry: k.Tools, Procs: a.procs, HTTP: a.http, Artifacts: k.Artifacts, Grants: grants, Trust: a.trust, Version: yayaVersion(), Log: c.log,
		Eras:      upstream.NewEras(c.data, func(err error) { c.log.Warn().Err(err).Msg("protocol eras") }),
		Sandboxes: a.sandboxes, Permits: a.permitted, Endpoint: a.endpointOf,
		MayStart: a.mayStart, Refuse: a.itself, Env: os.LookupEnv, Secret: c.vault.Get, PassEnv: func() []string { return c.settings.Texts("servers.pass_env") }, Home: c.home, Workspace: c.workspace,
		Standing: func(client string) relay.Peer { return a.mcp.Standing(client) },
		Limits:   limits,
	})
	a.host = feature.NewHost(feature.Config{Registry: k.Tools, Dispatcher: k.Dispatch, Log: c.log, OnStatus: a.onStatus, Mask: a.secrets.String})
	a.bridge.Attach(a.host)
	if err := a.recordCalls(c); err != nil {
		return nil, err
	}
	if err := a.followSandbox(); err != nil {
		return nil, err
	}
	a.mcp = downstream.New(downstream.Config{
		Traffic:    a.traffic,
		Dispatcher: k.Dispatch, Registry: k.Tools, Boundary: a.host.Boundary, Settle: a.host.Settle, Absent: a.bridge.Absent, Watch: a.host.Watch, SessionEnded: a.bridge.Release,
		Router: a.bridge.Router(), Artifacts: k.Artifacts, MaxMessage: func() int { return limits().Message },
		Caller: caller, Profiles: config.Derive(c.settings, profiles),
		Name: "yaya", Version: yayaVersion(), Log: c.log,
		Instructions: "Tools and prompts of several MCP servers, each named <server>__<name>.",
	})
	for _, w := range c.servers.warnings {
		c.log.Warn().Msg(w)
	}
	return a, nil
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

// caller is who the gateway has established an MCP request to be from.
func caller(r *http.Request) (tool.Caller, bool) {
	if who, ok := r.Context().Value(serverKey{}).(tool.Caller); ok {
		return who, true
	}
	p := auth.FromContext(r.Context())
	switch p.Kind {
	case auth.Owner:
		return tool.LocalOwner, true
	case auth.Device, auth.External, auth.Lasting:
		return tool.Caller{Principal: p.Name(), Has: p.Has, Servers: p.Servers()}, true
	case auth.Anonymous:
	}
	return tool.Caller{}, false
}

// profilesKey is where profiles of MCP clients are configured: one value, or one
// table a profile.
const profilesKey = "plugin.mcp_bridge.profiles"

func profiles(settings *config.Store) (map[string]downstream.Profile, error) {
	groups, err := settings.Groups()
	if err != nil {
		return nil, err
	}
	all := map[string]map[string]json.RawMessage{}
	if raw, _, ok := settings.Get(profilesKey); ok {
		if err := json.Unmarshal(raw, &all); err != nil {
			return nil, fmt.Errorf("%s: %w", profilesKey, err)
		}
	}
	for _, v := range settings.All(profilesKey + ".") {
		name, field, _ := strings.Cut(strings.TrimPrefix(v.Key, profilesKey+"."), ".")
		if field == "" {
			var whole map[string]json.RawMessage
			if err := json.Unmarshal(v.Value, &whole); err != nil {
				return nil, fmt.Errorf("%s: %w", v.Key, err)
			}
			all[name] = whole
			continue
		}
		if all[name] == nil {
			all[name] = map[string]json.RawMessage{}
		}
		all[name][field] = v.Value
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil, err
	}
	return parseProfiles(raw, groups)
}

func parseProfiles(raw json.RawMessage, groups map[string][]string) (map[string]downstream.Profile, error) {
	out, err := downstream.ParseProfiles(raw, approval.Callers{Groups: groups, Scopes: auth.ScopeNames()})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", profilesKey, err)
	}
	return out, nil
}

// agents are the plugins that agents are made of, in the order in which they are
// loaded; the first provider is the one that works out of the box.
func (a *app) agents() []plugin.Plugin {
	return []plugin.Plugin{
		strategy_react.New(),
		llm_echo.New(),
		llm_openai.New(os.Getenv),
		a.memory,
		agent_tool.New(a.kernel.Sessions, a.kernel.Loop),
		a.files, a.shell, a.coder,
	}
}

// folder is where a session works.
func (a *app) folder(id string) (string, error) {
	s, err := a.kernel.Sessions.Find(id, "")
	if err != nil {
		return "", err
	}
	if s.Workspace() == session.Nowhere {
		return "", fmt.Errorf("this session works in no folder: another device began it, and the folder %s is not open to devices (the user of this machine can change that with: yaya trust %s)", a.workspace, a.workspace)
	}
	return s.Workspace(), nil
}

// begin makes a session, unless it is there, for somebody who names no folder: it works
// where yaya runs, or nowhere if that folder is not open to them. A session that is there
// has to work in a folder that is.
func (a *app) begin(who auth.Principal, id string) error {
	s, err := a.kernel.Sessions.Find(id, "")
	if err == nil && s.Workspace() != session.Nowhere {
		_, err := a.mayUse(who, s.Workspace())
		return err
	}
	if !errors.Is(err, session.ErrNotFound) {
		return err
	}
	dir := ""
	if at, err := a.mayUse(who, a.workspace); err != nil {
		dir = session.Nowhere
	} else if who.Kind != auth.Owner {
		dir = at
	}
	_, err = a.kernel.Sessions.Open(id, dir)
	return err
}

// Close stops everything and waits for it; no child process is left.
func (a *app) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	a.mcp.Close()
	err := errors.Join(a.kernel.Stop(ctx, "stopped"), a.host.Close(ctx))
	a.procs.Close(ctx)
	a.http.CloseIdleConnections()
	a.unfollow()
	return errors.Join(err, a.traffic.Close(ctx))
}

// loaded is the configuration that was found.
type loaded struct {
	servers  []servers.Server
	invalid  []servers.Invalid
	pending  []pending
	brought  map[string]string // what identifies the servers that a folder brings, by name
	warnings []string
}

// loadServers reads the named files, or yaya's own when none is named.
func loadServers(p paths, files []string) (loaded, error) {
	var l loaded
	own := len(files) == 0
	if own {
		files = []string{p.servers()}
	}
	for _, file := range files {
		if _, err := l.file(file, own); err != nil {
			return l, err
		}
	}
	return l, nil
}

// file adds the servers of a file and returns its content, nil if it is yaya's own and
// not there.
func (l *loaded) file(file string, own bool) ([]byte, error) {
	data, found, err := readFile(file)
	if err != nil {
		return nil, err
	}
	if !found {
		if own {
			return nil, nil
		}
		return nil, fmt.Errorf("there is no file %s", file)
	}
	format := servers.FormatYaya
	if !own {
		format = servers.Detect(file, data)
	}
	cfg, err := servers.Parse(file, data, format)
	if err != nil {
		return nil, err
	}
	l.warnings = append(l.warnings, cfg.Warnings...)
	l.invalid = append(l.invalid, cfg.Invalid...)
	l.servers = append(l.servers, cfg.Servers...)
	return data, nil
}

// here adds the servers of the project in dir, or in the current folder, unless
// files were named.
func (l *loaded) here(files []string, dir string, store *folder.Store) error {
	if len(files) > 0 {
		return nil
	}
	return l.project(dir, store)
}

// withApp runs f with servers, and with agents too if asked for, of this
// process's own, which are stopped when f has returned.
func withApp(ctx context.Context, g *globals, p paths, mcpConfig []string, log zerolog.Logger, agents bool, f func(*app) error, change ...func(*appConfig)) (err error) {
	data, settings, err := g.open(p, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	g.sealSecrets(data, settings, log)
	awaitSecrets, endSecrets := g.knowSecrets(ctx, log)
	defer endSecrets()
	c := appConfig{data: data, home: p.home, own: p.own(), outside: g.ownFiles(p, mcpConfig), settings: settings, log: log, secrets: &g.secrets, vault: g.vault}
	for _, edit := range change {
		edit(&c)
	}
	var l loaded
	if !c.bare {
		if l, err = loadServers(p, mcpConfig); err != nil {
			return err
		}
		store, err := p.folders(data, settings)
		if err != nil {
			return err
		}
		if err := l.here(mcpConfig, c.workspace, store); err != nil {
			return err
		}
	}
	c.servers = l
	a, err := newApp(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close(ctx)) }()
	var plugins []plugin.Plugin
	if agents {
		plugins = a.agents()
	}
	awaitSecrets()
	if err := a.kernel.Start(ctx, append(plugins, a.bridge)...); err != nil {
		return err
	}
	if err := a.required(ctx, l); err != nil && !c.lenient {
		return err
	}
	return f(a)
}

// report is what GET /status and `yaya mcp list --json` say.
type report struct {
	Version string           `json:"version"`
	PID     int              `json:"pid"`
	MCP     string           `json:"mcp_url,omitempty"`
	Listens []string         `json:"listens,omitempty"` // where yaya is, as the kernel has it
	Own     *ownPaths        `json:"own,omitempty"`     // what no sandbox shows or changes
	Clients int              `json:"clients"`
	Servers []feature.Status `json:"servers"`
	Invalid []invalidServer  `json:"invalid"`
	// Disabled are switched off.
	Disabled []disabledServer `json:"disabled,omitempty"`
	// Refused are files that are not taken over as they are now.
	Refused []admin.Notice `json:"refused,omitempty"`
}

type disabledServer struct {
	Name      string `json:"name"`
	File      string `json:"file"`
	Transport string `json:"transport"`
}

type invalidServer struct {
	Name  string `json:"name"`
	State string `json:"state"` // invalid, or waiting for its folder to be trusted
	File  string `json:"file"`
	Error string `json:"error"`
}

// report says how the configured servers are.
func (a *app) report(mcpURL string, configured []servers.Server) report {
	r := report{Version: yayaVersion(), PID: os.Getpid(), MCP: mcpURL, Clients: a.mcp.Sessions(), Servers: a.host.Status(), Invalid: []invalidServer{}}
	for _, inv := range a.bridge.InvalidServers() {
		state := "invalid"
		if errors.Is(inv.Err, errNotTrusted) {
			state = "waiting"
		}
		r.Invalid = append(r.Invalid, invalidServer{inv.Name, state, inv.File, feature.Clean(inv.Err.Error(), 1024)})
	}
	slices.SortFunc(r.Invalid, func(x, y invalidServer) int { return strings.Compare(x.Name, y.Name) })
	for _, s := range configured {
		if s.Disabled {
			r.Disabled = append(r.Disabled, disabledServer{s.Name, s.File, string(s.Transport)})
		}
	}
	slices.SortFunc(r.Disabled, func(x, y disabledServer) int { return strings.Compare(x.Name, y.Name) })
	return r
}
