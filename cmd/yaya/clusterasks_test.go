package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// Every node lists a call that waits on one of them, and the first answer counts, wherever it is given.
func TestClusterAnswersAnywhere(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	all, phone := newCluster(t, n)
	north, south, west := all[0], all[1], all[2]
	ws := south.workspace()
	south.patches(map[string]string{"change": numbered})
	id := south.turn(ws, "change it")
	_, last := south.ask(id, "")

	asks := func(b *member) (out []admin.Ask) {
		t.Helper()
		b.admin("GET", "/approvals", "", http.StatusOK, &out)
		return out
	}
	for i, b := range all {
		want := "south"
		if b == south {
			want = ""
		}
		got := asks(b)
		if len(got) != 1 || got[0].SessionID != id || got[0].Tool != "apply_patch" || got[0].Node != want {
			t.Fatalf("the inbox of %s is %+v, want the call of south", nodeNames[i], got)
		}
	}
	answer := func(b *member, what string, token ...string) (int, string) {
		t.Helper()
		status, raw, _ := b.raw("POST", "/api/approvals/"+asks(south)[0].ID, `{"response":"`+what+`"}`, append([]string{"Content-Type", "application/json"}, token...)...)
		return status, string(raw)
	}
	// The phone may not answer calls, on any node.
	if status, got := answer(north, "approve", "Authorization", "Bearer "+phone.Token); status != http.StatusForbidden {
		t.Errorf("a device without the scope: %d %s, want 403", status, got)
	}
	ask := asks(south)[0].ID
	if status, got := answer(north, "approve"); status != http.StatusOK || !strings.Contains(got, `"by":"owner"`) {
		t.Errorf("the answer on north: %d %s, want 200", status, got)
	}
	if out, _ := south.outputs(id, last); !strings.Contains(out, "a.txt") {
		t.Errorf("the call on south has the result %s", out)
	}
	if got, err := os.ReadFile(filepath.Join(ws, "a.txt")); err != nil || string(got) != "1\ntwo\n" {
		t.Errorf("the file is %q, %v, want it changed", got, err)
	}
	for i, b := range all {
		if status, raw, _ := b.raw("POST", "/api/approvals/"+ask, `{"response":"reject"}`, "Content-Type", "application/json"); status != http.StatusConflict {
			t.Errorf("a second answer on %s: %d %s, want 409", nodeNames[i], status, raw)
		}
		eventually.True(t, "the inbox is empty", func() bool { return len(asks(b)) == 0 })
	}
	if status, raw, _ := west.raw("POST", "/api/approvals/nothing", `{"response":"reject"}`, "Content-Type", "application/json"); status != http.StatusNotFound {
		t.Errorf("an answer to nothing: %d %s, want 404", status, raw)
	}
}

// Somebody who sees the inbox of one node is asked about calls on another one; without anybody,
// nobody waits.
func TestClusterAsksWhoeverIsThere(t *testing.T) {
	t.Parallel()
	n := newNATS(t)
	all, _ := newCluster(t, n)
	north, south, west := all[0], all[1], all[2]
	south.must("config", "set", "approval.rules", `[{"provider":"foreign","origin":"mcp","decision":"ask"}]`)
	south.must("mcp", "add", "foreign", changing(t, func(s *sdk.Server) { sdk.AddTool(s, &sdk.Tool{Name: "weather"}, answers("sunny")) }))
	// A client that cannot be asked itself.
	mute := newRawClient(t, south.url(), true, func(c *rawClient) { c.caps = map[string]any{} })
	eventually.True(t, "the call is refused, since nobody is there to ask", func() bool {
		_, err := mute.text("foreign__weather", nil)
		return err != nil && strings.Contains(err.Error(), "nobody is there to ask")
	})
	page := west.watches()
	called := make(chan error, 1)
	go func() {
		_, err := mute.text("foreign__weather", nil)
		called <- err
	}()
	page(`"approvals"`)
	var asks []admin.Ask
	north.admin("GET", "/approvals", "", http.StatusOK, &asks)
	if len(asks) != 1 || asks[0].Tool != "foreign__weather" || asks[0].Node != "south" {
		t.Fatalf("the inbox of north is %+v, want the call on south", asks)
	}
	north.admin("POST", "/approvals/"+asks[0].ID, `{"response":"reject","feedback":"by another node"}`, http.StatusOK, nil)
	if err := <-called; err == nil || !strings.Contains(err.Error(), "by another node") {
		t.Errorf("the call came to %v, want the words of the answer", err)
	}
	page(`"approvals"`)
}

// watches opens the page's connection to a node. The answer waits for a text on it.
func (b *box) watches() (read func(want string)) {
	b.t.Helper()
	ws, _, err := websocket.DefaultDialer.DialContext(b.t.Context(), "ws://"+b.addr+"/api/live?vsn=2.0.0", http.Header{"Origin": {"http://" + b.addr}})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = ws.Close() })
	read = func(want string) {
		b.t.Helper()
		for deadline := time.Now().Add(eventually.Limit); ; {
			_ = ws.SetReadDeadline(deadline)
			_, data, err := ws.ReadMessage()
			if err != nil {
				b.t.Fatalf("no %s: %v", want, err)
			}
			if strings.Contains(string(data), want) {
				return
			}
		}
	}
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`["1","1","dashboard:main","phx_join",{}]`)); err != nil {
		b.t.Fatal(err)
	}
	read(`"status":"ok"`)
	return read
}
