package main

import (
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
