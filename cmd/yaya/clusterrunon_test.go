package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// runs writes the node's file of servers, and waits until each has the state.
func (m *member) runs(entries map[string]any, want string) {
	m.t.Helper()
	raw, err := json.Marshal(map[string]any{"mcpServers": entries})
	if err != nil {
		m.t.Fatal(err)
	}
	m.edit("mcp.json", string(raw))
	m.must("reload")
	m.waitStates(want)
}

// listedAs is the line of a server in yaya mcp list.
func (m *member) listedAs(name string) string {
	m.t.Helper()
	for line := range strings.Lines(m.must("mcp", "list")) {
		if strings.HasPrefix(line, name+" ") {
			return line
		}
	}
	return ""
}

// A server runs on one node, and is called through every node as if it ran there: lists, questions,
// progress, cancellation and notifications take the same way, for clients of both eras.
func TestClusterRunOn(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	tasks := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/taskserver")
	n := newNATS(t)
	all, phone := newCluster(t, n)
	north, south, west := all[0], all[1], all[2]
	entry := func(name, era string) map[string]any {
		return map[string]any{"command": fixture, "args": []string{"-name", name}, "protocolEra": era, "trust": "always", "run_on": "north"}
	}
	north.runs(map[string]any{"sl": entry("sl", "legacy"), "sm": entry("sm", "modern"), "ts": map[string]any{"command": tasks, "run_on": "north"}}, "sl ready\nsm ready\nts ready\n")
	south.runs(map[string]any{"sl": map[string]any{"run_on": "north"}, "sm": entry("sm", "modern"), "ts": map[string]any{"run_on": "north"}}, "sl ready\nsm ready\nts ready\n")
	tryTasks(t, south.url())
	west.runs(map[string]any{"sl": map[string]any{"run_on": "north"}}, "sl ready\n")
	for _, modern := range []bool{false, true} {
		for _, server := range []string{"sl", "sm"} {
			for row, cell := range tryMatrix(t, server, modern, fmt.Sprintf("modern=%v client of south, %s of north", modern, server), newRawClient(t, south.url(), modern)) {
				if cell != "✓" && (row != "ping" || !modern) {
					t.Errorf("%s: %s", row, cell)
				}
			}
		}
	}
	for _, line := range []string{south.listedAs("sl"), west.listedAs("sl")} {
		if !strings.Contains(line, " @north ") {
			t.Errorf("yaya mcp list shows %q, want that it runs on north", line)
		}
	}

	byPhone := func(b *member) *rawClient {
		return newRawClient(t, b.url(), true, func(c *rawClient) { c.header = http.Header{"Authorization": {"Bearer " + phone.Token}} })
	}
	echo := func(c *rawClient) string {
		got, err := c.text("sl__echo", map[string]any{"text": "hi"})
		return fmt.Sprint(got, err)
	}
	if got := echo(byPhone(south)); got != "hi<nil>" {
		t.Errorf("a device calls a server of another node: %s", got)
	}
	var seen []string
	for _, c := range north.calls("server=sl&tool=echo").Calls {
		seen = append(seen, c.Principal+" over "+c.Origin)
	}
	if got := strings.Join(seen, ", "); !strings.Contains(got, "device:phone over node") || !strings.Contains(got, "owner over node") {
		t.Errorf("the node that runs the server has recorded calls of %s, want those of the clients of the other node", got)
	}

	// The rules of both nodes hold, whatever surface they name.
	for rules, want := range map[string]string{
		`[{"principal":"device:phone","provider":"sl","decision":"deny","reason":"not the phone"}]`:               "not the phone",
		`[{"origin":"mcp","tool":"sl__echo","scope":"tools:call","decision":"deny","reason":"not from clients"}]`: "not from clients",
		`[{"origin":"node","decision":"deny","reason":"not from nodes"}]`:                                         "not from nodes",
	} {
		north.set("approval.rules", rules)
		if got := echo(byPhone(south)); !strings.Contains(got, want) {
			t.Errorf("north has the rule %s, and a call through south gets %s", rules, got)
		}
	}
	north.must("config", "unset", "approval.rules")
	before := len(north.calls("server=sl&tool=echo").Calls)
	south.set("approval.rules", `[{"provider":"sl","decision":"deny","reason":"south says no"}]`)
	if got := echo(byPhone(south)); !strings.Contains(got, "south says no") || len(north.calls("server=sl&tool=echo").Calls) != before {
		t.Errorf("south denies a call and it gets %s, or north has seen it", got)
	}
	south.must("config", "unset", "approval.rules")

	// A node passes no call on that another node has passed on.
	west.runs(map[string]any{"sl": map[string]any{"run_on": "south"}, "nowhere": map[string]any{"run_on": "east"}, "here": map[string]any{"run_on": "west"}}, "nowhere failed\nsl failed\nhere invalid\n")
	for name, want := range map[string]string{"sl": "the node south runs no server", "nowhere": "east is not a node of the cluster", "here": `no "command"`} {
		if out, _ := west.run("mcp", "get", name); !strings.Contains(out, want) {
			t.Errorf("yaya mcp get %s prints\n%s\nwant %q", name, out, want)
		}
	}
	if status, _, _ := south.raw("POST", "/node/servers/sl", `{}`, "Content-Type", "application/json"); status != http.StatusNotFound {
		t.Errorf("what nodes ask each other: %d, want 404", status)
	}

	// When its node is gone, a server is one that has failed, and it comes back with the node.
	north.kill()
	eventually.True(t, "south sees that the server is gone", func() bool { return strings.Contains(south.listedAs("sl"), "failed") })
	if got := echo(newRawClient(t, south.url(), false)); !strings.Contains(got, "north is not running") {
		t.Errorf("a call while north is gone gets %s, want the reason", got)
	}
	north.p = north.serve()
	north.waitStates("sl ready\nsm ready\nts ready\n")
	eventually.True(t, "the server is there again", func() bool { return echo(newRawClient(t, south.url(), true)) == "hi<nil>" })
}
