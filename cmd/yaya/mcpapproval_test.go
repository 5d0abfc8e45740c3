package main

import (
	"fmt"
	"strings"
	"testing"
)

// A rule can make the calls of MCP clients wait for approval: the client that calls
// is asked, in its era's way, sees all of what runs, and its answer is bound to
// just that. A client that cannot be asked is denied.
func TestApprovalOnTheMCPPath(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	b.must("config", "set", "approval.rules", `[{"origin":"mcp","tool":"fx__echo","decision":"ask"}]`)
	b.serve("--mcp-config", b.config(map[string]any{"fx": map[string]any{"command": fixture, "protocolEra": "legacy"}}))
	for _, modern := range []bool{false, true} {
		t.Run(map[bool]string{false: "legacy", true: "modern"}[modern], func(t *testing.T) {
			said := func(answer map[string]any) func(*rawClient) {
				return func(c *rawClient) { c.answer = map[string]map[string]any{"elicitation/create": answer} }
			}
			decide := func(d string) func(*rawClient) {
				return said(map[string]any{"action": "accept", "content": map[string]any{"decision": d, "feedback": "not like this"}})
			}
			echo := func(c *rawClient, text string) (string, error) {
				return c.text("fx__echo", map[string]any{"text": text, "n": 42})
			}
			c := newRawClient(t, b.url(), modern, decide("approve"))
			if got, err := echo(c, "one"); err == nil || !strings.Contains(err.Error(), "n") {
				t.Logf("%s %v", got, err) // the fixture's schema allows no n; what counts is that it was asked
			}
			if len(c.asked) != 1 || !strings.Contains(c.asked[0], "fx__echo") || !strings.Contains(c.asked[0], `"text": "one"`) || !strings.Contains(c.asked[0], `"n": 42`) {
				t.Errorf("asked %q", c.asked)
			}
			if got, err := c.text("fx__echo", map[string]any{"text": "two"}); err != nil || got != "two" {
				t.Errorf("approved: %q %v", got, err)
			}
			if got, err := c.text("fx__echo", map[string]any{"text": "two"}); err != nil || got != "two" || len(c.asked) != 3 {
				t.Errorf("an approval is for once: %q %v, asked %d times", got, err, len(c.asked))
			}
			if got, err := c.text("fx__cancelled", nil); err != nil || got != "0" || len(c.asked) != 3 {
				t.Errorf("what no rule matches: %q %v", got, err)
			}
			always := newRawClient(t, b.url(), modern, decide("approve_for_session"), func(c *rawClient) { c.caps["x"] = "always" })
			for range 3 {
				if got, err := always.text("fx__echo", map[string]any{"text": "same"}); err != nil || got != "same" {
					t.Errorf("for the session: %q %v", got, err)
				}
			}
			if _, err := always.text("fx__echo", map[string]any{"text": "other"}); err != nil || len(always.asked) != 2 {
				t.Errorf("other arguments: %v, asked %d times", err, len(always.asked))
			}
			for name, edit := range map[string]func(*rawClient){
				"rejected":    decide("reject"),
				"declined":    said(map[string]any{"action": "decline", "content": map[string]any{"feedback": "not like this"}}),
				"cancelled":   said(map[string]any{"action": "cancel"}),
				"no decision": said(map[string]any{"action": "accept", "content": map[string]any{}}),
				"a typo":      decide("approved"),
			} {
				no := newRawClient(t, b.url(), modern, edit, func(c *rawClient) { c.caps["x"] = name })
				got, err := no.text("fx__echo", map[string]any{"text": "no"})
				if err == nil || !strings.Contains(err.Error(), "rejected") || (strings.HasSuffix(name, "ed") && name != "cancelled" && !strings.Contains(err.Error(), "not like this")) {
					t.Errorf("%s: got %q, %v, want a rejection with its reason", name, got, err)
				}
			}
			mute := newRawClient(t, b.url(), modern, func(c *rawClient) { c.caps = map[string]any{} })
			if got, err := mute.text("fx__echo", map[string]any{"text": "no"}); err == nil || !strings.Contains(err.Error(), "nobody is there to ask") {
				t.Errorf("a client that cannot be asked: %q %v", got, fmt.Sprint(err))
			}
		})
	}
	// W-44: the audit names who approved what.
	if out := b.must("audit", "--event", "approval_answered", "--json"); !strings.Contains(out, `"tool": "fx__echo"`) || !strings.Contains(out, `"response": "approve_for_session"`) || !strings.Contains(out, `"response": "reject"`) {
		t.Errorf("got %v, want %q in it, %q in it, %q in it", out, `"tool": "fx__echo"`, `"response": "approve_for_session"`, `"response": "reject"`)
	}
}
