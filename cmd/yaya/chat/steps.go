package chat

import (
	"encoding/json"
	"fmt"

	"github.com/yaya-ai/yaya/internal/screen"
)

// Step is a step of an agent's plan.
type Step struct {
	Text  string `json:"text"`
	State string `json:"state"` // doing, done or pending
}

// Steps returns the plan that a call of yaya's own tool todo makes; ok is false for other calls, and for
// arguments of another form.
func Steps(tool string, input json.RawMessage) (steps []Step, ok bool) {
	var in struct {
		Steps []Step `json:"steps"`
	}
	if tool != "todo" || json.Unmarshal(input, &in) != nil {
		return nil, false
	}
	return in.Steps, true
}

// steps renders a plan: a line for each step, with its state.
func (m *model) steps(all []Step) (head string, out []string) {
	done := 0
	for _, s := range all {
		mark, style := "·", ""
		switch s.State {
		case "done":
			mark, style = screen.Paint(m.palette.Good, "✓"), screen.Faint
			done++
		case "doing":
			mark, style = screen.Paint(m.palette.Accent, "▸"), screen.Bold
		}
		for i, l := range screen.Prose(s.Text, m.room()-4) {
			if i > 0 {
				mark = " "
			}
			out = append(out, mark+" "+screen.Paint(style, l))
		}
	}
	return fmt.Sprintf("%d of %d steps done", done, len(all)), out
}
