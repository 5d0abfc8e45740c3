package tool_workspace //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"context"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/worded"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// maxSteps bounds a plan.
const maxSteps = 50

// step is a step of a plan.
type step struct {
	Text  string `json:"text" jsonschema:"the step, in one line"`
	State string `json:"state" jsonschema:"pending, doing or done"`
}

// planArgs hold the plan of a session's model, whole in each call of todo.
type planArgs struct {
	Steps []step `json:"steps" jsonschema:"all steps in order, the done ones too; none ends the plan"`
}

var states = []string{"pending", "doing", "done"}

// planner registers todo. The plan is in the call, which is on the tape; the coding strategy
// keeps it in view.
func planner(c plugin.Context) error {
	t, err := tool.New(tool.Definition{
		Name: "todo", Title: "Plan", Kind: tool.KindRead, ForAgents: true,
		Description: "Keeps your plan for work of several steps, and shows it to the user. Give the whole plan whenever it changes: one step is in the state doing, and those that are done stay in it.",
	}, func(_ context.Context, _ tool.Call, a planArgs) (tool.Result, error) {
		if len(a.Steps) > maxSteps {
			return tool.Fail(tool.ErrValidation, "the plan has %d steps, and may have %d", len(a.Steps), maxSteps), nil
		}
		open := 0
		for i, s := range a.Steps {
			if !slices.Contains(states, s.State) || strings.TrimSpace(s.Text) == "" {
				return tool.Fail(tool.ErrValidation, "step %d needs a text and a state: pending, doing or done", i+1), nil
			}
			if s.State != "done" {
				open++
			}
		}
		return tool.OK(worded.Count(open, "open step", "open steps"), tool.Text("The plan is kept.")), nil
	})
	if err != nil {
		return err
	}
	return c.RegisterTool(t)
}
