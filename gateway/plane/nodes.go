package plane

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/plane/agents"
)

// nodesTopic is where the planes of a cluster's nodes tell each other what is not in the
// control log.
const nodesTopic = "plane"

// The events between planes. One that is lost is made up for by the next heartbeat.
const (
	evHeartbeat = "heartbeat"
	evPresence  = "presence"
	evStatus    = "status"
	evLeaves    = "leaves"
	evHello     = "hello" // of a node that has started, and asks for heartbeats
)

// news holds one thing that a node tells the others.
type news struct {
	Node    string            `json:"node"` // its kernel
	Kernel  string            `json:"kernel,omitempty"`
	Beat    *agents.Heartbeat `json:"beat,omitempty"`
	Present []string          `json:"present,omitempty"` // devices that are connected to the node
	Device  string            `json:"device,omitempty"`
	There   bool              `json:"there,omitempty"`
	Agent   string            `json:"agent,omitempty"`
	Status  string            `json:"status,omitempty"`
	Patch   map[string]any    `json:"patch,omitempty"`
}

// tellNodes tells the other nodes of a cluster.
func (p *Plane) tellNodes(event string, n news) {
	if p.run.Nodes != nil {
		n.Node = p.cfg.KernelID
		p.run.Nodes.Publish(nodesTopic, event, n)
	}
}

// hearNodes takes in what other nodes tell, until the returned function is called.
func (p *Plane) hearNodes() (end func()) {
	if p.run.Nodes == nil {
		return func() {}
	}
	return p.run.Nodes.Subscribe(func(topic, event string, payload any) {
		raw, foreign := payload.(json.RawMessage) // this node's own news are a [news]
		var n news
		if topic != nodesTopic || !foreign || json.Unmarshal(raw, &n) != nil || !kernelID().MatchString(n.Node) || n.Node == p.cfg.KernelID {
			return
		}
		p.hearNode(event, n, time.Now())
	})
}

func (p *Plane) hearNode(event string, n news, now time.Time) {
	switch event {
	case evHello:
		select {
		case p.hello <- struct{}{}:
		default: // it will beat anyway
		}
	case evHeartbeat:
		if n.Beat == nil || !kernelID().MatchString(n.Kernel) || !p.fromThere(n.Kernel) {
			return
		}
		p.heard(n.Kernel, *n.Beat, now)
		if n.Kernel == n.Node {
			p.there(n.Node, n.Present)
		}
	case evPresence:
		was := slices.Contains(p.Present(), n.Device)
		p.mu.Lock()
		if devices := p.elsewhere[n.Node]; devices != nil { // after its first heartbeat
			if n.There {
				devices[n.Device] = true
			} else {
				delete(devices, n.Device)
			}
		}
		p.mu.Unlock()
		if slices.Contains(p.Present(), n.Device) != was {
			p.showPresence(n.Device, n.There)
		}
		p.changed()
	case evStatus:
		if p.fromThere(n.Kernel) {
			_, _ = p.tryUpdate(n.Kernel, n.Agent, n.Status, n.Patch, false) // the agent may have gone meanwhile
			p.changed()
		}
	case evLeaves:
		p.mu.Lock()
		delete(p.elsewhere, n.Node)
		k := p.kernels[n.Node]
		was := k != nil && k.there
		if was {
			k.there = false
		}
		p.mu.Unlock()
		if was {
			p.bridge(n.Node, "bridge_disconnected", now)
		}
	}
}

// fromThere reports whether another node may speak for a kernel: it is not this one, and not
// attached here.
func (p *Plane) fromThere(kernel string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.kernels[kernel]
	return kernel != p.cfg.KernelID && (k == nil && len(p.kernels) < maxKernels || k != nil && k.send == nil)
}

// there replaces the devices that are connected to another node.
func (p *Plane) there(node string, devices []string) {
	now := make(map[string]bool, len(devices))
	for _, d := range devices {
		now[d] = true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.elsewhere[node] = now
}

// Present are the devices that are connected to any node, in order.
func (p *Plane) Present() []string {
	if p.run.Server == nil {
		return []string{}
	}
	all := append(p.run.Server.Present(), p.presentElsewhere()...)
	slices.Sort(all)
	return slices.Compact(all)
}

// presentElsewhere are the devices that are connected to other nodes.
func (p *Plane) presentElsewhere() (out []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for node, devices := range p.elsewhere {
		if k := p.kernels[node]; k != nil && k.there { // else it has gone without a word
			out = slices.AppendSeq(out, maps.Keys(devices))
		}
	}
	return out
}

// PresentAt returns the devices that are connected to each node, in order, by the kernels of the
// nodes.
func (p *Plane) PresentAt() map[string][]string {
	out := map[string][]string{}
	p.mu.Lock()
	for node, devices := range p.elsewhere {
		if k := p.kernels[node]; k != nil && k.there { // else it has gone without a word
			out[node] = slices.Sorted(maps.Keys(devices))
		}
	}
	p.mu.Unlock()
	if p.run.Server != nil {
		out[p.cfg.KernelID] = slices.Sorted(slices.Values(p.run.Server.Present()))
	}
	return out
}

// Presence tells the lobby, on every node, that a device has come or gone. A device that is
// connected to another node as well stays present.
func (p *Plane) Presence(device string, there bool) {
	if !slices.Contains(p.presentElsewhere(), device) {
		p.showPresence(device, there)
	}
	p.tellNodes(evPresence, news{Device: device, There: there})
}

// ending is an agent that was killed, on whichever node.
type ending struct{ kernel, id, reason string }

// kill has the kernel of an agent end it, unless it has said so itself; telling is held.
func (p *Plane) kill(e control.Entry, m agents.KillAgent) {
	var k killed
	a, there := p.agents.Get(m.ID)
	if !there || e.Decode(&k) != nil || k.Own {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.started { // the entry is an old one
		return
	}
	p.endings = append(p.endings, ending{a.KernelID, m.ID, m.Reason})
	select {
	case p.ended <- struct{}{}:
	default: // it will look anyway
	}
}

// endAgents ends the agents that were killed.
func (p *Plane) endAgents() {
	p.mu.Lock()
	all := p.endings
	p.endings = nil
	p.mu.Unlock()
	for _, e := range all {
		if e.kernel == p.cfg.KernelID {
			p.run.Loop.Cancel(e.id)
			continue
		}
		p.tell(e.kernel, killEvent(e.id, e.reason, time.Now()))
	}
}
