package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/kernel/tool"
)

// MIS-6, R25: what a session's agent may not use is in no view of the session, under any name, and
// other sessions have it.
func TestViewOfASession(t *testing.T) {
	_, reg := setup(t, tool.DispatcherConfig{}, echo(t, tool.Definition{Kind: tool.KindRead}, nil))
	reg.Replace("fs", []tool.Provided{{Tool: echo(t, tool.Definition{Name: "fs__read", Kind: tool.KindRead}, nil)}, {Tool: echo(t, tool.Definition{Name: "fs__late", Kind: tool.KindRead}, nil), Withheld: "it waits"}})
	reg.SetView(func(session string) func(*tool.Definition) bool {
		if session == "free" {
			return nil
		}
		return func(d *tool.Definition) bool { return strings.HasPrefix(d.Name, "echo") }
	})
	pinned, release := reg.Pin("held")
	defer release()
	for name, snap := range map[string]*tool.Snapshot{"pinned": pinned, "of the session": reg.For("held"), "of another": reg.For("other")} {
		if _, ok := snap.Lookup("fs__read"); ok || snap.Len() != 1 || len(snap.FunctionSpecs()) != 1 {
			t.Errorf("%s: %d tools, fs__read among them: %v; want echo alone", name, snap.Len(), ok)
		}
		if _, ok := snap.Withheld("fs__late"); ok {
			t.Errorf("%s: the withheld tool is known", name)
		}
		if _, ok := snap.Lookup("echo"); !ok {
			t.Errorf("%s: echo is missing", name)
		}
	}
	if snap := reg.For("free"); snap != reg.Snapshot() {
		t.Error("a free session has another view than the registry")
	}
}

// No provider takes the name of the tool that gives tasks to agents: its definition is refused.
func TestRunToolIsReserved(t *testing.T) {
	def := tool.Definition{Name: tool.RunTool, InputSchema: json.RawMessage(`{"type":"object"}`)}
	if err := tool.CheckDefinition(def); err == nil || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("CheckDefinition(%s) = %v, want that the name is reserved", def.Name, err)
	}
}

// An agent's call of an operation that is in no snapshot is bound by the view of its session; calls
// of others are not.
func TestViewBindsOperations(t *testing.T) {
	d, reg := setup(t, tool.DispatcherConfig{})
	reg.SetView(func(session string) func(*tool.Definition) bool {
		if session == "free" {
			return nil
		}
		return func(d *tool.Definition) bool { return d.Identity.Provider == "pub" }
	})
	for _, c := range []struct {
		session, provider string
		origin            tool.Origin
		want              bool
	}{
		{"held", "pub", tool.OriginLoop, true},
		{"held", "secret", tool.OriginLoop, false},
		{"free", "secret", tool.OriginLoop, true},
		{"held", "secret", tool.OriginCLI, true},
	} {
		op := echo(t, tool.Definition{Name: c.provider + "__op", Identity: tool.Identity{Provider: c.provider, Tool: "op"}, Kind: tool.KindRead}, nil)
		res := d.Run(t.Context(), op, tool.Call{ID: "c", Name: c.provider + "__op", Args: []byte(`{}`), SessionID: c.session, Origin: c.origin, Caller: tool.LocalOwner})
		if found := res.ErrorKind != tool.ErrNotFound; found != c.want {
			t.Errorf("%s of %s by %s: %+v, want found: %v", c.provider, c.session, c.origin, res, c.want)
		}
	}
}
