package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/plane/agents"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/internal/lazyregexp"
)

// Limits of a kernel's description of itself.
const (
	maxKernels  = 1000
	maxOfKernel = 2000     // agents
	maxChange   = 16 << 10 // bytes of what a kernel says of an agent
	maxSkills   = 500
	maxSkill    = 128
	maxReason   = 500
	kernelTopic = "kernel:"
)

// kernel is one kernel: this one, or one that is attached from afar. Guarded by
// the plane's mutex.
type kernel struct {
	id     string
	device string // whose it is, permanently; "" for this kernel
	skills []string
	beat   agents.Heartbeat
	heard  time.Time
	there  bool
	conn   string             // the connection by which it is attached
	place  int                // which attachment that is: one connection may attach again
	send   func(wire.Event)   // to that connection
	done   context.CancelFunc // ends the watch over it
}

func (p *Plane) kernel(id string) *kernel {
	k := p.kernels[id]
	if k == nil {
		k = &kernel{id: id}
		p.kernels[id] = k
	}
	return k
}

// KernelInfo describes a kernel.
type KernelInfo struct {
	ID        string            `json:"kernel_id"`
	Status    string            `json:"status"` // "connected", "stale", "disconnected"
	Skills    []string          `json:"capabilities"`
	Heartbeat *agents.Heartbeat `json:"heartbeat,omitempty"`
	LastSeen  string            `json:"last_seen,omitempty"`
}

// list returns every kernel with how it is.
func (p *Plane) list(now time.Time) []KernelInfo {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := []KernelInfo{}
	for _, k := range p.kernels {
		i := KernelInfo{ID: k.id, Status: "disconnected", Skills: k.skills}
		if k.id == p.cfg.KernelID {
			i.Skills = p.run.Exports()
		}
		if i.Skills == nil {
			i.Skills = []string{}
		}
		if !k.heard.IsZero() {
			beat := k.beat
			i.Heartbeat, i.LastSeen = &beat, control.Stamp(k.heard)
		}
		if k.there {
			i.Status = "connected"
			if now.Sub(k.heard) > staleAfter {
				i.Status = "stale"
			}
		}
		out = append(out, i)
	}
	slices.SortFunc(out, func(x, y KernelInfo) int { return strings.Compare(x.ID, y.ID) })
	return out
}

// Kernels are the kernels that are known, with how they are.
func (p *Plane) Kernels() []KernelInfo { return p.list(time.Now()) }

// Agents are the agents that are registered, and the index of the newest change.
func (p *Plane) Agents() (all []agents.Agent, index int64) {
	p.telling.Lock()
	defer p.telling.Unlock()
	return p.agents.List(), p.at
}

// Heartbeat is how this kernel is.
func (p *Plane) Heartbeat() agents.Heartbeat {
	ctx, cancel := context.WithTimeout(context.Background(), heartbeatEvery/3)
	defer cancel()
	return agents.Heartbeat{
		AgentCount: p.agents.Count(p.cfg.KernelID), Entropy: p.run.Mix.Entropy(), DriftScore: p.run.Mix.Drift(), MemoryCount: p.run.Memories(ctx),
	}
}

// beats takes in a heartbeat of a kernel that is here, and tells the other nodes.
func (p *Plane) beats(id string, b agents.Heartbeat, now time.Time) {
	p.heard(id, b, now)
	n := news{Kernel: id, Beat: &b}
	if id == p.cfg.KernelID {
		n.Present = p.run.Server.Present()
	}
	p.tellNodes(evHeartbeat, n)
}

// heard takes in a heartbeat and passes it on.
func (p *Plane) heard(id string, b agents.Heartbeat, now time.Time) {
	b.Type, b.KernelID, b.Time = "heartbeat", id, control.Stamp(now)
	p.mu.Lock()
	k := p.kernel(id)
	k.beat, k.heard = b, now
	back := !k.there
	k.there = true
	p.mu.Unlock()
	if back {
		p.bridge(id, "bridge_connected", now)
	} else if p.run.Nodes != nil {
		p.changed()
	}
	p.run.Server.Publish(kernelTopic+id, wire.Event{Name: "heartbeat", Payload: b, Soon: true})
}

func (p *Plane) bridge(id, name string, now time.Time) {
	p.changed()
	p.run.Server.Publish(kernelTopic+id, wire.Event{Name: name, Payload: agents.BridgeChange{Type: name, KernelID: id, Time: control.Stamp(now)}})
}

// staleKernels notes which kernels have not been heard of for too long.
func (p *Plane) staleKernels(now time.Time) {
	var gone []string
	p.mu.Lock()
	for _, k := range p.kernels {
		if k.there && k.id != p.cfg.KernelID && now.Sub(k.heard) > staleAfter {
			k.there = false
			gone = append(gone, k.id)
		}
	}
	p.mu.Unlock()
	for _, id := range gone {
		p.bridge(id, "bridge_disconnected", now)
	}
}

// kernels is kernel:{id}.
type kernels struct{ p *Plane }

var kernelID = lazyregexp.New(`^[A-Za-z0-9_.-]{1,128}$`)

// Allows implements [wire.Guarded].
func (kernels) Allows(p auth.Principal, _ string) error {
	if auth.Allow(p, auth.KernelAttach) == nil {
		return nil
	}
	return auth.Allow(p, auth.AgentsRead)
}

// Join implements [wire.Topic]. A device that may attach kernels becomes the one
// whose kernel that is, if nobody was before, or watches.
func (t kernels) Join(ctx context.Context, c wire.Client, topic string, _ *wire.Cursor) (wire.Joined, error) {
	p, id := t.p, strings.TrimPrefix(topic, kernelTopic)
	if auth.Allow(c.Principal, auth.KernelAttach) == nil && id != p.cfg.KernelID {
		ours, err := p.attach(ctx, c, id)
		if err != nil {
			return wire.Joined{}, err
		}
		if ours {
			return wire.Joined{Response: p.info(id)}, nil
		}
	}
	if err := auth.Allow(c.Principal, auth.AgentsRead); err != nil {
		return wire.Joined{}, err
	}
	p.mu.Lock()
	_, known := p.kernels[id]
	p.mu.Unlock()
	if !known {
		return wire.Joined{}, wire.Refuse("unmatched topic")
	}
	return wire.Joined{Response: p.info(id)}, nil
}

func (p *Plane) info(id string) any {
	for _, k := range p.list(time.Now()) {
		if k.ID == id {
			return k
		}
	}
	return nil
}

// attach makes a connection the one by which a device's kernel is reached. ours is
// false for the kernel of another device.
func (p *Plane) attach(ctx context.Context, c wire.Client, id string) (ours bool, err error) {
	if !kernelID().MatchString(id) {
		return false, wire.Refuse("a kernel's id is 1 to 128 letters, digits, and . _ -")
	}
	p.mu.Lock()
	k := p.kernels[id]
	owner, known, full := "", k != nil, len(p.kernels) >= maxKernels
	if known {
		owner = k.device
	}
	p.mu.Unlock()
	switch {
	case known && owner != c.ID:
		return false, nil
	case !known && full:
		return false, wire.Refuse("there are %d kernels", maxKernels)
	case !known:
		_, err := p.append(ctx, evAttached, c.Actor(), id, attached{c.ID}, func() error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if k := p.kernels[id]; k != nil && k.device != c.ID {
				return wire.Refuse("another device has a kernel of that id")
			}
			return nil
		})
		if err != nil {
			return false, unavailable(err)
		}
	}
	now := time.Now()
	p.mu.Lock()
	k = p.kernel(id)
	if k.done != nil {
		k.done()
	}
	p.places++
	place := p.places
	k.conn, k.place, k.send, k.heard, k.there = c.ConnectionID, place, c.Send, now, true
	stop := context.AfterFunc(ctx, func() { p.detach(id, place) })
	k.done = func() { stop() }
	p.mu.Unlock()
	p.bridge(id, "bridge_connected", now)
	return true, nil
}

// detach is when the connection of a kernel has gone.
func (p *Plane) detach(id string, place int) {
	p.mu.Lock()
	k := p.kernels[id]
	ours := k != nil && k.place == place && k.there
	if ours {
		k.there, k.send, k.conn, k.done = false, nil, "", nil
	}
	p.mu.Unlock()
	if ours {
		p.bridge(id, "bridge_disconnected", time.Now())
		p.abandon(id)
	}
}

// Messages that kernels push to kernel:{id}.
type (
	heartbeatPush struct {
		Type        string  `json:"type,omitempty"`
		KernelID    string  `json:"kernel_id,omitempty"`
		AgentCount  int     `json:"agent_count"`
		Entropy     float64 `json:"entropy"`
		DriftScore  float64 `json:"drift_score"`
		MemoryCount int     `json:"memory_count"`
		Time        string  `json:"ts,omitempty"`
	}
	registerPush struct {
		Type     string         `json:"type,omitempty"`
		ID       string         `json:"id"`
		KernelID string         `json:"kernel_id,omitempty"`
		Skill    string         `json:"skill,omitempty"`
		Status   string         `json:"status,omitempty"`
		Meta     map[string]any `json:"meta,omitempty"`
		Time     string         `json:"ts,omitempty"`
	}
	updatePush struct {
		Type   string         `json:"type,omitempty"`
		ID     string         `json:"id"`
		Status string         `json:"status"`
		Patch  map[string]any `json:"context_patch,omitempty"`
		Index  int64          `json:"raft_log_index,omitempty"` // the last that the kernel has seen of the agent
		Time   string         `json:"ts,omitempty"`
	}
	killPush struct {
		Type   string `json:"type,omitempty"`
		ID     string `json:"id"`
		Reason string `json:"reason,omitempty"`
		Time   string `json:"ts,omitempty"`
	}
	capabilitiesPush struct {
		Type   string   `json:"type,omitempty"`
		Skills []string `json:"skills"`
	}
	registeredSkills struct {
		Registered []string `json:"registered"`
	}
	indexed struct {
		Index int64 `json:"raft_log_index"`
	}
)

// Push implements [wire.Topic].
func (t kernels) Push(ctx context.Context, c wire.Client, topic, name string, payload json.RawMessage) (any, error) {
	p, id := t.p, strings.TrimPrefix(topic, kernelTopic)
	if name == "skill.invoke" {
		return p.invokePush(c, payload)
	}
	p.mu.Lock()
	k := p.kernels[id]
	ours := k != nil && k.device == c.ID && k.conn == c.ConnectionID
	p.mu.Unlock()
	if err := auth.Allow(c.Principal, auth.KernelAttach); err != nil {
		return nil, err
	}
	if !ours { // nobody speaks for another
		return nil, &wire.Problem{Reason: "forbidden"}
	}
	switch name {
	case "heartbeat":
		var b heartbeatPush
		if err := wire.Decode(payload, &b); err != nil {
			return nil, err
		}
		if b.AgentCount < 0 || b.MemoryCount < 0 || b.Entropy < 0 || b.DriftScore < 0 {
			return nil, wire.Refuse("a heartbeat's numbers are not negative")
		}
		p.beats(id, agents.Heartbeat{AgentCount: b.AgentCount, Entropy: b.Entropy, DriftScore: b.DriftScore, MemoryCount: b.MemoryCount}, time.Now())
		return nil, nil //nolint:nilnil // {}
	case "register_agent":
		return p.register(ctx, c, id, payload)
	case "update_agent":
		return p.updatePushed(ctx, id, payload)
	case "kill_agent":
		return p.killed(ctx, c, id, payload)
	case "advertise_capabilities":
		return p.advertise(ctx, c, id, payload)
	case "skill_result":
		return p.result(id, payload)
	}
	return nil, wire.NoSuchEvent(name)
}

func (p *Plane) register(ctx context.Context, c wire.Client, kernel string, payload json.RawMessage) (any, error) {
	if err := small(payload); err != nil {
		return nil, err
	}
	var m registerPush
	if err := wire.Decode(payload, &m); err != nil {
		return nil, err
	}
	if m.ID == "" || len(m.ID) > control.MaxName || len(m.Skill) > maxSkill || (m.KernelID != "" && m.KernelID != kernel) {
		return nil, wire.Refuse("an agent is {id, kernel_id, skill, meta}, of the kernel that registers it")
	}
	return p.change(ctx, evRegistered, c, m.ID, registered{kernel, m.Skill, m.Meta}, func() error {
		if a, ok := p.agents.Get(m.ID); ok && a.KernelID != kernel {
			return wire.Refuse("there is an agent of that id on another kernel")
		}
		if p.agents.Count(kernel) >= maxOfKernel || p.agents.Count("") >= maxAgents {
			return wire.Refuse("there are too many agents: %d of a kernel, %d in all", maxOfKernel, maxAgents)
		}
		return nil
	})
}

// small refuses what the plane and its log would have to keep too much of.
func small(payload json.RawMessage) error {
	if len(payload) > maxChange {
		return wire.Refuse("what is said of an agent has at most %d bytes", maxChange)
	}
	return nil
}

func (p *Plane) updatePushed(ctx context.Context, kernel string, payload json.RawMessage) (any, error) {
	if err := small(payload); err != nil {
		return nil, err
	}
	var m updatePush
	if err := wire.Decode(payload, &m); err != nil {
		return nil, err
	}
	if !slices.Contains([]string{agents.Idle, agents.Running, agents.Paused, agents.Failed}, m.Status) {
		return nil, wire.Refuse("a status is idle, running, paused or failed")
	}
	index, err := p.update(ctx, kernel, m.ID, m.Status, m.Patch)
	if errors.Is(err, errNotThere) {
		return nil, wire.Refuse("this kernel has no agent with this id")
	}
	if err != nil {
		return nil, unavailable(err)
	}
	return indexed{index}, nil
}

func (p *Plane) killed(ctx context.Context, c wire.Client, kernel string, payload json.RawMessage) (any, error) {
	var m killPush
	if err := wire.Decode(payload, &m); err != nil {
		return nil, err
	}
	return p.change(ctx, evKilled, c, m.ID, killed{clip(m.Reason), true}, p.ownAgent(m.ID, kernel))
}

func (p *Plane) ownAgent(id, kernel string) func() error {
	return func() error {
		if a, ok := p.agents.Get(id); !ok || a.KernelID != kernel {
			return wire.Refuse("this kernel has no agent with this id")
		}
		return nil
	}
}

func (p *Plane) change(ctx context.Context, event string, c wire.Client, target string, payload any, check func() error) (any, error) {
	e, err := p.append(ctx, event, c.Actor(), target, payload, check)
	if err != nil {
		return nil, unavailable(err)
	}
	return indexed{e.Index * perEntry}, nil
}

// advertise is advertise_capabilities.
func (p *Plane) advertise(ctx context.Context, c wire.Client, id string, payload json.RawMessage) (any, error) {
	var m capabilitiesPush
	if err := wire.Decode(payload, &m); err != nil {
		return nil, err
	}
	skills := slices.Clone(m.Skills)
	slices.Sort(skills)
	skills = slices.Compact(skills)
	if len(skills) > maxSkills || slices.ContainsFunc(skills, func(s string) bool { return s == "" || len(s) > maxSkill }) {
		return nil, wire.Refuse("skills are at most %d names of at most %d bytes", maxSkills, maxSkill)
	}
	p.mu.Lock()
	same := slices.Equal(p.kernel(id).skills, skills)
	p.mu.Unlock()
	if !same { // what does not change needs no entry
		if _, err := p.append(ctx, evCapabilities, c.Actor(), id, capabilities{skills}, nil); err != nil {
			return nil, unavailable(err)
		}
	}
	if skills == nil {
		skills = []string{}
	}
	return registeredSkills{skills}, nil
}

// clip is how much of somebody's words is kept and passed on.
func clip(s string) string { return cut.Text(s, maxReason) }

// findBySkill returns a connected kernel that has a skill: each after the other.
func (p *Plane) findBySkill(skill string) (*kernel, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var able []*kernel
	for _, k := range p.kernels {
		if k.there && k.send != nil && slices.Contains(k.skills, skill) {
			able = append(able, k)
		}
	}
	if len(able) == 0 {
		return nil, fmt.Errorf("%w: %s", errNoHandler, skill)
	}
	slices.SortFunc(able, func(x, y *kernel) int { return strings.Compare(x.id, y.id) })
	p.asked++
	return able[p.asked%len(able)], nil
}
