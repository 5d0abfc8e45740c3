package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/internal/jsonrpc"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// decisions are those of a guard.
var decisions = map[string]tool.Decision{"allow": tool.Allow, "ask": tool.Ask, "deny": tool.Deny}

// Decide implements [plugin.Guard]. Everything that is not an answer is an error, and denies.
func (p *Plugin) Decide(ctx context.Context, q plugin.Question) (tool.Verdict, error) {
	asked := time.Now()
	v, err := p.consulted(ctx, q)
	_, lost := errors.AsType[*lostError](err)
	p.mu.Lock()
	c := p.c
	if err == nil {
		p.decided = time.Now()
	}
	busy := p.decided.After(asked)
	p.mu.Unlock()
	late := ctx.Err() != nil && errors.Is(context.Cause(ctx), plugin.ErrGuardTime)
	switch {
	case err == nil:
		p.succeeded()
	case c == nil, lost: // lost has counted the exit
	case errors.Is(err, errNotReading): // many large calls at once, and not its failure
	case late && busy: // with other questions: whoever asks a lot could unload it
	case ctx.Err() != nil && !late: // the caller has gone
	default:
		p.mu.Lock()
		p.failing = true
		p.mu.Unlock()
		c.Report(fmt.Errorf("guard %s: %w", q.Point, err))
	}
	return v, err
}

func (p *Plugin) consulted(ctx context.Context, q plugin.Question) (v tool.Verdict, err error) {
	cn, err := p.connected(ctx)
	if err != nil {
		return v, err
	}
	deadline, _ := ctx.Deadline()
	params := GuardParams{Point: q.Point, SessionID: q.Session, Prompt: q.Prompt, DeadlineMS: max(time.Until(deadline).Milliseconds(), 0)}
	if q.Point == plugin.GuardTool {
		params.Call = p.guarded(q)
	}
	var began int64
	defer func() { cn.ended(began) }() // a process that is replaced answers first
	raw, err := cn.call(ctx, MethodGuard, params, func(id int64) {
		began = id
		cn.begin(id, nil)
	})
	if failed, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return v, fmt.Errorf("it answered: %w", failed)
	}
	if err != nil {
		return v, err
	}
	return VerdictOf(raw)
}

// VerdictOf reads the result of guard.
func VerdictOf(raw json.RawMessage) (v tool.Verdict, err error) {
	var told GuardResult
	if err := json.Unmarshal(raw, &told); err != nil {
		return v, fmt.Errorf("its answer: %w", err)
	}
	decision, ok := decisions[told.Decision]
	if !ok {
		return v, fmt.Errorf("its decision %.40q is none of allow, ask and deny", told.Decision)
	}
	return tool.Verdict{Decision: decision, Reason: told.Reason}, nil
}

// guarded returns a call as the plugin sees it.
func (p *Plugin) guarded(q plugin.Question) *GuardedCall {
	g := &GuardedCall{
		CallID: q.Call.ID, TurnID: q.Call.Turn, Name: q.Def.Name, Server: q.Def.Identity.Provider, Kind: string(q.Def.Kind),
		Origin: string(q.Call.Origin), Principal: q.Call.Caller.Principal, Args: q.Call.Args,
	}
	p.mu.Lock()
	c := p.c
	p.mu.Unlock()
	if q.Call.Prepared != nil && c != nil {
		g.Shown = c.Secrets().ConcealJSON(slices.Clone(q.Call.Prepared.Shown))
	}
	return g
}
