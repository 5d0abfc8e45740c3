package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/feature"
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/internal/proc"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
	"github.com/yaya-ai/yaya/mcpbridge/upstream"
)

// app is everything below the surfaces, put together.
type app struct {
	log      zerolog.Logger
	bus      *bus.Bus
	registry *tool.Registry
	dispatch *tool.Dispatcher
	host     *feature.Host
	bridge   *mcpbridge.Bridge
	mcp      *downstream.Server
	metrics  *gateway.Metrics
	procs    *proc.Manager
	http     upstream.Transport
	root     *os.Root // <data>/sessions
	stopBus  func()
}

// newApp builds the parts in order; Close takes them down in reverse.
func newApp(data *os.Root, home string, log zerolog.Logger) (*app, error) {
	if err := data.MkdirAll("sessions", 0o700); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	root, err := data.OpenRoot("sessions")
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	a := &app{
		log: log, bus: bus.New(bus.Config{OnOutcome: logFailures(log)}), registry: &tool.Registry{Log: log},
		metrics: gateway.NewMetrics(), procs: &proc.Manager{Guard: true}, http: upstream.NewTransport(), root: root,
	}
	artifacts := tool.NewStore(root)
	a.dispatch = tool.NewDispatcher(tool.DispatcherConfig{Registry: a.registry, Observer: a.metrics, Artifacts: artifacts, Log: log})
	if a.stopBus, err = a.dispatch.Serve(context.Background(), a.bus); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	workspace, err := os.Getwd()
	if err != nil {
		workspace = ""
	}
	a.bridge, err = mcpbridge.New(mcpbridge.Config{
		Bus: a.bus, Registry: a.registry, Procs: a.procs, HTTP: a.http, Artifacts: artifacts, Version: yayaVersion(), Log: log,
		Env: os.LookupEnv, Home: home, Workspace: workspace,
	})
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	a.host = feature.NewHost(feature.Config{Registry: a.registry, Dispatcher: a.dispatch, Log: log, OnStatus: a.bridge.OnStatus})
	a.bridge.Attach(a.host)
	a.mcp = downstream.New(downstream.Config{
		Dispatcher: a.dispatch, Registry: a.registry, Boundary: a.host.Boundary, Watch: a.host.Watch, SessionEnded: a.bridge.Release,
		Name: "yaya", Version: yayaVersion(), Log: log,
		Instructions: "Tools of several MCP servers, each named <server>__<tool>.",
	})
	reader, err := tool.NewReadArtifact(artifacts)
	if err == nil {
		err = a.registry.Register(reader)
	}
	if err != nil {
		return nil, errors.Join(err, a.Close(context.Background()))
	}
	return a, nil
}

// logFailures reports what went wrong in a subscriber of the bus.
func logFailures(log zerolog.Logger) func(bus.Outcome) {
	return func(o bus.Outcome) {
		if o.Err != nil {
			log.Error().Err(o.Err).Str("subscriber", o.Subscriber).Str("kind", o.Event.Kind).Msg("an event handler failed")
		}
	}
}

// Close stops everything and waits for it; no child process is left.
func (a *app) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	a.mcp.Close()
	errs := []error{a.host.Close(ctx)}
	a.stopBus()
	errs = append(errs, a.dispatch.Close(ctx), a.bus.Close(ctx))
	a.procs.Close(ctx)
	a.http.CloseIdleConnections()
	return errors.Join(append(errs, a.root.Close())...)
}

// loaded is the configuration that was found.
type loaded struct {
	servers  []servers.Server
	invalid  []servers.Invalid
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
		data, found, err := readFile(file)
		if err != nil {
			return l, err
		}
		if !found {
			if own {
				continue
			}
			return l, fmt.Errorf("there is no file %s", file)
		}
		format := servers.FormatYaya
		if !own {
			format = servers.Detect(file, data)
		}
		cfg, err := servers.Parse(file, data, format)
		if err != nil {
			return l, err
		}
		l.warnings = append(l.warnings, cfg.Warnings...)
		l.invalid = append(l.invalid, cfg.Invalid...)
		l.servers = append(l.servers, cfg.Servers...)
	}
	return l, nil
}

// withApp runs f with servers of this process's own, which are stopped when f
// has returned.
func withApp(ctx context.Context, p paths, mcpConfig []string, log zerolog.Logger, f func(*app) error) (err error) {
	l, err := loadServers(p, mcpConfig)
	if err != nil {
		return err
	}
	data, err := p.openData()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	a, err := newApp(data, p.home, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close(ctx)) }()
	a.start(ctx, l)
	return f(a)
}

// start hands the configured servers to the bridge. They start in the
// background, in parallel.
func (a *app) start(ctx context.Context, l loaded) {
	for _, inv := range l.invalid {
		a.bridge.Invalid(inv)
	}
	for _, s := range l.servers {
		l.warnings = append(l.warnings, a.bridge.Add(ctx, s)...)
	}
	for _, w := range l.warnings {
		a.log.Warn().Msg(w)
	}
}

// settled reports whether every server has been started once, for better or
// worse.
func settled(sts []feature.Status) bool {
	return !slices.ContainsFunc(sts, func(s feature.Status) bool {
		return (s.State == feature.Declared || s.State == feature.Starting) && s.LastError == ""
	})
}

// waitSettled waits until settled, at most as long as a server may take.
func (a *app) waitSettled(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !settled(a.host.Status()) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// report is what GET /status and `yaya mcp list --json` say.
type report struct {
	Version string           `json:"version"`
	PID     int              `json:"pid"`
	MCP     string           `json:"mcp_url,omitempty"`
	Clients int              `json:"clients"`
	Servers []feature.Status `json:"servers"`
	Invalid []invalidServer  `json:"invalid"`
}

type invalidServer struct {
	Name  string `json:"name"`
	File  string `json:"file"`
	Error string `json:"error"`
}

func (a *app) report(mcpURL string) report {
	r := report{Version: yayaVersion(), PID: os.Getpid(), MCP: mcpURL, Clients: a.mcp.Sessions(), Servers: a.host.Status(), Invalid: []invalidServer{}}
	for _, inv := range a.bridge.InvalidServers() {
		r.Invalid = append(r.Invalid, invalidServer{inv.Name, inv.File, feature.Clean(inv.Err.Error(), 1024)})
	}
	slices.SortFunc(r.Invalid, func(x, y invalidServer) int { return strings.Compare(x.Name, y.Name) })
	return r
}
