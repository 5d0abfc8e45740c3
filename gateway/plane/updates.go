package plane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/plane/agents"
	"github.com/yaya-ai/yaya/gateway/wire"
)

// perEntry is how many indexes of the lobby an entry of the control log provides: its own,
// which is its number times perEntry, and those of the updates that follow it. All agents
// fit behind one entry, and 2^53, where JavaScript's integers end, is nine billion entries
// away.
const perEntry = 1_000_000

var errUsedUp = errors.New("the indexes of the newest entry are used up")

// evCounted is the entry that counts the updates of agents.
const evCounted = "agent_updates_counted"

// tally is the updates of a kernel's agents that no entry has counted yet.
type tally struct {
	since    time.Time
	statuses map[string]int64
}

// counted is the payload of evCounted; the target is the kernel.
type counted struct {
	Since    string           `json:"since"`
	Statuses map[string]int64 `json:"statuses"`
}

// update changes how an agent of a kernel is, and tells the lobby. Every turn does so
// twice, so the control log has no entry of it: one a day counts the updates. An entry is
// also needed, and waited for, when the newest one has no index left; if it cannot be
// written, the agent stays as it is, and the error wraps [control.ErrUnavailable]. A
// kernel that does not have the agent gets errNotThere.
func (p *Plane) update(ctx context.Context, kernel, id, status string, patch map[string]any) (index int64, err error) {
	for {
		index, err := p.tryUpdate(kernel, id, status, patch, true)
		if !errors.Is(err, errUsedUp) {
			return index, err
		}
		if err := p.count(ctx, kernel, p.usedUp); err != nil && !errors.Is(err, errThere) {
			return 0, fmt.Errorf("update agent %q: %w: %w", clip(id), errUsedUp, err)
		}
	}
}

// tryUpdate is one attempt at update. One of another node is not counted here.
func (p *Plane) tryUpdate(kernel, id, status string, patch map[string]any, here bool) (index int64, err error) {
	p.telling.Lock()
	defer p.telling.Unlock()
	a, ok := p.agents.Get(id)
	if !ok || a.KernelID != kernel {
		return 0, errNotThere
	}
	if (p.at+1)%perEntry == 0 {
		return 0, errUsedUp
	}
	p.at++
	now := time.Now()
	m := agents.UpdateAgent{Type: "update_agent", ID: id, Status: status, ContextPatch: orEmpty(patch), Index: p.at, Time: control.Stamp(now)}
	p.agents.Update(m)
	if here {
		p.tally(kernel, now).statuses[status]++
		p.tellNodes(evStatus, news{Kernel: kernel, Agent: id, Status: status, Patch: patch})
	}
	p.announce(lobbyTopic, updateEvent(m))
	return m.Index, nil
}

func updateEvent(m agents.UpdateAgent) wire.Event {
	return wire.Event{Name: "update_agent", Payload: m, Seq: m.Index}
}

// usedUp returns errThere if the newest entry has an index left.
func (p *Plane) usedUp() error {
	p.telling.Lock()
	defer p.telling.Unlock()
	if (p.at+1)%perEntry != 0 {
		return errThere
	}
	return nil
}

// renew gives every agent an index of this run, so that clients get its present state:
// the log does not have the status and the context that they have seen.
func (p *Plane) renew() {
	p.telling.Lock()
	defer p.telling.Unlock()
	p.at = p.agents.Renew(p.at)
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

// tally returns the tally of a kernel, since that time or before; telling is held.
func (p *Plane) tally(kernel string, since time.Time) *tally {
	t := p.counts[kernel]
	if t == nil {
		t = &tally{since, map[string]int64{}}
		p.counts[kernel] = t
	}
	if since.Before(t.since) {
		t.since = since
	}
	return t
}

// count writes the updates of a kernel's agents that no entry has counted yet. After an
// error, of check too, they still wait to be counted.
func (p *Plane) count(ctx context.Context, kernel string, check func() error) error {
	p.telling.Lock()
	t := p.tally(kernel, time.Now())
	delete(p.counts, kernel)
	p.telling.Unlock()
	_, err := p.append(ctx, evCounted, p.cfg.KernelID, kernel, counted{control.Stamp(t.since), t.statuses}, check)
	if err == nil {
		return nil
	}
	p.telling.Lock()
	defer p.telling.Unlock()
	for status, n := range t.statuses {
		p.tally(kernel, t.since).statuses[status] += n
	}
	return err
}

// sumUp writes the counts of a day that is over, or with all those that there are.
func (p *Plane) sumUp(ctx context.Context, now time.Time, all bool) {
	var due []string
	p.telling.Lock()
	for kernel, t := range p.counts {
		if all || t.since.UTC().YearDay() != now.UTC().YearDay() {
			due = append(due, kernel)
		}
	}
	p.telling.Unlock()
	for _, kernel := range due {
		if err := p.count(ctx, kernel, nil); err != nil {
			p.cfg.Log.Warn().Err(err).Str("kernel", kernel).Msg("the number of updates of agents could not be written")
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

// reporting is a reporter, with the agents that were reported to it.
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
