package plane

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/plane/agents"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/kernel/loop"
)

// Spawned is an agent that was begun.
type Spawned struct {
	ID       string
	KernelID string
	TurnID   string // of its first message, "" without one
}

// Spawn begins a session of this kernel that is there for a skill, "" for chat, and
// sends it its first message, if prompt is not "". The caller has checked
// [auth.SessionsWrite].
func (p *Plane) Spawn(ctx context.Context, who auth.Principal, skill, prompt string) (Spawned, error) {
	if skill == "" {
		skill = chatSkill
	}
	if len(skill) > maxSkill {
		return Spawned{}, &Error{Code: CodeParams, Text: "the skill's name is too long"}
	}
	id := "sess_" + rand.Text()
	if err := p.run.begin(who, id); err != nil {
		return Spawned{}, err
	}
	if err := p.enroll(ctx, who.Actor(), id, skill, map[string]any{"spawned_by": who.Actor()}); err != nil {
		return Spawned{}, err
	}
	out := Spawned{ID: id, KernelID: p.cfg.KernelID}
	if prompt != "" {
		a, err := p.run.Loop.Submit(ctx, loop.Prompt{SessionID: id, Text: prompt})
		if err != nil {
			return Spawned{}, err
		}
		out.TurnID = a.TurnID
	}
	return out, nil
}

// Agent returns one agent, or an [Error].
func (p *Plane) Agent(id string) (agents.Agent, error) {
	a, ok := p.agents.Get(id)
	if !ok {
		return agents.Agent{}, noAgent(id)
	}
	return a, nil
}

// Kill ends an agent's turn, and it is not an agent any longer; its history stays. The
// caller has checked [auth.AgentsKill].
func (p *Plane) Kill(ctx context.Context, who auth.Principal, id, reason string) error {
	_, err := p.append(ctx, evKilled, who.Actor(), id, killed{clip(reason), false}, func() error {
		_, err := p.Agent(id)
		return err
	})
	return err
}

func killEvent(id, reason string, at time.Time) wire.Event {
	return wire.Event{Name: "kill_agent", Payload: agents.KillAgent{Type: "kill_agent", ID: id, Reason: reason, Time: control.Stamp(at)}}
}

// tell sends an event to an attached kernel, if it is there.
func (p *Plane) tell(kernel string, e wire.Event) {
	p.mu.Lock()
	var send func(wire.Event)
	if k := p.kernels[kernel]; k != nil {
		send = k.send
	}
	p.mu.Unlock()
	if send != nil {
		send(e)
	}
}
