package approval_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// MIS-7: rules select callers by name, by scope, by group, and by all of them
// together.
func TestRulesOfPrincipals(t *testing.T) {
	callers := approval.Callers{
		Groups: map[string][]string{"team": {"issuer:alice", "device:desk*"}, "nobody": {}},
		Scopes: []string{"config:write", "tools:call"},
	}
	has := func(scopes ...string) func(string) bool {
		return func(s string) bool { return slices.Contains(scopes, s) }
	}
	phone := tool.Caller{Principal: "device:phone", Has: has("tools:call")}
	for _, c := range []struct {
		name, rules string
		caller      tool.Caller
		want        tool.Decision
	}{
		{"by name", `[{"principal":"device:phone","decision":"deny"}]`, phone, tool.Deny},
		{"another name", `[{"principal":"device:desk","decision":"deny"}]`, phone, tool.Ask},
		{"by pattern", `[{"principal":"device:*","decision":"deny"}]`, phone, tool.Deny},
		{"all but the owner have no way to be said", `[{"principal":"*","decision":"deny"}]`, tool.LocalOwner, tool.Deny},
		{"devices are not the owner", `[{"principal":"device:*","decision":"deny"}]`, tool.LocalOwner, tool.Ask},
		{"nobody is nobody", `[{"principal":"*","decision":"allow"}]`, tool.Caller{}, tool.Ask},
		{"by scope", `[{"scope":"tools:call","decision":"deny"}]`, phone, tool.Deny},
		{"without the scope", `[{"scope":"config:write","decision":"allow"}]`, phone, tool.Ask},
		{"the owner has every scope", `[{"scope":"config:write","decision":"allow"}]`, tool.LocalOwner, tool.Allow},
		{"without scopes at all", `[{"scope":"tools:call","decision":"allow"}]`, tool.Caller{Principal: "agent:react"}, tool.Ask},
		{"by group", `[{"group":"team","decision":"allow"}]`, tool.Caller{Principal: "issuer:alice"}, tool.Allow},
		{"by a pattern of a group", `[{"group":"team","decision":"allow"}]`, tool.Caller{Principal: "device:desk2"}, tool.Allow},
		{"not in the group", `[{"group":"team","decision":"allow"}]`, phone, tool.Ask},
		{"an empty group", `[{"group":"nobody","decision":"allow"}]`, phone, tool.Ask},
		{"everything that is said counts", `[{"group":"team","scope":"tools:call","principal":"device:*","tool":"w*","decision":"allow"}]`, tool.Caller{Principal: "device:desk", Has: has("tools:call")}, tool.Allow},
		{"one thing is missing", `[{"group":"team","scope":"tools:call","principal":"device:*","tool":"w*","decision":"allow"}]`, tool.Caller{Principal: "device:desk"}, tool.Ask},
		{"the strictest counts", `[{"principal":"device:phone","decision":"allow"},{"principal":"device:*","decision":"deny"}]`, phone, tool.Deny},
		// A sub-agent has no more rights than those above it.
		{"above is denied", `[{"principal":"agent:react","decision":"deny"}]`, tool.Caller{Principal: "agent:coder", Behind: []string{"agent:react"}}, tool.Deny},
		{"further above is denied", `[{"principal":"agent:react","decision":"deny"}]`, tool.Caller{Principal: "agent:coder", Behind: []string{"agent:coder", "agent:react"}}, tool.Deny},
		{"below alone is allowed", `[{"principal":"agent:coder","decision":"allow"}]`, tool.Caller{Principal: "agent:coder", Behind: []string{"agent:react"}}, tool.Ask},
		{"above alone is allowed", `[{"principal":"agent:react","decision":"allow"}]`, tool.Caller{Principal: "agent:coder", Behind: []string{"agent:react"}}, tool.Ask},
		{"both are allowed", `[{"principal":"agent:*","decision":"allow"}]`, tool.Caller{Principal: "agent:coder", Behind: []string{"agent:react"}}, tool.Allow},
	} {
		t.Run(c.name, func(t *testing.T) {
			rules, err := approval.ParseRules(json.RawMessage(c.rules), callers)
			if err != nil {
				t.Fatal(err)
			}
			p := approval.Policy{Rules: func() ([]approval.Rule, error) { return rules, nil }}
			v, err := p.Decide(t.Context(), tool.Call{Origin: tool.OriginLoop, Caller: c.caller}, tool.Definition{Name: "write", Kind: tool.KindWrite})
			if err != nil || v.Decision != c.want {
				t.Errorf("got %+v, %v; want decision %v", v, err, c.want)
			}
		})
	}
	for name, bad := range map[string]struct{ rules, want string }{
		"an unknown kind":    {`[{"principal":"devices:phone","decision":"deny"}]`, "devices:phone"},
		"a broken pattern":   {`[{"principal":"device:[","decision":"deny"}]`, "device:["},
		"an unknown scope":   {`[{"scope":"tool:call","decision":"deny"}]`, "tool:call"},
		"an unknown group":   {`[{"decision":"deny"},{"group":"others","decision":"deny"}]`, "approval.groups.others"},
		"an unknown member":  {`[{"principals":"owner","decision":"deny"}]`, "principals"},
		"a list for a name":  {`[{"principal":["owner"],"decision":"deny"}]`, "rule 1 cannot be read: principal is one pattern; for several use a group"},
		"nothing for a rule": {`[{"principal":"owner"}]`, "rule 1 has no decision: allow, ask or deny"},
		"a name alone":       {`[{"principal":"phone","decision":"deny"}]`, "; did you mean device:phone?"},
		"a capital":          {`[{"principal":"Owner","decision":"deny"}]`, "; did you mean owner?"},
		"a misspelt kind":    {`[{"decision":"ask"},{"principal":"device:*","kind":"exce","decision":"deny"}]`, `rule 2 cannot be read: there is no kind "exce": there are read, write, exec, network`},
		"a kind in capitals": {`[{"kind":"Exec","decision":"deny"}]`, `there is no kind "Exec"`},
		"a misspelt origin":  {`[{"origin":"web","decision":"deny"}]`, `rule 1 cannot be read: there is no origin "web": there are loop, mcp, wire, cli, api`},
		"an empty decision":  {`[{"decision":""}]`, "rule 1 has no decision: allow, ask or deny"},
		"a list for a tool":  {`[{"tool":["a"],"decision":"deny"}]`, "rule 1 cannot be read: tool is one text, not a JSON array"},
		"a text for a rule":  {`["deny"]`, "rule 1 must be an object"},
		"one rule":           {`{"tool":"x","decision":"deny"}`, "approval.rules must be a JSON list of rules, such as"},
		"a text":             {`"deny everything"`, "approval.rules must be a JSON list of rules, such as"},
	} {
		if _, err := approval.ParseRules(json.RawMessage(bad.rules), callers); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: got %v, want an error about %s", name, err, bad.want)
		}
	}
	broken := approval.Callers{Groups: map[string][]string{"team": {"alice"}}}
	if _, err := approval.ParseRules(json.RawMessage(`[{"group":"team","decision":"deny"}]`), broken); err == nil {
		t.Error("a group with a member that is not a principal is accepted")
	}
	for raw, ok := range map[string]bool{`["owner","issuer:*"]`: true, `[]`: true, `["alice"]`: false, `[1]`: false, `{"a":1}`: false} {
		if err := approval.CheckGroup(json.RawMessage(raw)); (err == nil) != ok {
			t.Errorf("CheckGroup(%s) = %v, want it to be accepted: %v", raw, err, ok)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	rules, err := approval.ParseRules(json.RawMessage(`[{"principal":"device:*","kind":"write","decision":"deny"},{"group":"team","tool":"fs__*","decision":"allow"}]`),
		approval.Callers{Groups: map[string][]string{"team": {"issuer:*", "device:desk"}}})
	if err != nil {
		b.Fatal(err)
	}
	p := approval.Policy{Rules: func() ([]approval.Rule, error) { return rules, nil }}
	call, def := tool.Call{Origin: tool.OriginMCP, Caller: tool.LocalOwner}, tool.Definition{Name: "fs__read", Identity: tool.Identity{Provider: "fs"}, Kind: tool.KindRead}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Decide(b.Context(), call, def); err != nil {
			b.Fatal(err)
		}
	}
}
