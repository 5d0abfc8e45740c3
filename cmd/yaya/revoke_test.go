package main

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/gateway/client"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// AU-16: revoking a device ends everything it has under way, within 5 s: its
// WebSocket, its stream, and its call of a real server's tool, which is told.
func TestRevocationEndsEverything(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	b.serve("--mcp-config", b.config(map[string]any{"fx": map[string]any{"command": fixture, "protocolEra": "legacy", "session": "shared"}}))
	creds, err := client.New("http://"+b.addr, "phone", "a phone")
	if err != nil {
		t.Fatal(err)
	}
	if err := creds.Enroll(t.Context(), nil, b.invite("default", "tools:call")); err != nil {
		t.Fatal(err)
	}
	lost := make(chan error, 16)
	ws := client.Start(client.Options{Credentials: creds, OnState: func(connected bool, why error) {
		if !connected && why != nil {
			select {
			case lost <- why:
			default:
			}
		}
	}})
	defer ws.Close()
	if _, _, err := ws.Connected(t.Context()); err != nil {
		t.Fatal(err)
	}
	phone := newRawClient(t, b.url(), false, func(c *rawClient) { c.header = http.Header{"Authorization": {"Bearer " + creds.Token}} })
	streamed := make(chan struct{}) // closed when the stream of its session has ended
	go func() {
		defer close(streamed)
		phone.done.Wait()
	}()
	called := make(chan error, 1)
	go func() {
		m, err := phone.post(t.Context(), map[string]any{"jsonrpc": "2.0", "id": "w", "method": "tools/call", "params": map[string]any{"name": "fx__wait", "arguments": map[string]any{}}}, "", "")
		if err == nil && m.Result != nil && m.Result["isError"] != true {
			t.Errorf("the call has succeeded: %+v", m)
		}
		called <- err
	}()
	owner := newRawClient(t, b.url(), false)
	until := func(tool, want string) {
		t.Helper()
		for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(20 * time.Millisecond) {
			got, err := owner.text(tool, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got == want {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s says %s, want %s", tool, got, want)
			}
		}
	}
	until("fx__waits", "1")
	b.must("device", "revoke", "phone")
	limit := time.After(eventually.Limit)
	for name, over := range map[string]func(){
		"the call":      func() { <-called },
		"the stream":    func() { <-streamed },
		"the WebSocket": func() { <-lost },
	} {
		done := make(chan struct{})
		go func() {
			over()
			close(done)
		}()
		select {
		case <-done:
		case <-limit:
			t.Fatalf("%s goes on", name)
		}
	}
	until("fx__cancelled", "1")
	if _, err := refusedWith(t.Context(), b.url(), creds.Token); err == nil {
		t.Error("the token still works")
	}
}

// refusedWith returns an error where a token does not get in.
func refusedWith(ctx context.Context, url, token string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusUnauthorized {
		return resp.StatusCode, os.ErrPermission
	}
	return resp.StatusCode, nil
}

// W-44, R30: tools that are quarantined stand in the audit, once.
func TestQuarantineIsAudited(t *testing.T) {
	t.Parallel()
	fixture := buildTool(t, "github.com/yaya-ai/yaya/internal/conformance/fixture")
	b := newBox(t)
	b.serve("--mcp-config", b.config(map[string]any{"fx": map[string]any{"command": fixture, "protocolEra": "legacy"}}))
	c := newRawClient(t, b.url(), false)
	if _, err := c.text("fx__change", nil); err != nil { // within the first seconds a server may still add tools
		t.Fatal(err)
	}
	var rows []struct {
		Target  string          `json:"target"`
		Payload json.RawMessage `json:"payload"`
	}
	for deadline := time.Now().Add(eventually.Limit); len(rows) == 0; time.Sleep(time.Second) {
		c.must("tools/list", nil)
		if _, err := c.text("fx__change", nil); err != nil && !strings.Contains(err.Error(), "waits for approval") {
			t.Fatalf("got %v, want no error, or one that says that the tool waits for approval", err)
		}
		if err := json.Unmarshal([]byte(b.must("audit", "--event", "tools_quarantined", "--json")), &rows); err != nil {
			t.Fatal(err)
		}
		if time.Now().After(deadline) {
			t.Fatal("nothing is recorded", b.must("mcp", "list"))
		}
	}
	if rows[0].Target != "fx" || !strings.Contains(string(rows[0].Payload), `"tool`) {
		t.Errorf("got %+v; want rows of fx, with the tool", rows)
	}
}
