// Package agent_tool offers the tool agent: a model hands a task to a sub-agent,
// which works in a fork of its session and returns its last message.
//
// A sub-agent's session is <parent>::agent::<8 hexadecimal digits>; it starts with its parent's
// conversation and writes to its own tape. Starting one needs approval, and its own calls need
// the same approvals. The depth, the number, the duration and the steps of sub-agents are
// bounded.
//
// Files describe sub-agents: their instructions, their model, and the tools that they get at
// most. A note tells models which there are; the call of one is prepared, so that its instructions are
// those of the file that the question named.
package agent_tool //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/loop"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Session is the session of the plugin's own events.
const Session = event.BridgePrefix + "agent-tool"

// Bounds of sub-agents. Depth and wall-clock time can be configured
// (agent_tool.max_depth, agent_tool.max_wall).
const (
	DefaultMaxDepth = 5
	DefaultMaxWall  = 10 * time.Minute
	MaxFanOut       = 8  // of one session at a time
	MaxPerRoot      = 32 // of one root session at a time
	maxGoal         = 64 << 10
)

// The events of sub-agents.
type (
	// Started is x.agent.subagent.started.
	Started struct {
		ParentID string   `json:"parent_id"`
		ChildID  string   `json:"child_id"`
		Goal     string   `json:"goal"`
		Strategy string   `json:"strategy"`
		Tools    []string `json:"tools"` // null if there is no list
	}
	// Completed is x.agent.subagent.completed.
	Completed struct {
		ChildID           string   `json:"child_id"`
		FinalText         string   `json:"final_text"`
		StepsUsed         int      `json:"steps_used"`
		ForbiddenToolHits []string `json:"forbidden_tool_hits"`
	}
	// Failed is x.agent.subagent.failed; Reason is "timeout" or "cancelled".
	Failed struct {
		ChildID string `json:"child_id"`
		Reason  string `json:"reason"`
	}
	// Narrowed is x.agent.allowlist.narrowed: calls outside the list of tools are refused, and
	// reported (Y-198).
	Narrowed struct {
		ChildID   string   `json:"child_id"`
		Attempted []string `json:"attempted"`
		Allowed   []string `json:"allowed"`
	}
)

// Sessions forks sessions. The fork can call the named tools of those that its parent can call; nil
// names all of them.
type Sessions interface {
	ForkAgent(parent, child string, tools []string) (*session.Session, error)
}

// Turns runs them.
type Turns interface {
	Run(ctx context.Context, p loop.Prompt) (loop.Outcome, error)
	SetStrategy(session, strategy string)
	Release(session string)
	StrategyOf(session string) string
}

// Plugin is the tool's plugin.
type Plugin struct {
	sessions Sessions
	turns    Turns
	files    Files
	context  atomic.Pointer[plugin.Context] // since it is loaded

	mu     sync.Mutex
	active map[string]int // running sub-agents, by parent and by root
}

// New returns the plugin.
func New(sessions Sessions, turns Turns, files Files) *Plugin {
	return &Plugin{sessions: sessions, turns: turns, files: files, active: map[string]int{}}
}

// Manifest implements [plugin.Plugin].
func (*Plugin) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: "agent-tool", Version: "0.1.0", Category: plugin.Tool}
}

// Subscriptions implements [plugin.Plugin].
func (*Plugin) Subscriptions() []string { return []string{event.ConfigWasUpdated.Name()} }

// OnEvent implements [plugin.Plugin]: the tool tells which models there are to choose from.
func (p *Plugin) OnEvent(_ context.Context, ev event.Event, c plugin.Context) error {
	if changed, ok := ev.Payload.(event.ConfigUpdated); ok && changed.Key == modelsKey {
		return p.offer(c, c.RenewTool)
	}
	return nil
}

// OnUnload implements [plugin.Plugin]. Sub-agents that run end with the turns
// that called them.
func (p *Plugin) OnUnload(context.Context, plugin.Context) error {
	p.context.Store(nil) // no note names what nobody offers
	return nil
}

// OnLoad implements [plugin.Plugin].
func (p *Plugin) OnLoad(_ context.Context, c plugin.Context) error {
	p.context.Store(&c)
	return p.offer(c, c.RegisterTool)
}

// offer makes the tool, whose description names the models that the settings have now.
func (p *Plugin) offer(c plugin.Context, enter func(tool.Tool) error) error {
	description := "Hands a task to a sub-agent that knows this conversation and works on its own; returns its final message. Use it for work that would fill this conversation with detail. The note on sub-agents lists those that are made for a task."
	if models := allowedModels(c); len(models) > 0 {
		description += " Models that it can use instead of this session's: " + strings.Join(models, ", ") + "."
	}
	t, err := tool.New(tool.Definition{
		Name: "agent", Title: "Sub-agent", Kind: tool.KindExec, RequiresApproval: true, Delegates: true, ForAgents: true, Timeout: tool.OwnTimeout,
		Description: description,
	}, func(ctx context.Context, call tool.Call, a args) (tool.Result, error) { return p.run(ctx, c, call, a) })
	if err != nil {
		return err
	}
	return enter(agentTool{t, p, c})
}

// modelsKey is the setting with the models that sub-agents may use beside that of their session.
const modelsKey = "model.agent"

func allowedModels(c plugin.Context) (models []string) {
	if v := c.Kernel(modelsKey); v == nil || json.Unmarshal(v, &models) != nil {
		return nil
	}
	return models
}

// mayUse returns why a sub-agent cannot have a model.
func mayUse(c plugin.Context, model string) error {
	models := allowedModels(c)
	switch {
	case model == "" || slices.Contains(models, model):
		return nil
	case len(models) == 0:
		return fmt.Errorf("sub-agents use the model of their session: the setting %s names no others", modelsKey)
	}
	return fmt.Errorf("sub-agents cannot use the model %.80q: the setting %s has %s", model, modelsKey, strings.Join(models, ", "))
}

// agentTool obeys its context, and writes its own prompt.
type agentTool struct {
	tool.Tool
	p *Plugin
	c plugin.Context
}

func (agentTool) ObeysContext() {}

// Touches implements [tool.Toucher]: a sub-agent acts through its own calls.
func (agentTool) Touches(tool.Call) []string { return nil }

// ApprovalBrief implements [tool.ApprovalBriefer].
func (agentTool) ApprovalBrief(call tool.Call) string {
	var a args
	if json.Unmarshal(call.Args, &a) != nil {
		return "start a sub-agent"
	}
	what := "a sub-agent"
	if a.Agent != "" {
		what = "the sub-agent " + a.Agent
	}
	if c, err := of(call, a); err == nil {
		a.Model = c.model // of the file, unless the call names one
	}
	if a.Model != "" {
		what += " with " + a.Model
	}
	return "start " + what + ": " + a.Goal
}

type args struct {
	Goal           string   `json:"goal" jsonschema:"the task, with everything that the sub-agent needs to know beyond this conversation"`
	Agent          string   `json:"agent,omitempty" jsonschema:"name of a sub-agent from the note on them: it works by its own instructions, with its own tools"`
	Strategy       string   `json:"strategy,omitempty" jsonschema:"id of the strategy to use, this session's by default"`
	Tools          []string `json:"tools,omitempty" jsonschema:"names of the tools that it gets, of those that you have; all of them by default, none for an empty list"`
	Model          string   `json:"model,omitempty" jsonschema:"one of the models in the description of this tool, this session's by default"`
	MaxSteps       int      `json:"max_steps,omitempty" jsonschema:"model calls at most"`
	MaxWallSeconds float64  `json:"max_wall_seconds,omitempty" jsonschema:"seconds at most"`
}

// depth returns the number of generations above a session.
func depth(id string) int { return strings.Count(id, event.AgentSeparator) }

// unfit returns why a call starts no sub-agent, whatever its file says.
func unfit(c plugin.Context, call tool.Call, a args) *tool.Failure {
	limit := intSetting(c, "agent_tool.max_depth", DefaultMaxDepth)
	if d := depth(call.SessionID); d >= limit {
		return &tool.Failure{Kind: tool.ErrRejected, Err: fmt.Errorf("sub-agents may nest %d deep, and this is generation %d", limit, d)}
	}
	if strings.TrimSpace(a.Goal) == "" || len(a.Goal) > maxGoal {
		return &tool.Failure{Kind: tool.ErrValidation, Err: fmt.Errorf("the goal must have between 1 and %d bytes", maxGoal)}
	}
	if err := mayUse(c, a.Model); err != nil {
		return &tool.Failure{Kind: tool.ErrValidation, Err: err}
	}
	return nil
}

func (p *Plugin) run(ctx context.Context, c plugin.Context, call tool.Call, a args) (tool.Result, error) {
	chosen, err := of(call, a)
	if err != nil {
		return tool.Result{}, err
	}
	a.Tools, a.Model = chosen.tools, chosen.model
	if why := unfit(c, call, a); why != nil { // settings may have changed since the question
		return tool.Fail(why.Kind, "%v", why.Err), nil
	}
	goal := chosen.instructed(a.Goal)
	root := event.Root(call.SessionID)
	release, err := p.claim(call.SessionID, root)
	if err != nil {
		return tool.Fail(tool.ErrRejected, "%v", err), nil
	}
	defer release()
	u := uuid.New()
	child := call.SessionID + event.AgentSeparator + hex.EncodeToString(u[:4])
	forked, err := p.sessions.ForkAgent(call.SessionID, child, a.Tools)
	if err == nil && a.Model != "" {
		err = forked.SetModel(ctx, a.Model)
	}
	if err != nil {
		return tool.Result{}, fmt.Errorf("fork: %w", err)
	}
	if a.Tools, err = forked.Tools(); err != nil {
		return tool.Result{}, err
	}
	strategy := a.Strategy
	if strategy == "" {
		strategy = p.turns.StrategyOf(call.SessionID)
	}
	p.turns.SetStrategy(child, strategy)
	defer p.turns.Release(child)
	if err := c.Emit("x.agent.subagent.started", Session, Started{call.SessionID, child, a.Goal, strategy, a.Tools}); err != nil {
		return tool.Result{}, err
	}
	wall := durationSetting(c, "agent_tool.max_wall", DefaultMaxWall)
	if own := time.Duration(a.MaxWallSeconds * float64(time.Second)); own > 0 {
		wall = min(wall, own)
	}
	ctx, cancel := context.WithTimeout(ctx, wall)
	defer cancel()
	out, err := p.turns.Run(ctx, loop.Prompt{SessionID: child, Text: goal, MaxSteps: a.MaxSteps})
	if err != nil {
		return tool.Result{}, errors.Join(fmt.Errorf("sub-agent %s: %w", child, err), c.Emit("x.agent.subagent.failed", Session, Failed{child, "cancelled"}))
	}
	return p.report(ctx, c, child, a, out)
}

// report reports the outcome of a sub-agent, on the bus and to its caller.
func (p *Plugin) report(ctx context.Context, c plugin.Context, child string, a args, out loop.Outcome) (tool.Result, error) {
	hits := []string{}
	for _, tc := range out.Calls {
		if a.Tools != nil && !slices.Contains(a.Tools, tc.Name) && !slices.Contains(hits, tc.Name) {
			hits = append(hits, tc.Name)
		}
	}
	var errs []error
	if len(hits) > 0 {
		errs = append(errs, c.Emit("x.agent.allowlist.narrowed", Session, Narrowed{child, hits, a.Tools}))
	}
	if out.Err != nil {
		reason := "cancelled"
		kind := tool.ErrCancelled
		switch {
		case errors.Is(ctx.Err(), context.DeadlineExceeded):
			reason, kind = "timeout", tool.ErrTimeout
		case out.Kind != "cancelled":
			kind = tool.ErrTool
		}
		errs = append(errs, c.Emit("x.agent.subagent.failed", Session, Failed{child, reason}))
		return tool.Fail(kind, "the sub-agent %s did not finish (%s): %v", child, reason, out.Err), errors.Join(errs...)
	}
	errs = append(errs, c.Emit("x.agent.subagent.completed", Session, Completed{child, out.Text, out.Steps, hits}))
	res := tool.OK("sub-agent finished in "+worded.Count(out.Steps, "step", "steps"), tool.Text(out.Text))
	return res, errors.Join(errs...)
}

// claim registers a sub-agent, within the bounds.
func (p *Plugin) claim(parent, root string) (release func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, all := "of "+parent, "below "+root
	if p.active[of] >= MaxFanOut {
		return nil, fmt.Errorf("this session already runs %d sub-agents", MaxFanOut)
	}
	if p.active[all] >= MaxPerRoot {
		return nil, fmt.Errorf("%d sub-agents are already running", MaxPerRoot)
	}
	p.active[of]++
	p.active[all]++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, k := range []string{of, all} {
			if p.active[k]--; p.active[k] == 0 {
				delete(p.active, k)
			}
		}
	}, nil
}

func intSetting(c plugin.Context, key string, otherwise int) int {
	n := otherwise
	if v := c.Kernel(key); v != nil && json.Unmarshal(v, &n) != nil {
		return otherwise
	}
	return n
}

func durationSetting(c plugin.Context, key string, otherwise time.Duration) time.Duration {
	var s string
	if v := c.Kernel(key); v == nil || json.Unmarshal(v, &s) != nil {
		return otherwise
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return otherwise
	}
	return d
}
