package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// NobodyThere is the reason for refusing a call that nobody can be asked about, and NoRule the
// reason for one that no rule can allow.
const (
	NobodyThere = "it needs approval and nobody is there to ask"
	NoRule      = "it needs approval, which no rule can give, and nobody is there to ask"
)

// NobodyAsked, NoRuleAsked and NeverAsked are the reasons for an agent whose calls nobody is asked about.
const (
	NobodyAsked = NobodyThere + "; yaya run on a terminal asks, approval.rules can allow it"
	NoRuleAsked = NoRule + "; yaya run on a terminal asks"
	NeverAsked  = "it needs approval, and --approve never was given"
	NotTrusted  = "the folder is not trusted, and the agent can only read and search it; yaya trust shows what the folder brings, and asks"
)

// commands are the sessions whose turn a command has started with rules of its own:
// --approve of yaya run. They hold for sub-agents, too. It is safe for concurrent use.
type commands struct {
	n    atomic.Int32 // so that other calls do not pay for it
	mu   sync.Mutex
	held map[string]string // --approve by session
}

// hold gives a session its rules until release is called; ok is false if another command
// has given it some.
func (c *commands) hold(session, approve string) (release func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[session] != "" {
		return nil, false
	}
	if c.held == nil {
		c.held = map[string]string{}
	}
	c.held[session] = approve
	c.n.Add(1)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.held, session)
		c.n.Add(-1)
	}, true
}

// of returns the rules of a session, "" for those of all.
func (c *commands) of(session string) string {
	if c.n.Load() == 0 {
		return ""
	}
	root := event.Root(session)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[root]
}

// unasked reports whether nobody is asked about a session's calls.
func (c *commands) unasked(session string) bool {
	approve := c.of(session)
	return approve == "rules" || approve == "never"
}

// PreToolCall implements [tool.Hook]: with --approve never, nothing runs that would need
// approval.
func (c *commands) PreToolCall(ctx context.Context, call tool.Call, def tool.Definition) (tool.Verdict, error) {
	if c.of(call.SessionID) != "never" {
		return tool.Verdict{}, nil
	}
	v, err := tool.DefaultPolicy{}.Decide(ctx, call, def)
	if err == nil && v.Decision == tool.Ask {
		return tool.Verdict{Decision: tool.Deny, Reason: NeverAsked}, nil
	}
	return tool.Verdict{}, err
}

// people are those who are asked, but for sessions that have nobody to be asked. It
// implements [tool.Approver].
type people struct {
	commands  *commands
	approvals *approval.Runtime
	dispatch  *tool.Dispatcher
	// first is called before a person is asked; its error is the answer.
	first func(ctx context.Context, call tool.Call, def tool.Definition) error
}

// Approve implements [tool.Approver].
func (p people) Approve(ctx context.Context, call tool.Call, def tool.Definition, brief string) error {
	if p.commands.unasked(call.SessionID) {
		if why := p.dispatch.Insists(ctx, call, def); why != "" {
			return &tool.RejectedError{Feedback: NoRuleAsked + ": " + why}
		}
		return &tool.RejectedError{Feedback: NobodyAsked}
	}
	if err := p.first(ctx, call, def); err != nil {
		return err
	}
	return p.approvals.Approve(ctx, call, def, brief)
}

// ask puts a question that is not about the run of a tool.
func (p people) ask(ctx context.Context, call tool.Call, def tool.Definition, brief string) (approval.Decision, error) {
	if p.commands.unasked(call.SessionID) {
		return approval.Decision{By: "cli"}, errors.New("nobody is there to ask")
	}
	return p.approvals.Ask(ctx, call, def, brief)
}

// askAboutHost puts the question whether a command may reach a host, unless a rule
// denies it. No rule allows one: sandbox.command.hosts does.
func (p people) askAboutHost(ctx context.Context, call tool.Call, def tool.Definition, brief string) (approval.Decision, error) {
	if v := p.dispatch.Verdict(ctx, call, def); v.Decision == tool.Deny {
		return approval.Decision{}, fmt.Errorf("denied: %s", v.Reason)
	}
	return p.ask(ctx, call, def, brief)
}
