package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/daemon"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// USE-9: an authorization server may take longer to make a token than an MCP server
// has to say which era it speaks.
func TestSlowAuthorizationServer(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var methods []string // of the requests that had the token
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/mcp" && r.Header.Get("Authorization") != "Bearer made":
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/mcp":
			var m struct {
				ID     json.RawMessage
				Method string
			}
			if err := json.NewDecoder(r.Body).Decode(&m); err != nil || m.ID == nil {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			mu.Lock()
			methods = append(methods, m.Method)
			mu.Unlock()
			result := map[string]string{
				"server/discover": `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}`,
				"tools/list":      `{"resultType":"complete","tools":[{"name":"t","inputSchema":{"type":"object"}}]}`,
			}[m.Method]
			if result == "" {
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
				return
			}
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server"):
			_ = json.NewEncoder(w).Encode(map[string]any{
				"issuer": srv.URL, "token_endpoint": srv.URL + "/token", "authorization_endpoint": srv.URL + "/a",
				"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
			})
		case r.URL.Path == "/token":
			select {
			case <-time.After(1500 * time.Millisecond): // the MCP server would have 1 s
				_, _ = fmt.Fprint(w, `{"access_token":"made","token_type":"Bearer","expires_in":3600}`)
			case <-r.Context().Done():
			}
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	b := newBox(t)
	b.serve("--mcp-config", b.config(map[string]any{"s": map[string]any{
		"type": "http", "url": srv.URL + "/mcp", "oauth": map[string]any{"grant": "client_credentials", "clientId": "c", "clientSecret": "s"},
	}}))
	eventually.True(t, "the server is ready", func() bool { return b.status().Servers[0].State == "ready" })
	if d := daemon.DetailOf(b.status().Servers[0]); d.Peer == nil || d.Peer.Era != servers.EraModern {
		t.Errorf("the server is %+v, want a modern one", d.Peer)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(methods) == 0 || methods[0] != "server/discover" {
		t.Errorf("requests %q, want server/discover first", methods)
	}
}
