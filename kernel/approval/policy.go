package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/members"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// Rule decides about the calls that it matches. An unset field matches everything;
// Tool and Provider may hold the wildcards of path.Match, and so may Principal,
// where * covers slashes too.
type Rule struct {
	Tool      string      `json:"tool,omitempty"`     // the name the tool is called by
	Provider  string      `json:"provider,omitempty"` // "" also means built in
	Kind      tool.Kind   `json:"kind,omitempty"`
	Origin    tool.Origin `json:"origin,omitempty"`
	Principal string      `json:"principal,omitempty"` // who calls
	Scope     string      `json:"scope,omitempty"`     // that the caller has
	Group     string      `json:"group,omitempty"`     // that the caller is in
	Decision  string      `json:"decision"`            // allow, ask or deny
	Reason    string      `json:"reason,omitempty"`

	members []string // of Group
}

// Callers holds the scopes and groups that rules and profiles can name besides
// principals.
type Callers struct {
	Groups map[string][]string // patterns of principals, by the group's name
	Scopes []string
}

// Members returns the patterns of a group's principals.
func (c Callers) Members(group string) ([]string, error) {
	members, ok := c.Groups[group]
	if !ok {
		return nil, fmt.Errorf("there is no group %q; define it with approval.groups.%s", group, group)
	}
	return members, checkPrincipals(members)
}

// CheckScope returns an error if no scope has that name.
func (c Callers) CheckScope(scope string) error {
	if !slices.Contains(c.Scopes, scope) {
		return fmt.Errorf("there is no scope %q", scope)
	}
	return nil
}

func checkPrincipals(patterns []string) error {
	for _, p := range patterns {
		if err := tool.CheckPrincipal(p); err != nil {
			return err
		}
	}
	return nil
}

// CheckGroup reads the value of approval.groups.<name>: a list of patterns of
// principals.
func CheckGroup(raw json.RawMessage) error {
	var members []string
	if err := json.Unmarshal(raw, &members); err != nil {
		return fmt.Errorf("a group is a list of principals: %w", err)
	}
	return checkPrincipals(members)
}

// ParseRules reads the value of approval.rules. An unknown name in a rule is an
// error: a rule without its intended effect must not be kept.
func ParseRules(raw json.RawMessage, callers Callers) ([]Rule, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var all []json.RawMessage
	if err := json.Unmarshal(raw, &all); err != nil {
		if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, errNoRules
		}
		return nil, fmt.Errorf("%w: %w", errNoRules, err)
	}
	rules := make([]Rule, len(all))
	for i := range rules {
		if err := rules[i].parse(all[i], callers); err != nil {
			return nil, fmt.Errorf("approval.rules: rule %d %w", i+1, err)
		}
	}
	return rules, nil
}

var errNoRules = errors.New(`approval.rules must be a JSON list of rules, such as [{"tool":"x","decision":"deny"}]`)

// parse reads a rule. The caller puts the name of the rule before its errors.
func (r *Rule) parse(raw json.RawMessage, callers Callers) error {
	err := members.Decode(raw, r)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		switch wrong.Field {
		case "":
			return errors.New(`must be an object, such as {"tool":"x","decision":"deny"}`)
		case "principal":
			return errors.New("cannot be read: principal is one pattern; for several use a group")
		}
		return fmt.Errorf("cannot be read: %s is one text, not a JSON %s", wrong.Field, wrong.Value)
	}
	if err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	if r.Decision == "" {
		return errors.New("has no decision: allow, ask or deny")
	}
	if err := r.resolve(callers); err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	return nil
}

// choice checks a value against a closed set, so that no rule waits for a call that
// never comes.
var (
	kinds   = []tool.Kind{tool.KindRead, tool.KindWrite, tool.KindExec, tool.KindNetwork}
	origins = []tool.Origin{tool.OriginLoop, tool.OriginMCP, tool.OriginWire, tool.OriginCLI, tool.OriginAPI, tool.OriginNode}
)

func oneOf[T ~string](what string, v T, known []T) error {
	if v == "" || slices.Contains(known, v) {
		return nil
	}
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	return fmt.Errorf("there is no %s %q: there are %s", what, v, strings.Join(names, ", "))
}

// resolve checks a rule and looks up its group.
func (r *Rule) resolve(callers Callers) (err error) {
	if _, ok := decisions[r.Decision]; !ok {
		return fmt.Errorf("decision %q is none of allow, ask and deny", r.Decision)
	}
	if err := cmp.Or(oneOf("kind", r.Kind, kinds), oneOf("origin", r.Origin, origins)); err != nil {
		return err
	}
	for _, p := range []string{r.Tool, r.Provider} {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", p, err)
		}
	}
	if r.Principal != "" {
		if err := tool.CheckPrincipal(r.Principal); err != nil {
			return err
		}
	}
	if r.Scope != "" {
		if err := callers.CheckScope(r.Scope); err != nil {
			return err
		}
	}
	if r.Group != "" {
		r.members, err = callers.Members(r.Group)
	}
	return err
}

var decisions = map[string]tool.Decision{"allow": tool.Allow, "ask": tool.Ask, "deny": tool.Deny}

func (r *Rule) matches(call *tool.Call, def *tool.Definition) bool {
	match := func(pattern, s string) bool { return pattern == "" || tool.MatchName(pattern, s) }
	return match(r.Tool, def.Name) && match(r.Provider, def.Identity.Provider) &&
		(r.Kind == "" || r.Kind == effectiveKind(def.Kind) || def.Agreed && r.Kind == tool.KindRead) && r.through(call) && r.concerns(&call.Caller)
}

// through reports whether a rule applies to calls of this origin. A rule that allows clients to
// call does not allow it to an agent that works for one.
func (r *Rule) through(call *tool.Call) bool {
	return r.Origin == "" || r.Origin == call.Origin ||
		r.Origin == call.Caller.Via && (call.Origin == tool.OriginNode || r.Decision != "allow")
}

// concerns reports whether a rule applies to a caller. A rule that asks or denies
// applies if it covers any principal that the call is made for; a rule that allows,
// only if it covers all of them, so that nobody gains a right by starting a
// sub-agent.
func (r *Rule) concerns(c *tool.Caller) bool {
	all := r.Decision == "allow"
	if r.Scope != "" && !c.May(r.Scope) && (all || c.BehindHas == nil || !c.BehindHas(r.Scope)) {
		return false
	}
	if r.Principal == "" && r.Group == "" {
		return true
	}
	if r.names(c.Principal) != all {
		return !all
	}
	for _, p := range c.Behind {
		if r.names(p) != all {
			return !all
		}
	}
	return all
}

// names reports whether the rule covers a principal, by pattern and by group.
func (r *Rule) names(principal string) bool {
	return (r.Principal == "" || tool.MatchPrincipal(r.Principal, principal)) &&
		(r.Group == "" || slices.ContainsFunc(r.members, func(p string) bool { return tool.MatchPrincipal(p, principal) }))
}

// effectiveKind treats unknown kinds as exec.
func effectiveKind(k tool.Kind) tool.Kind {
	switch k {
	case tool.KindRead, tool.KindWrite, tool.KindNetwork:
		return k
	case tool.KindExec:
	}
	return tool.KindExec
}

// Policy applies the strictest matching rule; if none matches, Base decides.
type Policy struct {
	Rules func() ([]Rule, error)
	Base  tool.Policy // default [tool.DefaultPolicy]
}

// Decide implements [tool.Policy]. Invalid rules deny.
func (p Policy) Decide(ctx context.Context, call tool.Call, def tool.Definition) (tool.Verdict, error) {
	rules, err := p.Rules()
	if err != nil {
		return tool.Verdict{}, err
	}
	var v tool.Verdict
	for i := range rules {
		r := &rules[i]
		if d := decisions[r.Decision]; d > v.Decision && r.matches(&call, &def) {
			v = tool.Verdict{Decision: d, Reason: cmp.Or(r.Reason, "a rule says "+r.Decision)}
		}
	}
	if v.Decision != tool.Abstain {
		return v, nil
	}
	if p.Base == nil {
		return tool.DefaultPolicy{}.Decide(ctx, call, def)
	}
	return p.Base.Decide(ctx, call, def)
}
