// Package tool_plan provides propose_plan, with which the agent of a session that plans hands in its
// plan (see kernel/session, [session.Plan]).
//
// A person is always asked about a plan, whatever rules say, and about each one. With their
// approval the mode ends, and the same turn goes on with the work. Without it nothing changes, and
// the model reads the reason.
package tool_plan //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Name is the tool's name.
const Name = "propose_plan"

const (
	// maxPlan bounds a plan, in bytes: a person reads it.
	maxPlan = 32 << 10
	// toRead is the least time for that. approval.timeout is made for commands of a line.
	toRead = 30 * time.Minute
)

// Plugin provides the tool.
type Plugin struct{ sessions *session.Manager }

// New returns the plugin.
func New(sessions *session.Manager) *Plugin { return &Plugin{sessions} }

// Manifest implements [plugin.Plugin].
func (*Plugin) Manifest() plugin.Manifest {
	return plugin.Manifest{Name: "tool-plan", Version: "0.1.0", Category: plugin.Tool}
}

// Subscriptions implements [plugin.Plugin].
func (*Plugin) Subscriptions() []string { return nil }

// OnEvent implements [plugin.Plugin].
func (*Plugin) OnEvent(context.Context, event.Event, plugin.Context) error { return nil }

// OnUnload implements [plugin.Plugin].
func (*Plugin) OnUnload(context.Context, plugin.Context) error { return nil }

// OnLoad implements [plugin.Plugin].
func (p *Plugin) OnLoad(_ context.Context, c plugin.Context) error {
	t, err := tool.New(tool.Definition{
		Name: Name, Title: "Propose a plan", Kind: tool.KindRead, RequiresApproval: true, ForAgents: true,
		Description: "Hands in your plan while the session plans (a note says so): what you will change, in which files, and how you will check it. The user is asked; once they approve, you go on with the work.",
	}, p.propose)
	if err != nil {
		return err
	}
	return c.RegisterTool(proposer{t, p})
}

type args struct {
	Plan string `json:"plan" jsonschema:"the whole plan, in Markdown"`
}

// proposer is the tool.
type proposer struct {
	tool.Tool
	p *Plugin
}

func (proposer) ObeysContext() {}

// ApprovalBrief implements [tool.ApprovalBriefer].
func (proposer) ApprovalBrief(tool.Call) string { return "begin the work with this plan" }

// Prepare implements [tool.Preparer]: nobody is asked about a plan that leads to nothing.
func (t proposer) Prepare(_ context.Context, call tool.Call) (*tool.Prepared, error) {
	var a args
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return nil, &tool.Failure{Kind: tool.ErrValidation, Err: err}
	}
	if strings.TrimSpace(a.Plan) == "" || len(a.Plan) > maxPlan {
		return nil, &tool.Failure{Kind: tool.ErrValidation, Err: fmt.Errorf("the plan has between 1 and %d bytes", maxPlan)}
	}
	if event.Root(call.SessionID) != call.SessionID {
		return nil, &tool.Failure{Kind: tool.ErrRejected, Err: errors.New("a sub-agent hands in no plan: answer with what you have found")}
	}
	mode, err := t.p.sessions.Mode(call.SessionID)
	if err != nil {
		return nil, err
	}
	if mode != session.Plan {
		return nil, &tool.Failure{Kind: tool.ErrRejected, Err: errors.New("this session does not plan: go on with the work, and keep a plan with todo")}
	}
	// An answer is for this plan alone, and never for the same text at another time.
	return &tool.Prepared{Shown: call.Args, Binds: []byte(rand.Text()), Wait: toRead, Run: struct{}{}}, nil
}

func (p *Plugin) propose(ctx context.Context, call tool.Call, _ args) (tool.Result, error) {
	if call.Prepared == nil || !call.Prepared.Approved {
		return tool.Fail(tool.ErrRejected, "nobody has approved the plan"), nil
	}
	s, err := p.sessions.Find(call.SessionID, "")
	if err != nil {
		return tool.Result{}, err
	}
	if err := s.SetMode(ctx, session.Work); err != nil {
		return tool.Result{}, err
	}
	return tool.OK("approved", tool.Text("The user has approved the plan. Go on with the work: files may be changed and commands may run, as far as the user allows it.")), nil
}

// Hook returns the hook that asks a person about each plan, whatever rules say.
func (*Plugin) Hook() tool.Hook { return hook{} }

type hook struct{}

// PreToolCall implements [tool.Hook].
func (hook) PreToolCall(_ context.Context, call tool.Call, def tool.Definition) (tool.Verdict, error) {
	if def.Identity == (tool.Identity{Tool: Name}) && call.Name == Name {
		return tool.Verdict{Decision: tool.Ask, Reason: "a person approves a plan"}, nil
	}
	return tool.Verdict{}, nil
}
