package strategy_coder //nolint:staticcheck // plugins are named after what the configuration calls them

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/cut"
	"github.com/yaya-ai/yaya/kernel/event"
)

// maxPlan bounds a plan in its note, in bytes.
const maxPlan = 8 << 10

// planOf returns the plan that the model has kept last, with the call that did it in a history:
// its note stays when the history is summarized. It returns "" if the history has no such call.
func planOf(history []event.Message) string {
	for _, m := range slices.Backward(history) {
		for _, c := range slices.Backward(m.ToolCalls) {
			if c.Name != "todo" {
				continue
			}
			var a struct {
				Steps []struct {
					Text  string `json:"text"`
					State string `json:"state"`
				} `json:"steps"`
			}
			if json.Unmarshal(c.Args, &a) != nil {
				continue
			}
			var b strings.Builder
			for _, s := range a.Steps {
				mark := map[string]string{"done": "[x] ", "doing": "[>] "}[s.State]
				if mark == "" {
					mark = "[ ] "
				}
				b.WriteString(mark + cut.Line(s.Text, 300) + "\n")
			}
			if b.Len() == 0 {
				return "The plan is ended."
			}
			return cut.Bytes("Your plan, as you have kept it:\n"+b.String(), maxPlan)
		}
	}
	return ""
}
