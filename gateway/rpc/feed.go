package rpc

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/gateway/registry"
	"github.com/yaya-ai/yaya/internal/control"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
)

// chatSkill is the skill of an agent that was not started for another.
const chatSkill = "chat"

// feed makes the sessions of this kernel agents.
func (p *Plane) feed(ctx context.Context) error {
	kinds := []string{
		event.TurnWasStarted.Name(), event.TurnWasCompleted.Name(), event.TurnHasFailed.Name(), event.TurnWasCancelled.Name(), event.SessionWasArchived.Name(),
	}
	sub, err := p.run.Bus.Subscribe(bus.SubscribeOptions{Name: "agents"}, kinds, p.onEvent)
	if err != nil {
		return err
	}
	p.subs = append(p.subs, sub)
	p.reconcile(ctx) // what a crash has left running does not run
	return nil
}

func (p *Plane) onEvent(ctx context.Context, ev event.Event) error {
	id := ev.SessionID
	switch e := ev.Payload.(type) {
	case event.TurnStarted:
		if err := p.enrol(ctx, "", id, chatSkill, nil); err != nil {
			return err
		}
		return p.note(ctx, id, registry.Running, map[string]any{"turn_id": e.TurnID, "model": e.Model})
	case event.TurnCompleted:
		return p.note(ctx, id, registry.Idle, map[string]any{"turn_id": nil, "error": nil})
	case event.TurnCancelled:
		return p.note(ctx, id, registry.Idle, map[string]any{"turn_id": nil, "error": nil})
	case event.TurnFailed:
		return p.note(ctx, id, registry.Failed, map[string]any{"turn_id": nil, "error": cut(e.Error)})
	case event.SessionArchived:
		return p.gone(ctx, e.SessionID, "archived")
	}
	return nil
}

// note writes how one of this kernel's agents is; one that is none (any more) stays
// so.
func (p *Plane) note(ctx context.Context, id, status string, patch map[string]any) error {
	_, err := p.append(ctx, evUpdated, "", id, updated{status, patch}, p.own(id))
	if errors.Is(err, errNotThere) {
		return nil
	}
	return err
}

func (p *Plane) own(id string) func() error {
	return func() error {
		if a, ok := p.agents.Get(id); !ok || a.KernelID != p.cfg.KernelID {
			return errNotThere
		}
		return nil
	}
}

// enrol registers one of this kernel's agents.
func (p *Plane) enrol(ctx context.Context, actor, id, skill string, meta map[string]any) error {
	if strings.HasPrefix(id, event.BridgePrefix) || id == event.KernelSession {
		return nil
	}
	if parent, _, sub := strings.Cut(id, "::agent::"); sub {
		meta = map[string]any{"parent": parent}
	}
	p.evict(ctx)
	_, err := p.append(ctx, evRegistered, actor, id, registered{p.cfg.KernelID, skill, meta}, func() error {
		if _, ok := p.agents.Get(id); ok {
			return errThere
		}
		return nil
	})
	if errors.Is(err, errThere) {
		return nil
	}
	return err
}

var (
	errThere    = errors.New("it is there")
	errNotThere = errors.New("it is not there")
)

// gone removes one of this kernel's agents, if it is there.
func (p *Plane) gone(ctx context.Context, id, reason string) error {
	_, err := p.append(ctx, evKilled, "", id, killed{reason}, p.own(id))
	if errors.Is(err, errNotThere) {
		return nil
	}
	return err
}

// evict makes room in the registry: whoever has been idle for longest.
func (p *Plane) evict(ctx context.Context) {
	if p.agents.Count("") < maxAgents {
		return
	}
	all := slices.DeleteFunc(p.agents.List(), func(a registry.Agent) bool { return a.KernelID != p.cfg.KernelID || a.Status == registry.Running })
	slices.SortFunc(all, func(x, y registry.Agent) int { return int(x.Index - y.Index) })
	for _, a := range all[:min(len(all), maxAgents/100)] {
		if err := p.gone(ctx, a.ID, "evicted"); err != nil {
			p.cfg.Log.Warn().Err(err).Str("agent", a.ID).Msg("an idle agent could not be removed")
			return
		}
	}
}

// reconcile brings the registry to what is so: events may have been missed, and a
// crash ends turns without one.
func (p *Plane) reconcile(ctx context.Context) {
	for _, a := range p.agents.List() {
		if a.KernelID != p.cfg.KernelID {
			continue
		}
		state, turn := p.run.Loop.State(a.ID)
		running := state != loop.Idle
		var err error
		switch {
		case a.Status == registry.Running && !running:
			err = p.note(ctx, a.ID, registry.Idle, map[string]any{"turn_id": nil})
		case a.Status != registry.Running && running:
			err = p.note(ctx, a.ID, registry.Running, map[string]any{"turn_id": turn})
		}
		if err != nil {
			p.cfg.Log.Warn().Err(err).Str("agent", a.ID).Msg("how an agent is could not be written")
			return
		}
	}
}

// Reporter takes what becomes of this kernel's agents, to report it elsewhere.
type Reporter interface {
	Register(id, skill string, meta map[string]any)
	Update(id, status string, patch map[string]any)
	Kill(id, reason string)
}

// Report tells r of this kernel's agents as they are, and then of everything that
// becomes of them, until ctx ends.
func (p *Plane) Report(ctx context.Context, r Reporter) error {
	from := p.run.Log.State().Last + 1
	ours := map[string]bool{}
	for _, a := range p.agents.List() {
		if a.KernelID == p.cfg.KernelID {
			ours[a.ID] = true
			r.Register(a.ID, a.Skill, a.Meta)
			r.Update(a.ID, a.Status, a.Context)
		}
	}
	return p.run.Log.Follow(ctx, from, func(e control.Entry) error {
		ev, ok, err := lobbyEvent(e)
		if err != nil || !ok {
			return err
		}
		switch m := ev.Payload.(type) {
		case registry.RegisterAgent:
			if ours[m.ID] = m.KernelID == p.cfg.KernelID; ours[m.ID] {
				r.Register(m.ID, m.Skill, m.Meta)
			}
		case registry.UpdateAgent:
			if ours[m.ID] {
				r.Update(m.ID, m.Status, m.ContextPatch)
			}
		case registry.KillAgent:
			if ours[m.ID] {
				r.Kill(m.ID, m.Reason)
				delete(ours, m.ID)
			}
		}
		return nil
	})
}
