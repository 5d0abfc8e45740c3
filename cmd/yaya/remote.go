package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	neturl "net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/client"
	"github.com/yaya-ai/yaya/gateway/registry"
	"github.com/yaya-ai/yaya/gateway/rpc"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// socketGrace is how long WebSockets have to take their leave.
const socketGrace = 3 * time.Second

// sockets makes the WebSockets of devices. end ends them, and may be called more
// than once.
func (a *app) sockets(ctx context.Context, c *controlPlane, attempts *auth.Attempts) (s *wire.Server, end func()) {
	s = wire.New(wire.Config{
		Authority: c.devices, KernelID: c.kernel, Audience: gateway.Audience, Address: gateway.Address, Known: gateway.Known, Attempts: attempts, Log: a.log,
		OnPresence: func(device string, there bool) {
			c.plane.Presence(device, there)
			a.changed(admin.PartDevices, admin.PartAgents)
		},
	})
	agents := wire.NewAgents(wire.AgentsConfig{Server: s, Sessions: a.kernel.Sessions, Loop: a.kernel.Loop, Approvals: a.kernel.Approvals, Begin: a.begin})
	s.Handle("agent:lobby", c.plane.Lobby())
	s.Handle(wire.AgentPrefix, agents)
	a.metrics.Gauge("yaya_websockets", "Authenticated WebSockets.", func() float64 { n, _, _ := s.Stats(); return float64(n) })
	a.metrics.Gauge("yaya_websockets_slow", "WebSockets closed because their clients did not keep up, since the start.", func() float64 { _, n, _ := s.Stats(); return float64(n) })
	a.metrics.Gauge("yaya_events_delivered", "Events delivered to WebSockets, since the start.", func() float64 { _, _, n := s.Stats(); return float64(n) })
	return s, sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), socketGrace)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			a.log.Warn().Err(err).Msg("while stopping")
		}
		agents.Close()
	})
}

// join makes this kernel and its agents part of the control plane.
func (a *app) join(ctx context.Context, c *controlPlane, s *wire.Server) error {
	return c.plane.Start(ctx, rpc.Running{
		Log: c.log, Server: s, Bus: a.kernel.Bus, Sessions: a.kernel.Sessions, Loop: a.kernel.Loop, Mix: a.mix, Memories: a.memory.Count,
		Exports: a.exports, Invoke: a.invoke, Begin: a.begin,
	})
}

// exports are the tools that others may invoke as skills: those that are named,
// and there.
func (a *app) exports() []string {
	raw, _, ok := a.kernel.Settings.Get("wire.export")
	var names []string
	if !ok || json.Unmarshal(raw, &names) != nil {
		return nil
	}
	snap := a.kernel.Tools.Snapshot()
	return slices.DeleteFunc(names, func(n string) bool {
		_, ok := snap.Lookup(n)
		return !ok
	})
}

// invoke runs an exported tool for somebody else, through the same door as every
// call: policy, approval, bounds, audit (R27).
func (a *app) invoke(ctx context.Context, by tool.Caller, skill string, payload json.RawMessage) (json.RawMessage, error) {
	res := a.kernel.Dispatch.Call(ctx, a.kernel.Tools.Snapshot(), tool.Call{ID: "call_" + rand.Text(), Name: skill, Args: payload, SessionID: by.Session("wire"), Origin: tool.OriginWire, Caller: by})
	if !res.OK {
		return nil, errors.New(string(res.ErrorKind) + ": " + res.Brief)
	}
	if len(res.Structured) > 0 {
		return res.Structured, nil
	}
	return json.Marshal(map[string]string{"text": res.Text()})
}

// observers see every tool call, one after the other.
type observers []tool.Observer

// ToolCalled implements [tool.Observer].
func (o observers) ToolCalled(call tool.Call, def tool.Definition, res tool.Result, took time.Duration) {
	for _, x := range o {
		x.ToolCalled(call, def, res, took)
	}
}

// usage measures which tools are used.
type usage struct{ mix *registry.Mix }

// ToolCalled implements [tool.Observer].
func (u usage) ToolCalled(_ tool.Call, def tool.Definition, _ tool.Result, _ time.Duration) {
	u.mix.Add(def.Identity.Provider + "/" + def.Name)
}

// attach makes this kernel one of a gateway elsewhere; "" is none. What becomes of
// its agents is reported there, and while it cannot be reached, waits.
func (a *app) attach(url string, data *os.Root, c *controlPlane) (detach func(), err error) {
	if url == "" {
		return func() {}, nil
	}
	creds, err := loadRemote(data, remoteFile(url))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("this machine is no device of %s: yaya connect %s", url, url)
	}
	if err != nil {
		return nil, err
	}
	address, err := neturl.Parse(url)
	if err != nil {
		return nil, fmt.Errorf("--upstream: %w", err)
	}
	// The names that a gateway gives its users are its own: here they are that
	// gateway's, and nobody that this kernel knows.
	forward := func(ctx context.Context, actor, skill string, payload json.RawMessage) (json.RawMessage, error) {
		return a.invoke(ctx, tool.Caller{Principal: tool.GatewayPrefix + address.Host + "/" + actor}, skill, payload)
	}
	up := client.Attach(client.UplinkConfig{
		Options:  client.Options{Credentials: creds, Save: func(c client.Credentials) error { return saveRemote(data, c) }},
		KernelID: c.kernel, Heartbeat: c.plane.Heartbeat, Skills: a.exports, Invoke: forward, Log: a.log,
		OnKill: func(id, _ string) { a.kernel.Loop.Cancel(id) },
	})
	a.metrics.Gauge("yaya_upstream_connected", "Whether this kernel is attached to its gateway.", func() float64 {
		if up.Connected() {
			return 1
		}
		return 0
	})
	a.metrics.Gauge("yaya_upstream_queued", "Changes of the registry that wait for the gateway.", func() float64 { return float64(up.Stats().Queued) })
	a.metrics.Gauge("yaya_upstream_evicted", "Changes of the registry that were given up, since the start.", func() float64 { return float64(up.Stats().Evicted) })
	ctx, cancel := context.WithCancel(context.Background())
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		if err := c.plane.Report(ctx, up); err != nil && ctx.Err() == nil {
			a.log.Error().Err(err).Msg("the gateway is not told any more what becomes of this kernel's agents")
		}
	}()
	return func() {
		cancel()
		<-reported
		up.Close()
	}, nil
}
