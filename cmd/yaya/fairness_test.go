package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// REL-4, REL-5, REL-9, OP-120, OP-122: while one client has hundreds of calls in flight that do not end and
// another one floods yaya with initialize, a third one's calls to the same server all succeed, its session
// lives, it can open more, and yaya is ready.
func TestFloodsLeaveOthersAlone(t *testing.T) {
	t.Parallel()
	const calls = 400 // more than slots and waiting places
	b := newBox(t)
	release := make(chan struct{})
	var running atomic.Int64
	b.must("mcp", "add", "far", changing(t, func(srv *sdk.Server) {
		sdk.AddTool(srv, &sdk.Tool{Name: "wait"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ map[string]any) (*sdk.CallToolResult, any, error) {
			running.Add(1)
			select {
			case <-release:
			case <-ctx.Done():
			}
			return &sdk.CallToolResult{}, nil, nil
		})
		sdk.AddTool(srv, &sdk.Tool{Name: "echo"}, func(context.Context, *sdk.CallToolRequest, map[string]any) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "pong"}}}, nil, nil
		})
	}))
	b.serve()
	ctx, stop := context.WithCancel(t.Context())
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	var floods sync.WaitGroup
	defer func() {
		close(release)
		stop()
		floods.Wait()
		c.CloseIdleConnections()
	}()
	post := func(ctx context.Context, session, body string) (int, string, string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url(), strings.NewReader(body))
		if err != nil {
			return 0, "", "", err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := c.Do(req)
		if err != nil {
			return 0, "", "", err
		}
		defer resp.Body.Close()
		out, err := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header.Get("Mcp-Session-Id"), string(out), err
	}
	hello := func(name string) string {
		return strings.Replace(initializeBody, `"name":"t"`, `"name":"`+name+`"`, 1)
	}
	open := func(name string) string {
		t.Helper()
		status, session, out, err := post(t.Context(), "", hello(name))
		if err != nil || status != http.StatusOK || session == "" {
			t.Fatalf("initialize of %s: got %d %s, %v, want a session", name, status, out, err)
		}
		return session
	}
	third := open("third")

	flood := open("flood")
	for n := range calls {
		floods.Go(func() {
			_, _, _, _ = post(ctx, flood, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"far__wait","arguments":{}}}`, n+1)) // answered, refused or cut off
		})
	}
	eventually.True(t, "the flood's calls are at the server", func() bool { return running.Load() >= 40 })
	var opened, refused atomic.Int64
	for range 2 {
		floods.Go(func() {
			for ctx.Err() == nil {
				status, _, _, err := post(ctx, "", hello("opener"))
				switch {
				case ctx.Err() != nil:
				case err != nil || status != http.StatusOK:
					refused.Add(1)
				default:
					opened.Add(1)
				}
			}
		})
	}
	eventually.True(t, "sessions are opened", func() bool { return opened.Load() > 64 })
	for n := range 100 {
		status, _, out, err := post(t.Context(), third, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"far__echo","arguments":{}}}`, n+1))
		if err != nil || status != http.StatusOK || !strings.Contains(out, "pong") || strings.Contains(out, `"isError":true`) {
			t.Fatalf("call %d of the third client beside %d calls: got %d %s, %v, want its result", n+1, running.Load(), status, out, err)
		}
	}
	open("third")
	resp, err := c.Get("http://" + b.addr + "/health?ready=1") //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("ready: got %s, want 200", resp.Status)
	}
	if n := refused.Load(); n != 0 {
		t.Errorf("%d sessions were refused, want none", n)
	}
}
