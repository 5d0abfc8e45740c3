package kernel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
// whatever it tells those below it. With an empty list it has no tools.
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

// R18: a file gives a sub-agent its instructions, and the tools that it gets at most. The question
// names the file, and a note the sub-agents.
func TestSubAgentOfAFile(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{`{"goal":"look","agent":"reviewer"}`, "[work]"},
		{`{"goal":"look","agent":"reviewer","tools":["danger","work"]}`, "[work]"},
		{`{"goal":"look","agent":"reviewer","tools":["danger"]}`, "[]"},
	} {
		s := `{"scenarios":[{"match":"^delegate","steps":[{"tool_calls":[{"name":"agent","args":` + tt.args + `}]},{"text":"delegated"}]},
			{"match":"sub-agent reviewer","steps":[{"tool_calls":[{"name":"danger","args":{"name":"boom"}}]},{"text":"looked"}]},{"match":"","steps":[{"text":"fine"}]}]}`
		inBubble(t, setup{script: s, answer: approveAll}, func(t *testing.T, w *world) {
			dir := filepath.Join(w.dir, "agents")
			if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "reviewer.md"), []byte("---\ndescription: Reads \"changes\"\ntools: work\n---\nBe strict.\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			w.run("s1", "delegate it")
			synctest.Wait()
			if h := w.requests()[0]; !slices.Contains(h, "user: [note of yaya: sub-agents]\nFor the argument agent of the tool agent, with what files say about them:\n- reviewer: \"Reads \\\"changes\\\"\"") {
				t.Errorf("the model gets %q, want a note on the sub-agent", h)
			}
			var s agent_tool.Started
			if err := json.Unmarshal(w.web.all("x.agent.subagent.started")[0].Payload.(json.RawMessage), &s); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(s.Tools); s.Tools == nil || got != tt.want || s.Goal != "look" {
				t.Errorf("%s starts with %v for %q, want %s", tt.args, s.Tools, s.Goal, tt.want)
			}
			if len(w.ran) != 0 {
				t.Errorf("%s ran %q, want nothing", tt.args, w.ran)
			}
			h := strings.Join(w.history(s.ChildID), "\n")
			if !strings.Contains(h, "You are the sub-agent reviewer.") || !strings.Contains(h, "\n\nBe strict.\n\nThis is your task:\n\nlook") {
				t.Errorf("the sub-agent is told %q, want its instructions and its task", h)
			}
			asked := w.web.all("approval.request")[0].Payload.(event.ApprovalRequest)
			if shown := string(asked.Params); !strings.Contains(shown, `/agents/reviewer.md","file_sha256":"`) || asked.Brief != "start the sub-agent reviewer: look" {
				t.Errorf("asked %q with %s, want the file and its digest", asked.Brief, shown)
			}
			if err := os.Remove(filepath.Join(dir, "reviewer.md")); err != nil {
				t.Fatal(err)
			}
			w.run("s1", "what now?")
			got := w.requests()
			if last := got[len(got)-1]; last[len(last)-1] != "user: [note of yaya: sub-agents]\nnone" {
				t.Errorf("without the file the model gets %q, want that there are none", last)
			}
		})
	}
}
