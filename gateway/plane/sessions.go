package plane

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/gateway/plane/agents"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
)

// chatSkill is the skill of an agent that was not started for another.
const chatSkill = "chat"

// watch makes the sessions of this kernel agents.
func (p *Plane) watch(ctx context.Context) error {
	kinds := []string{
		event.TurnWasStarted.Name(), event.TurnWasCompleted.Name(), event.TurnHasFailed.Name(), event.TurnWasCancelled.Name(), event.SessionWasArchived.Name(),
		event.SessionWasDeleted.Name(),
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
		if err := p.enroll(ctx, p.cfg.KernelID, id, chatSkill, nil); err != nil {
			return err
		}
		return p.note(ctx, id, agents.Running, map[string]any{"turn_id": e.TurnID, "model": e.Model})
	case event.TurnCompleted:
		return p.note(ctx, id, agents.Idle, map[string]any{"turn_id": nil, "error": nil})
	case event.TurnCancelled:
		return p.note(ctx, id, agents.Idle, map[string]any{"turn_id": nil, "error": nil})
	case event.TurnFailed:
		return p.note(ctx, id, agents.Failed, map[string]any{"turn_id": nil, "error": clip(e.Error)})
	case event.SessionArchived:
		return p.gone(ctx, e.SessionID, "archived")
	case event.SessionDeleted:
		return p.gone(ctx, e.SessionID, "deleted")
	}
	return nil
}

// note tells how one of this kernel's agents is. It does nothing for a session that is
// not an agent, or no longer one.
func (p *Plane) note(ctx context.Context, id, status string, patch map[string]any) error {
	_, err := p.update(ctx, p.cfg.KernelID, id, status, patch)
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

// enroll registers one of this kernel's agents.
func (p *Plane) enroll(ctx context.Context, actor, id, skill string, meta map[string]any) error {
	if strings.HasPrefix(id, event.BridgePrefix) || id == event.KernelSession {
		return nil
	}
	if parent := event.Root(id); parent != id {
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
	errThere    = errors.New("already present")
	errNotThere = errors.New("not present")
)

// gone removes one of this kernel's agents, if it is there.
func (p *Plane) gone(ctx context.Context, id, reason string) error {
	_, err := p.append(ctx, evKilled, p.cfg.KernelID, id, killed{reason, true}, p.own(id))
	if errors.Is(err, errNotThere) {
		return nil
	}
	return err
}

// evict makes room for an agent by removing the one that has been idle for longest.
func (p *Plane) evict(ctx context.Context) {
	if p.agents.Count("") < maxAgents {
		return
	}
	all := slices.DeleteFunc(p.agents.List(), func(a agents.Agent) bool { return a.KernelID != p.cfg.KernelID || a.Status == agents.Running })
	slices.SortFunc(all, func(x, y agents.Agent) int { return int(x.Index - y.Index) })
	for _, a := range all[:min(len(all), maxAgents/100)] {
		if err := p.gone(ctx, a.ID, "evicted"); err != nil {
			p.cfg.Log.Warn().Err(err).Str("agent", a.ID).Msg("an idle agent could not be removed")
			return
		}
	}
}

// reconcile brings the agents to what is so: events may have been missed, and a
// crash ends turns without one. When one cannot be brought there, it leaves the others
// to the next time.
func (p *Plane) reconcile(ctx context.Context) {
	for _, a := range p.agents.List() {
		if a.KernelID != p.cfg.KernelID {
			continue
		}
		state, turn := p.run.Loop.State(a.ID)
		running := state != loop.Idle
		var err error
		switch {
		case a.Status == agents.Running && !running:
			err = p.note(ctx, a.ID, agents.Idle, map[string]any{"turn_id": nil})
		case a.Status != agents.Running && running:
			err = p.note(ctx, a.ID, agents.Running, map[string]any{"turn_id": turn})
		}
		if err != nil {
			p.cfg.Log.Warn().Err(err).Msg("cannot report the state of agents to the lobby")
			return
		}
	}
}
