package kernel_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/plugins/agent_tool"
)

// Y-195: a sub-agent's calls are asked about like its parent's.
func TestSubAgentAsks(t *testing.T) {
	inBubble(t, setup{
		script: `{"scenarios":[{"match":"^delegate","steps":[{"tool_calls":[{"name":"agent","args":{"goal":"do the thing"}}]},{"text":"delegated"}]},
			{"match":"do the thing","steps":[{"tool_calls":[{"name":"danger","args":{"name":"boom"}}]},{"text":"done"}]}]}`,
		answer: approveAll,
	}, func(t *testing.T, w *world) {
		w.run("s1", "delegate it")
		synctest.Wait()
		var asked []string
		for _, ev := range w.web.all("approval.request") {
			asked = append(asked, ev.Payload.(event.ApprovalRequest).ToolName)
		}
		equal(t, asked, "agent", "danger")
		equal(t, w.ran, "boom")
	})
}

// Y-198, R25: a sub-agent has the tools of its list that its parent has, whatever it asks for, and
// whatever it tells those below it. An empty list is none.
func TestToolsOfSubAgents(t *testing.T) {
	for _, tt := range []struct{ child, grandchild, want string }{
		{`null`, `null`, `null, null`},
		{`["agent","work"]`, `null`, `[agent work], [agent work]`},
		{`["agent","work"]`, `["danger","work"]`, `[agent work], [work]`},
		{`["agent"]`, `["danger"]`, `[agent], []`},
		{`["agent"]`, `[]`, `[agent], []`},
		{`null`, `["danger"]`, `null, [danger]`},
	} {
		t.Run(tt.child+" "+tt.grandchild, func(t *testing.T) {
			s := fmt.Sprintf(`{"scenarios":[{"match":"^delegate","steps":[{"tool_calls":[{"name":"agent","args":{"goal":"one"%s}}]},{"text":"delegated"}]},
				{"match":"^one","steps":[{"tool_calls":[{"name":"agent","args":{"goal":"two"%s}}]},{"text":"one is done"}]},
				{"match":"^two","steps":[{"tool_calls":[{"name":"danger","args":{"name":"boom"}},{"name":"work","args":{"name":"fine"}}]},{"text":"two is done"}]}]}`, listed(tt.child), listed(tt.grandchild))
			inBubble(t, setup{script: s, answer: approveAll}, func(t *testing.T, w *world) {
				w.run("s1", "delegate it")
				synctest.Wait()
				var got []string
				last := ""
				for _, ev := range w.web.all("x.agent.subagent.started") {
					var s agent_tool.Started
					if err := json.Unmarshal(ev.Payload.(json.RawMessage), &s); err != nil {
						t.Fatal(err)
					}
					list := "null"
					if s.Tools != nil {
						list = fmt.Sprint(s.Tools)
					}
					got, last = append(got, list), list
				}
				equal(t, got, strings.Split(tt.want, ", ")...)
				may := func(name string) bool { return last == "null" || strings.Contains(last, name) }
				ran := strings.Join(w.ran, " ")
				if strings.Contains(ran, "boom") != may("danger") || strings.Contains(ran, "fine") != may("work") {
					t.Errorf("the last one, with the tools %s, ran %q", last, ran)
				}
			})
		})
	}
}

func listed(tools string) string {
	if tools == "null" {
		return ""
	}
	return `,"tools":` + tools
}
