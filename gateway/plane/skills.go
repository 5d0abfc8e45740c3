package plane

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/plane/measure"
	"github.com/yaya-ai/yaya/gateway/wire"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Limits of invocations.
const (
	invokeDefault = 30 * time.Second
	invokeMost    = 60 * time.Second
	invokesAtMost = 60 // in a minute, of one principal
	maxCalls      = 1000
	maxFitness    = 1000
)

var errNoHandler = errors.New("No handler for skill") //nolint:staticcheck // the protocol's words

// Invocation is the params of skill.invoke.
type Invocation struct {
	Skill     string          `json:"skill"`
	Payload   json.RawMessage `json:"payload,omitempty"`
	TimeoutMS int             `json:"timeout_ms,omitempty"`
	// RequestID is the id that a skill_error about it names; made up if it is "".
	RequestID string `json:"request_id,omitempty"`
}

// Invoked is its result.
type Invoked struct {
	Skill     string          `json:"skill"`
	HandlerID string          `json:"handler_id"`
	Result    json.RawMessage `json:"result"`
	RequestID string          `json:"request_id"`
}

// SkillInvoke is skill_invoke on kernel:{id}, to the kernel that is to do it.
type SkillInvoke struct {
	Type      string          `json:"type"` // "skill_invoke"
	RequestID string          `json:"request_id"`
	Skill     string          `json:"skill"`
	Payload   json.RawMessage `json:"payload"`
	TimeoutMS int64           `json:"timeout_ms"`
	Actor     string          `json:"actor"` // who asked
}

// skillResult is that kernel's answer.
type skillResult struct {
	Type      string          `json:"type,omitempty"`
	RequestID string          `json:"request_id"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     string          `json:"error,omitempty"`
}

// call is an invocation that waits for another kernel.
type call struct {
	kernel string
	answer chan skillResult // one fits
}

// rate counts a principal's invocations.
type rate struct {
	since time.Time
	n     int
}

func (p *Plane) limited(actor string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.rates[actor]
	if r == nil || now.Sub(r.since) >= time.Minute {
		for k, old := range p.rates {
			if now.Sub(old.since) >= time.Minute {
				delete(p.rates, k)
			}
		}
		r = &rate{since: now}
		p.rates[actor] = r
	}
	r.n++
	return r.n > invokesAtMost
}

// invokePush is skill.invoke on kernel:{id}.
func (p *Plane) invokePush(c wire.Client, payload json.RawMessage) (any, error) {
	var in Invocation
	if err := wire.Decode(payload, &in); err != nil {
		return nil, err
	}
	return wire.Later(func(ctx context.Context) (any, error) {
		out, err := p.Invoke(ctx, c.Principal, in)
		if err != nil {
			return nil, problem(err)
		}
		return out, nil
	}), nil
}

// Invoke has a skill done by whoever has it: this kernel, or one that is attached.
// An invocation that cannot be delivered is a dead letter in the lobby. It needs
// [auth.SkillsInvoke].
func (p *Plane) Invoke(ctx context.Context, who auth.Principal, in Invocation) (Invoked, error) {
	if err := auth.Allow(who, auth.SkillsInvoke); err != nil {
		return Invoked{}, err
	}
	timeout := time.Duration(in.TimeoutMS) * time.Millisecond
	if timeout == 0 {
		timeout = invokeDefault
	}
	if in.Skill == "" || len(in.Skill) > maxSkill || len(in.RequestID) > 64 || timeout < 0 || timeout > invokeMost {
		return Invoked{}, &Error{Code: CodeParams, Text: "params are {skill, payload, timeout_ms ≤ 60000}"}
	}
	if in.RequestID == "" {
		in.RequestID = "req_" + rand.Text()
	}
	if len(in.Payload) == 0 {
		in.Payload = json.RawMessage("{}")
	}
	begun := time.Now()
	if p.limited(who.Actor(), begun) {
		return Invoked{}, p.dead(in, in.Skill, &Error{CodeLimited, RateLimited, "more than 60 invocations in a minute"})
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var out Invoked
	var err error
	if slices.Contains(p.run.Exports(), in.Skill) {
		out = Invoked{in.Skill, p.cfg.KernelID, nil, in.RequestID}
		out.Result, err = p.run.Invoke(ctx, tool.Caller{Principal: who.Name(), Has: who.Has}, in.Skill, in.Payload)
	} else {
		out, err = p.remote(ctx, who, in, timeout)
	}
	if errors.Is(err, errNoHandler) {
		return Invoked{}, p.dead(in, in.Skill, &Error{CodeParams, HandlerUnavailable, fmt.Sprintf("%v: %s", errNoHandler, in.Skill)})
	}
	p.run.Mix.Add("skill " + in.Skill)
	p.evolve(in.Skill, out.HandlerID, err == nil, time.Since(begun))
	switch e, ok := errors.AsType[*Error](err); {
	case ok:
		return Invoked{}, p.dead(in, out.HandlerID, e)
	case errors.Is(err, context.DeadlineExceeded):
		return Invoked{}, p.dead(in, out.HandlerID, &Error{CodeTimeout, Timeout, fmt.Sprintf("skill %s has not answered within %v", in.Skill, timeout)})
	case err != nil:
		return Invoked{}, &Error{Code: CodeFailed, Text: clip(err.Error())}
	}
	return out, nil
}

// dead tells the lobby what could not be delivered.
func (p *Plane) dead(in Invocation, handler string, e *Error) error {
	p.run.Server.Publish(lobbyTopic, wire.Event{Name: "skill_error", Payload: SkillError{
		Type: "skill_error", RequestID: in.RequestID, HandlerID: handler, Reason: e.reason, Time: control.Stamp(time.Now()),
	}})
	return e
}

// remote has an attached kernel do it.
func (p *Plane) remote(ctx context.Context, who auth.Principal, in Invocation, timeout time.Duration) (Invoked, error) {
	k, err := p.findBySkill(in.Skill)
	if err != nil {
		return Invoked{}, err
	}
	id := "inv_" + rand.Text()
	c := &call{kernel: k.id, answer: make(chan skillResult, 1)}
	p.mu.Lock()
	send, full := k.send, len(p.calls) >= maxCalls
	if !full {
		p.calls[id] = c
	}
	p.mu.Unlock()
	out := Invoked{in.Skill, k.id, nil, in.RequestID}
	if full || send == nil {
		return out, &Error{CodeUnavailable, HandlerUnavailable, "too many invocations wait"}
	}
	defer func() {
		p.mu.Lock()
		delete(p.calls, id)
		p.mu.Unlock()
	}()
	send(wire.Event{Name: "skill_invoke", Payload: SkillInvoke{"skill_invoke", id, in.Skill, in.Payload, timeout.Milliseconds(), who.Actor()}})
	select {
	case r := <-c.answer:
		switch {
		case r.Type == abandoned:
			return out, &Error{CodeUnavailable, HandlerUnavailable, "the kernel that had it has gone"}
		case r.Error != "":
			return out, errors.New(r.Error)
		}
		out.Result = r.Result
		return out, nil
	case <-ctx.Done():
		return out, ctx.Err()
	}
}

// abandoned is the type of an answer that will never come.
const abandoned = "abandoned"

// abandon answers what a kernel that has gone will not answer.
func (p *Plane) abandon(kernel string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.calls {
		if c.kernel == kernel {
			select {
			case c.answer <- skillResult{Type: abandoned}:
			default:
			}
		}
	}
}

// result is skill_result of a kernel. Only the one that was asked may answer.
func (p *Plane) result(kernel string, payload json.RawMessage) (any, error) {
	var r skillResult
	if err := wire.Decode(payload, &r); err != nil {
		return nil, err
	}
	if r.Type == abandoned {
		return nil, wire.Refuse("type is skill_result")
	}
	p.mu.Lock()
	c := p.calls[r.RequestID]
	p.mu.Unlock()
	if c == nil || c.kernel != kernel {
		return nil, wire.Refuse("nobody waits for that")
	}
	if len(r.Result) == 0 {
		r.Result = json.RawMessage("null")
	}
	select {
	case c.answer <- r:
		return nil, nil //nolint:nilnil // {}
	default:
		return nil, wire.Refuse("it has been answered")
	}
}

// evolve measures a skill, and says so when it has become a good or a bad one.
func (p *Plane) evolve(skill, kernel string, ok bool, took time.Duration) {
	p.mu.Lock()
	f := p.fitness[skill]
	if f == nil {
		if len(p.fitness) >= maxFitness {
			p.mu.Unlock()
			return
		}
		f = new(measure.Fitness)
		p.fitness[skill] = f
	}
	was := p.promoted[skill]
	p.mu.Unlock()
	verdict, score := f.Add(ok, took)
	var err error
	switch {
	case verdict == measure.Promote && !was:
		_, err = p.append(context.Background(), evPromoted, p.cfg.KernelID, skill, promoted{skill, score, kernel}, nil)
	case verdict == measure.Demote:
		_, err = p.append(context.Background(), evDemoted, p.cfg.KernelID, skill, demoted{fmt.Sprintf("its fitness has fallen to %.2f", score)}, nil)
	}
	if err != nil {
		p.cfg.Log.Warn().Err(err).Str("skill", skill).Msg("what a skill has become could not be written")
	}
}
