package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// asks sends a message of an MCP client to a node, as the holder of a token or, without one, as the owner.
func (b *box) asks(method, session, token, body string) (status int, answer string, header http.Header) {
	b.t.Helper()
	h := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
	if session != "" {
		h = append(h, "Mcp-Session-Id", session)
	}
	if token != "" {
		h = append(h, "Authorization", "Bearer "+token)
	}
	status, raw, header := b.raw(method, "/mcp", body, h...)
	return status, string(raw), header
}

// begins begins an MCP session.
func (b *box) begins(token string) (session string) {
	b.t.Helper()
	status, answer, header := b.asks("POST", "", token, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	if session = header.Get("Mcp-Session-Id"); status != http.StatusOK || session == "" {
		b.t.Fatalf("initialize: %d %s", status, answer)
	}
	if status, answer, _ := b.asks("POST", session, token, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); status != http.StatusAccepted {
		b.t.Fatalf("notifications/initialized: %d %s", status, answer)
	}
	return session
}

const ping = `{"jsonrpc":"2.0","id":"p","method":"ping"}`

// CL-13: any node serves the session of an MCP client, whichever node it began on, to its
// principal and to nobody else. A session ends with its node.
func TestClusterServesSessionsAnywhere(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	all, phone := newCluster(t, n)
	north, south, west := all[0], all[1], all[2]
	for _, token := range []string{"", phone.Token} {
		session := north.begins(token)
		for _, b := range all {
			b.knows(north.box)
			if status, answer, _ := b.asks("POST", session, token, ping); status != http.StatusOK || !strings.Contains(answer, `"result":{}`) {
				t.Errorf("a node answers a session of another one with %d %s, want 200 and a result", status, answer)
			}
		}
		if status, answer, _ := south.asks("POST", session, token, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); status != http.StatusOK || !strings.Contains(answer, `"tools":[`) {
			t.Errorf("tools/list on another node: %d %s", status, answer)
		}
		other := phone.Token
		if token != "" {
			other = ""
		}
		if status, answer, _ := south.asks("POST", session, other, ping); status != http.StatusNotFound {
			t.Errorf("another principal gets %d %s, want 404", status, answer)
		}
		// A client cannot say who it is.
		if status, answer, _ := south.rawHeader(session, "Yaya-Caller", "owner"); token != "" && status != http.StatusNotFound {
			t.Errorf("a client that calls itself the owner gets %d %s, want 404", status, answer)
		}
		if status, answer, _ := south.asks("DELETE", session, token, ""); status != http.StatusNoContent {
			t.Errorf("DELETE on another node: %d %s, want 204", status, answer)
		}
		if status, _, _ := north.asks("POST", session, token, ping); status != http.StatusNotFound {
			t.Errorf("a session that another node has ended: %d, want 404", status)
		}
	}

	onWest := west.begins(phone.Token)
	if status, _, _ := north.asks("POST", onWest, phone.Token, ping); status != http.StatusOK {
		t.Errorf("a session of west on north: %d, want 200", status)
	}
	west.must("restart")
	eventually.True(t, "a session outlives a restart of its node", func() bool {
		status, _, _ := north.asks("POST", onWest, phone.Token, ping)
		return status == http.StatusOK
	})
	north.must("device", "revoke", "phone")
	for _, b := range all {
		b.knows(north.box)
		if status, _, _ := b.asks("POST", onWest, phone.Token, ping); status != http.StatusUnauthorized {
			t.Errorf("a revoked device gets %d, want 401", status)
		}
	}

	owned := west.begins("")
	west.kill()
	began := time.Now()
	if status, answer, _ := north.asks("POST", owned, "", ping); status != http.StatusNotFound {
		t.Errorf("a session of a node that was killed: %d %s, want 404, so that the client begins another one", status, answer)
	}
	t.Logf("the client knew after %v", time.Since(began).Round(time.Millisecond))
	if status, _, _ := north.asks("POST", owned+"x", "", ping); status != http.StatusNotFound {
		t.Errorf("a session of no node: %d, want 404", status)
	}
}

func (b *box) rawHeader(session string, header ...string) (int, string, http.Header) {
	b.t.Helper()
	status, raw, h := b.raw("POST", "/mcp", ping, append(header, "Content-Type", "application/json", "Accept", "application/json", "Mcp-Session-Id", session)...)
	return status, string(raw), h
}

// Any node lists and serves the sessions of agents of all nodes, and says which nodes do not answer.
func TestClusterServesAgentsAnywhere(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	all, phone := newCluster(t, n)
	north, south, west := all[0], all[1], all[2]
	for i, b := range all {
		b.must("run", "--session", "of-"+nodeNames[i], "hello")
	}
	listed := func(b *member) string {
		t.Helper()
		var out struct {
			Sessions []struct{ ID, Node string }
			Missing  []string `json:"missing_nodes"`
		}
		status, raw, _ := b.raw("GET", "/v1/sessions", "")
		if err := json.Unmarshal(raw, &out); status != http.StatusOK || err != nil {
			t.Fatalf("the list: %d %s, %v", status, raw, err)
		}
		var words []string
		for _, s := range out.Sessions {
			if strings.HasPrefix(s.ID, "of-") {
				words = append(words, s.ID+"@"+s.Node)
			}
		}
		return strings.Join(append(words, out.Missing...), " ")
	}
	if got, want := listed(north), "of-west@west of-south@south of-north@"; got != want {
		t.Errorf("north lists %q, want %q", got, want)
	}
	if got, want := listed(west), "of-west@ of-south@south of-north@north"; got != want {
		t.Errorf("west lists %q, want %q", got, want)
	}

	_, last := north.until("of-south", "", "turn_completed")
	status, turn := north.v1("POST", "/sessions/of-south/messages", `{"role":"user","parts":[{"type":"text","text":"again"}]}`)
	if status != http.StatusAccepted {
		t.Fatalf("a message to a session of another node: %d %v", status, turn)
	}
	for _, token := range []string{"", phone.Token} {
		north.token, west.token = token, token
		if events, _ := north.until("of-south", last, "turn_completed"); !strings.Contains(names(events), "turn_started") {
			t.Errorf("the events of the turn on another node are %s", names(events))
		}
		if status, got := west.v1("GET", "/sessions/of-south", ""); status != http.StatusOK || got["last_turn_id"] != turn["turn_id"] {
			t.Errorf("the session on west: %d, last turn %v; want %v", status, got["last_turn_id"], turn["turn_id"])
		}
	}
	north.token = ""
	if out, err := north.run("run", "--session", "of-west", "third"); err == nil || !strings.Contains(out, "is on the node west") {
		t.Errorf("yaya run made a session that another node has: %v\n%s", err, out)
	}
	for path, want := range map[string]int{"/sessions/nowhere": http.StatusNotFound, "/sessions/x%2F..%2Fof-south": http.StatusNotFound, "/sessions/of-south/turns": http.StatusOK} {
		if status, got := north.v1("GET", path, ""); status != want {
			t.Errorf("GET %s: %d %v, want %d", path, status, got, want)
		}
	}
	// Only nodes ask each other.
	if status, _, _ := north.raw("GET", "/node/sessions?limit=1", ""); status != http.StatusNotFound {
		t.Errorf("what nodes ask each other: %d, want 404", status)
	}

	south.kill()
	eventually.True(t, "a list says which node does not answer", func() bool {
		return listed(north) == "of-south@south of-west@west of-north@ south"
	})
}
