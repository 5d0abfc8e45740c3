package approval_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/yaya-ai/yaya/kernel/approval"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// checks is a tool that runs a program.
type checks struct {
	agreed bool // the user has approved the call in advance
	ran    bool
}

func (*checks) Definition() tool.Definition {
	return tool.Definition{Name: "verify", Description: "x", Kind: tool.KindExec, InFolder: true, InputSchema: json.RawMessage(`{"type":"object"}`)}
}

func (c *checks) Invoke(context.Context, tool.Call) (tool.Result, error) {
	c.ran = true
	return tool.OK("ok"), nil
}

func (c *checks) PreApproved(tool.Call) bool { return c.agreed }

type open struct{}

func (open) Admit(context.Context, tool.Call, tool.Definition) error { return nil }

type counter struct{ asked int }

func (c *counter) Approve(context.Context, tool.Call, tool.Definition, string) error {
	c.asked++
	return &tool.RejectedError{}
}

// Approval in advance relaxes no rule, neither one about the tool's name nor one about its kind.
func TestRulesHoldForAgreedCalls(t *testing.T) {
	for name, c := range map[string]struct {
		rules       string
		agreed      bool
		runs, asked bool
	}{
		"no rule":                        {`[]`, true, true, false},
		"no rule, not agreed":            {`[]`, false, false, true},
		"deny by kind":                   {`[{"kind":"exec","decision":"deny"}]`, true, false, false},
		"ask by kind":                    {`[{"kind":"exec","decision":"ask"}]`, true, false, true},
		"deny of reading":                {`[{"kind":"read","decision":"deny"}]`, true, false, false},
		"deny of reading, not agreed":    {`[{"kind":"read","decision":"deny"}]`, false, false, true},
		"deny by name":                   {`[{"tool":"verify","decision":"deny"}]`, true, false, false},
		"allow by name, not agreed":      {`[{"tool":"verify","decision":"allow"}]`, false, true, false},
		"deny by kind and allow by name": {`[{"kind":"exec","decision":"deny"},{"tool":"verify","decision":"allow"}]`, true, false, false},
		"another kind":                   {`[{"kind":"write","decision":"deny"}]`, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			rules, err := approval.ParseRules(json.RawMessage(c.rules), approval.Callers{})
			if err != nil {
				t.Fatal(err)
			}
			run, people, reg := &checks{agreed: c.agreed}, new(counter), new(tool.Registry)
			if err := reg.Register(run); err != nil {
				t.Fatal(err)
			}
			d := tool.NewDispatcher(tool.DispatcherConfig{Registry: reg, Policy: approval.Policy{Rules: func() ([]approval.Rule, error) { return rules, nil }}, Approver: people})
			d.SetGate(open{})
			d.SetWitness(func(tool.Change) (func() error, error) { return func() error { return nil }, nil })
			res := d.Call(t.Context(), reg.Snapshot(), tool.Call{Name: "verify", SessionID: "s", Origin: tool.OriginLoop, Caller: tool.LocalOwner})
			if run.ran != c.runs || (people.asked > 0) != c.asked {
				t.Errorf("the call ran %v, asked %d times (%s); want %v, %v", run.ran, people.asked, res.Text(), c.runs, c.asked)
			}
		})
	}
}
