package kernel_test

import (
	"testing"

	"github.com/yaya-ai/yaya/kernel/event"
)

// The provider that a run names is that of its conversation, and of the sub-agents for which no model
// was chosen. The others keep theirs.
func TestGivenProviderAndSubAgents(t *testing.T) {
	inBubble(t, setup{
		script: `{"scenarios":[{"match":"^delegate","steps":[{"tool_calls":[{"name":"agent","args":{"goal":"first","model":"own"}}]},{"tool_calls":[{"name":"agent","args":{"goal":"second"}}]},{"text":"delegated"}]},
			{"match":"^first|^second","steps":[{"text":"done"}]}]}`,
		settings: map[string]string{"providers.given.plugin": `"llm-echo"`, "providers.own.plugin": `"llm-echo"`, "model.agent": `["own"]`},
		answer:   approveAll,
	}, func(t *testing.T, w *world) {
		w.Loop.SetProvider("s1", "given")
		w.run("s1", "delegate it")
		var got []string
		for _, ev := range w.web.all("llm.call.request") {
			who := "sub-agent "
			if ev.SessionID == event.Root(ev.SessionID) {
				who = "root "
			}
			got = append(got, who+ev.Payload.(event.LLMRequest).Provider)
		}
		equal(t, got, "root given", "sub-agent own", "root given", "sub-agent given", "root given")
	})
}
