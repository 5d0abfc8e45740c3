package approval

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// Rule says what happens to the calls that it matches. A field that is not set
// matches everything; Tool and Provider may hold the wildcards of path.Match.
type Rule struct {
	Tool     string      `json:"tool,omitempty"`     // the name the tool is called by
	Provider string      `json:"provider,omitempty"` // "" also means built in
	Kind     tool.Kind   `json:"kind,omitempty"`
	Origin   tool.Origin `json:"origin,omitempty"`
	Decision string      `json:"decision"` // allow, ask or deny
	Reason   string      `json:"reason,omitempty"`
}

// ParseRules reads the value of approval.rules. An unknown member or decision is
// an error: a rule that does not do what it says must not be kept.
func ParseRules(raw json.RawMessage) ([]Rule, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var rules []Rule
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&rules); err != nil {
		return nil, fmt.Errorf("approval.rules: %w", err)
	}
	for i, r := range rules {
		if _, ok := decisions[r.Decision]; !ok {
			return nil, fmt.Errorf("approval.rules: rule %d: decision %q is none of allow, ask and deny", i+1, r.Decision)
		}
		for _, p := range []string{r.Tool, r.Provider} {
			if _, err := path.Match(p, ""); err != nil {
				return nil, fmt.Errorf("approval.rules: rule %d: pattern %q: %w", i+1, p, err)
			}
		}
	}
	return rules, nil
}

var decisions = map[string]tool.Decision{"allow": tool.Allow, "ask": tool.Ask, "deny": tool.Deny}

func (r Rule) matches(call tool.Call, def tool.Definition) bool {
	match := func(pattern, s string) bool {
		if pattern == "" {
			return true
		}
		ok, err := path.Match(pattern, s)
		return ok && err == nil
	}
	return match(r.Tool, def.Name) && match(r.Provider, def.Identity.Provider) &&
		(r.Kind == "" || r.Kind == effectiveKind(def.Kind)) && (r.Origin == "" || r.Origin == call.Origin)
}

// effectiveKind counts what is unknown as exec.
func effectiveKind(k tool.Kind) tool.Kind {
	switch k {
	case tool.KindRead, tool.KindWrite, tool.KindNetwork:
		return k
	case tool.KindExec:
	}
	return tool.KindExec
}

// Policy applies rules, the strictest of those that match; a call that none
// matches is left to Base.
type Policy struct {
	Rules func() ([]Rule, error)
	Base  tool.Policy // default [tool.DefaultPolicy]
}

// Decide implements [tool.Policy]. Rules that cannot be read deny (R11).
func (p Policy) Decide(ctx context.Context, call tool.Call, def tool.Definition) (tool.Verdict, error) {
	rules, err := p.Rules()
	if err != nil {
		return tool.Verdict{}, err
	}
	var v tool.Verdict
	for _, r := range rules {
		if d := decisions[r.Decision]; r.matches(call, def) && d > v.Decision {
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
