package kernel_test

import (
	"testing"

	"github.com/yaya-ai/yaya/kernel"
	"github.com/yaya-ai/yaya/kernel/session"
	"github.com/yaya-ai/yaya/kernel/tool"
)

// A session that plans only reads: the kind of yaya's own tools decides, and what a provided tool
// says of itself does not.
func TestPlanningOnlyReads(t *testing.T) {
	k := newWorld(t, setup{})
	for id, mode := range map[string]session.Mode{"p": session.Plan, "w": session.Work} {
		if _, err := k.Sessions.OpenIn(id, "", mode); err != nil {
			t.Fatal(err)
		}
	}
	def := func(kind tool.Kind, provider string) tool.Definition {
		return tool.Definition{Name: "x", Identity: tool.Identity{Provider: provider, Tool: "x"}, Kind: kind, Annotations: []byte(`{"readOnlyHint":true}`)}
	}
	agent := def(tool.KindExec, "")
	agent.Delegates = true
	for _, c := range []struct {
		name    string
		def     tool.Definition
		session string
		origin  tool.Origin
		refused bool
	}{
		{"a tool that reads", def(tool.KindRead, ""), "p", tool.OriginLoop, false},
		{"one that writes", def(tool.KindWrite, ""), "p", tool.OriginLoop, true},
		{"one that executes", def(tool.KindExec, ""), "p", tool.OriginLoop, true},
		{"one of the network", def(tool.KindNetwork, ""), "p", tool.OriginLoop, true},
		{"one of no kind", def("", ""), "p", tool.OriginLoop, true},
		{"a server's that says that it reads", def(tool.KindRead, "srv"), "p", tool.OriginLoop, true},
		{"a sub-agent", agent, "p", tool.OriginLoop, false},
		{"a sub-agent's call", def(tool.KindWrite, ""), "p::agent::a", tool.OriginLoop, true},
		{"at work", def(tool.KindExec, "srv"), "w", tool.OriginLoop, false},
		{"a plugin's, on its own session", def(tool.KindWrite, ""), "_bridge:helper:1", tool.OriginLoop, false},
		{"the user's own call", def(tool.KindExec, ""), "p", tool.OriginCLI, false},
	} {
		why, err := kernel.Planning(k.Kernel, tool.Call{SessionID: c.session, Origin: c.origin}, c.def)
		if err != nil || (why != "") != c.refused {
			t.Errorf("%s: refused with %q, %v, want %v", c.name, why, err, c.refused)
		}
	}
	if _, err := kernel.Planning(k.Kernel, tool.Call{SessionID: "gone", Origin: tool.OriginLoop}, def(tool.KindExec, "")); err == nil {
		t.Error("a call of no session: no error, want one, which denies")
	}
}
