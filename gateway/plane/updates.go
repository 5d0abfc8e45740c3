package plane

import (
	"context"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/plane/agents"
	"github.com/yaya-ai/yaya/gateway/wire"
)

// evCounted is the entry that counts the updates of agents.
const evCounted = "agent_updates_counted"

// counts are the updates of agents that no entry has counted yet; telling guards them.
type counts struct {
	since time.Time // zero without one
	of    map[string]map[string]int64
}

// counted is the payload of evCounted; the target is the kernel.
type counted struct {
	Since    string           `json:"since"`
	Statuses map[string]int64 `json:"statuses"`
}

// update changes how an agent of a kernel is, and tells the lobby. Every turn does so
// twice, so the control log has no entry of it: one a day counts the updates. An update
// has the index of the newest entry. It reports whether the kernel has the agent.
func (p *Plane) update(kernel, id, status string, patch map[string]any) (index int64, ok bool) {
	p.telling.Lock()
	defer p.telling.Unlock()
	a, ok := p.agents.Get(id)
	if !ok || a.KernelID != kernel {
		return 0, false
	}
	now := time.Now()
	m := agents.UpdateAgent{
		Type: "update_agent", ID: id, Status: status, ContextPatch: orEmpty(patch), Index: max(p.run.Log.State().Last, a.Index), Time: control.Stamp(now),
	}
	p.agents.Update(m)
	if p.counts.since.IsZero() {
		p.counts.since = now
	}
	if p.counts.of[kernel] == nil {
		p.counts.of[kernel] = map[string]int64{}
	}
	p.counts.of[kernel][status]++
	p.announce(lobbyTopic, wire.Event{Name: "update_agent", Payload: m})
	return m.Index, true
}

// announce publishes a change and reports it; telling is held.
func (p *Plane) announce(topic string, ev wire.Event) {
	if p.run.Server == nil {
		return
	}
	p.run.Server.Publish(topic, ev)
	for r := range p.reporters {
		r.hear(p.cfg.KernelID, ev)
	}
}

// sumUp writes the counts of a day that is over, or with all those that there are.
func (p *Plane) sumUp(ctx context.Context, now time.Time, all bool) {
	p.telling.Lock()
	c := p.counts
	due := !c.since.IsZero() && (all || c.since.UTC().YearDay() != now.UTC().YearDay())
	if due {
		p.counts = counts{of: map[string]map[string]int64{}}
	}
	p.telling.Unlock()
	if !due {
		return
	}
	for kernel, statuses := range c.of {
		if _, err := p.append(ctx, evCounted, p.cfg.KernelID, kernel, counted{control.Stamp(c.since), statuses}, nil); err != nil {
			p.cfg.Log.Warn().Err(err).Str("kernel", kernel).Msg("the number of updates of agents could not be written, and is lost")
		}
	}
}

// Reporter takes what becomes of this kernel's agents, to report it elsewhere. Its
// methods must not block.
type Reporter interface {
	Register(id, skill string, meta map[string]any)
	Update(id, status string, patch map[string]any)
	Kill(id, reason string)
}

// Report tells r of this kernel's agents as they are, and then of everything that
// becomes of them, until ctx ends.
func (p *Plane) Report(ctx context.Context, r Reporter) {
	told := &reporting{Reporter: r, ours: map[string]bool{}}
	p.telling.Lock()
	for _, a := range p.agents.List() {
		if a.KernelID == p.cfg.KernelID {
			told.ours[a.ID] = true
			r.Register(a.ID, a.Skill, a.Meta)
			r.Update(a.ID, a.Status, a.Context)
		}
	}
	p.reporters[told] = struct{}{}
	p.telling.Unlock()
	<-ctx.Done()
	p.telling.Lock()
	delete(p.reporters, told)
	p.telling.Unlock()
}

// reporting is a reporter, with the agents that it was told of.
type reporting struct {
	Reporter
	ours map[string]bool
}

// hear reports an event of the lobby, if it is about an agent of this kernel.
func (r *reporting) hear(kernel string, ev wire.Event) {
	switch m := ev.Payload.(type) {
	case agents.RegisterAgent:
		if r.ours[m.ID] = m.KernelID == kernel; r.ours[m.ID] {
			r.Register(m.ID, m.Skill, m.Meta)
		}
	case agents.UpdateAgent:
		if r.ours[m.ID] {
			r.Update(m.ID, m.Status, m.ContextPatch)
		}
	case agents.KillAgent:
		if r.ours[m.ID] {
			r.Kill(m.ID, m.Reason)
			delete(r.ours, m.ID)
		}
	}
}
