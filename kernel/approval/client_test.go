package approval_test

import (
	"testing"

	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// MIS-6, R25: what restricts a client restricts an agent that works for it; what allows one of them
// something allows it to the agent only if it names both.
func TestClientBehindAnAgent(t *testing.T) {
	agent := tool.Caller{
		Principal: "agent:coder", Behind: []string{"token:ci"}, Via: tool.OriginMCP,
		BehindHas: func(scope string) bool { return scope == "sessions:write" },
	}
	call := tool.Call{Name: "fs__write", Origin: tool.OriginLoop, Caller: agent}
	def := tool.Definition{Name: "fs__write", Identity: tool.Identity{Provider: "fs", Tool: "write"}}
	for _, c := range []struct {
		name string
		rule approval.Rule
		want tool.Decision
	}{
		{"no rule", approval.Rule{Tool: "other", Decision: "allow"}, tool.Ask},
		{"deny the client", approval.Rule{Principal: "token:*", Decision: "deny"}, tool.Deny},
		{"deny the agent", approval.Rule{Principal: "agent:*", Decision: "deny"}, tool.Deny},
		{"deny a scope of the client", approval.Rule{Scope: "sessions:write", Decision: "deny"}, tool.Deny},
		{"deny a scope that it lacks", approval.Rule{Scope: "config:write", Decision: "deny"}, tool.Ask},
		{"deny clients", approval.Rule{Origin: tool.OriginMCP, Decision: "deny"}, tool.Deny},
		{"deny agents", approval.Rule{Origin: tool.OriginLoop, Decision: "deny"}, tool.Deny},
		{"deny the command line", approval.Rule{Origin: tool.OriginCLI, Decision: "deny"}, tool.Ask},
		{"allow the client", approval.Rule{Principal: "token:*", Decision: "allow"}, tool.Ask},
		{"allow the agent", approval.Rule{Principal: "agent:*", Decision: "allow"}, tool.Ask},
		{"allow a scope of the client", approval.Rule{Scope: "sessions:write", Decision: "allow"}, tool.Ask},
		{"allow clients", approval.Rule{Origin: tool.OriginMCP, Decision: "allow"}, tool.Ask},
		{"allow both", approval.Rule{Principal: "*", Decision: "allow"}, tool.Allow},
		{"allow everybody", approval.Rule{Decision: "allow"}, tool.Allow},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := approval.Policy{Rules: func() ([]approval.Rule, error) { return []approval.Rule{c.rule}, nil }}
			if v, err := p.Decide(t.Context(), call, def); err != nil || v.Decision != c.want {
				t.Errorf("Decide = %v, %v; want %v", v, err, c.want)
			}
		})
	}
	// For a call that another node passes on, the surface there counts in both ways.
	call.Origin, call.Caller = tool.OriginNode, tool.Caller{Principal: "owner", Via: tool.OriginMCP}
	p := approval.Policy{Rules: func() ([]approval.Rule, error) {
		return []approval.Rule{{Origin: tool.OriginMCP, Decision: "allow"}}, nil
	}}
	if v, err := p.Decide(t.Context(), call, def); err != nil || v.Decision != tool.Allow {
		t.Errorf("Decide of a passed call = %v, %v; want it allowed", v, err)
	}
}
