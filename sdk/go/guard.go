package yaya

import (
	"context"
	"encoding/json"
)

// GuardedCall is a call of a tool that a guard is asked about.
type GuardedCall struct {
	CallID    string          `json:"call_id"`
	TurnID    string          `json:"turn_id"` // "" if no agent of yaya's calls
	Name      string          `json:"name"`
	Server    string          `json:"server"` // the MCP server whose tool it is
	Kind      string          `json:"kind"`   // read, write, exec or network
	Origin    string          `json:"origin"` // loop (an agent), mcp, cli or api
	Principal string          `json:"principal"`
	Args      json.RawMessage `json:"args"`
	Shown     json.RawMessage `json:"shown"` // as a person sees it who is asked; nil if those are the arguments
	SessionID string          `json:"-"`
}

// GuardedPrompt holds the messages of the user since the model was last asked.
type GuardedPrompt struct {
	Text      string
	SessionID string
}

// Verdict is the answer of a guard. The zero value has no decision, and denies.
type Verdict struct {
	Decision string `json:"decision"`
	Reason   string `json:"reason,omitempty"`
}

// Allow returns that a guard does not object. It lifts nothing: rules and people decide.
func Allow() Verdict { return Verdict{Decision: "allow"} }

// Ask returns that a person has to approve the call. A message is then denied.
func Ask(reason string) Verdict { return Verdict{"ask", reason} }

// Deny returns that the call does not run, or that the model does not get the message. The
// model and the user read the reason.
func Deny(reason string) Verdict { return Verdict{"deny", reason} }

// Points at which a plugin guards.
const (
	guardTool   = "pre_tool"
	guardPrompt = "prompt"
)

// guards returns the points at which a plugin guards.
func (p *Plugin) guards() (out []string) {
	if p.GuardTool != nil {
		out = append(out, guardTool)
	}
	if p.GuardPrompt != nil {
		out = append(out, guardPrompt)
	}
	return out
}

// guard asks the plugin's guard.
func (c *conn) guard(ctx context.Context, params json.RawMessage) (any, error) {
	var p struct {
		Point      string      `json:"point"`
		SessionID  string      `json:"session_id"`
		Call       GuardedCall `json:"call"`
		Prompt     string      `json:"prompt"`
		DeadlineMS int64       `json:"deadline_ms"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &Error{Code: -32602, Message: err.Error()}
	}
	ctx, cancel := within(ctx, p.DeadlineMS)
	defer cancel()
	var v Verdict
	var err error
	switch {
	case p.Point == guardTool && c.p.GuardTool != nil:
		p.Call.SessionID = p.SessionID
		v, err = c.p.GuardTool(ctx, c.host, p.Call)
	case p.Point == guardPrompt && c.p.GuardPrompt != nil:
		v, err = c.p.GuardPrompt(ctx, c.host, GuardedPrompt{p.Prompt, p.SessionID})
	default:
		err = &Error{Code: -32602, Message: "it does not guard " + p.Point}
	}
	if err != nil {
		return nil, err
	}
	return v, nil
}
