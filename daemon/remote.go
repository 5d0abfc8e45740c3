package daemon

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/plane/measure"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// socketGrace is how long WebSockets have to take their leave.
const socketGrace = 3 * time.Second

// newSockets makes the WebSockets of devices, and the topics of agents. end ends them, and may be
// called more than once.
func newSockets(ctx context.Context, b *bridge, attempts *auth.Attempts) (s *wire.Server, agents *wire.Agents, end func()) {
	c, controlPlane := b.core, b.core.st.controlPlane
	cfg := wire.Config{
		Authority: controlPlane.devices, KernelID: controlPlane.kernel, Audience: gateway.Audience, Address: gateway.Address, Known: gateway.Known, Attempts: attempts, Log: c.st.at.log,
		OnPresence: func(device string, there bool) {
			controlPlane.plane.Presence(device, there)
			b.changes.tell(admin.PartDevices, admin.PartAgents)
		},
	}
	if n := c.st.cluster(); n != nil {
		cfg.Nodes = n.forward
	}
	s = wire.New(cfg)
	agents = wire.NewAgents(wire.AgentsConfig{Server: s, Sessions: c.kernel.Sessions, Loop: c.kernel.Loop, Approvals: c.kernel.Approvals, Begin: c.begin})
	s.Handle("agent:lobby", controlPlane.plane.Lobby())
	s.Handle(wire.AgentPrefix, agents)
	c.metrics.Gauge("yaya_websockets", "Authenticated WebSockets.", func() float64 { n, _, _ := s.Stats(); return float64(n) })
	c.metrics.Gauge("yaya_websockets_slow", "WebSockets closed because their clients did not keep up, since the start.", func() float64 { _, n, _ := s.Stats(); return float64(n) })
	c.metrics.Gauge("yaya_events_delivered", "Events delivered to WebSockets, since the start.", func() float64 { _, _, n := s.Stats(); return float64(n) })
	c.metrics.Gauge("yaya_passed_websockets", "WebSockets that other nodes of a cluster hold open for clients of theirs.", func() float64 { return float64(s.Passed()) })
	return s, agents, sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), socketGrace)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			c.st.at.log.Warn().Err(err).Msg("while stopping")
		}
		agents.Close()
	})
}

// exports are the tools that others may invoke as skills: those that are named,
// and there.
func (c *core) exports() []string {
	raw, _, ok := c.kernel.Settings.Get("wire.export")
	var names []string
	if !ok || json.Unmarshal(raw, &names) != nil {
		return nil
	}
	snap := c.kernel.Tools.Snapshot()
	return slices.DeleteFunc(names, func(n string) bool {
		_, ok := snap.Lookup(n)
		return !ok
	})
}

// invoke runs an exported tool for somebody else, through the same door as every
// call: policy, approval, bounds, audit.
func (c *core) invoke(ctx context.Context, by tool.Caller, skill string, payload json.RawMessage) (json.RawMessage, error) {
	res := c.kernel.Dispatch.Call(ctx, c.kernel.Tools.Snapshot(), tool.Call{ID: "call_" + rand.Text(), Name: skill, Args: payload, SessionID: by.Session("wire"), Origin: tool.OriginWire, Caller: by})
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
type usage struct{ mix *measure.Mix }

// ToolCalled implements [tool.Observer].
func (u usage) ToolCalled(_ tool.Call, def tool.Definition, _ tool.Result, _ time.Duration) {
	u.mix.Add(def.Identity.Provider + "/" + def.Name)
}
