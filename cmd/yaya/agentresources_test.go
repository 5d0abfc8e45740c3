package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/yaya-ai/yaya/internal/fakellm"
)

// MIS-5: an agent lists and reads resources of a real reference server: listed ones, and those of a
// template, text and bytes. Without anybody to ask, and without a rule, it reads nothing.
func TestAgentReadsResources(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	b := newBox(t)
	cfg := b.writeConfig(node, nil)
	var steps []fakellm.Step
	for range 2 {
		steps = append(steps,
			fakellm.Step{ToolCalls: []fakellm.Call{{Name: "mcp_resources", Args: `{"server":"everything"}`}}},
			fakellm.Step{ToolCalls: []fakellm.Call{
				{Name: "mcp_read", Args: `{"uri":"demo://resource/dynamic/text/7"}`},
				{Name: "mcp_read", Args: `{"uri":"demo://resource/dynamic/blob/7"}`},
				{Name: "mcp_read", Args: `{"uri":"demo://resource/static/document/architecture.md"}`},
			}},
			fakellm.Step{Text: "done"})
	}
	s := fakellm.New(steps...)
	defer s.Close()
	b.provider(s)
	run := func(session string) map[string][]json.RawMessage {
		t.Helper()
		_, by := events(t, b.must("run", "--json", "--mcp-config", cfg, "--session", session, "do it"))
		return by
	}
	has := func(list []json.RawMessage, want string) bool {
		return slices.ContainsFunc(list, func(r json.RawMessage) bool { return bytes.Contains(r, []byte(want)) })
	}
	by := run("s1")
	for _, want := range []string{"template of everything: ", "demo://resource/dynamic/text/{resourceId}", "demo://resource/static/document/architecture.md"} {
		if !has(by["tool.call.result"], want) {
			t.Errorf("mcp_resources has no %q: %s", want, by["tool.call.result"])
		}
	}
	if len(by["tool.call.result"]) != 1 || len(by["tool.error"]) != 3 || has(by["tool.error"], "not_found") {
		t.Errorf("without a rule: %d results and %d errors, want the list, and no read: %s", len(by["tool.call.result"]), len(by["tool.error"]), by["tool.error"])
	}
	b.must("config", "set", "approval.rules", `[{"provider":"everything","decision":"allow"}]`)
	by = run("s2")
	for _, want := range []string{"Resource 7: ", "kept as artifact ", "# Everything Server"} {
		if !has(by["tool.call.result"], want) {
			t.Errorf("no result has %q: %s, %s", want, by["tool.call.result"], by["tool.error"])
		}
	}
}
