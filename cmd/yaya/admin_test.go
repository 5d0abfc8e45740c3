package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/gateway/api/openapitest"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// raw sends a request to the daemon, with headers by name and value in turn.
func (b *box) raw(method, target, body string, header ...string) (int, []byte, http.Header) {
	b.t.Helper()
	return b.rawBy(http.DefaultClient, method, target, body, header...)
}

// rawSocket is raw over the daemon's socket.
func (b *box) rawSocket(method, target, body string, header ...string) (int, []byte, http.Header) {
	b.t.Helper()
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", filepath.Join(b.dir, "d", "yaya.sock"))
	}}
	defer tr.CloseIdleConnections()
	return b.rawBy(&http.Client{Transport: tr}, method, target, body, header...)
}

func (b *box) rawBy(client *http.Client, method, target, body string, header ...string) (int, []byte, http.Header) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, "http://"+b.addr+target, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, raw, resp.Header
}

// admin sends a request to the admin API and reads its answer into out.
func (b *box) admin(method, path, body string, status int, out any) {
	b.t.Helper()
	var header []string
	if body != "" {
		header = []string{"Content-Type", "application/json"}
	}
	code, raw, _ := b.raw(method, "/api"+path, body, header...)
	if code != status {
		b.t.Fatalf("%s %s %s: %d %s, want %d", method, path, body, code, raw, status)
	}
	if out != nil {
		if err := json.Unmarshal(raw, out); err != nil {
			b.t.Fatalf("%s %s = %s, %v; want JSON", method, path, raw, err)
		}
	}
}

// Requests made from the OpenAPI document of the admin API, good ones and bad ones, to
// the whole program: no answer is the server's error, none is undocumented (Y-201).
func TestAdminOpenAPIFuzz(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("mcp", "add", "gone", "--", "/nonexistent/server")
	b.must("config", "set", "catalog.registries", "[]") // it is not what is tried
	b.must("config", "set", "models.source", modelSource(t, map[string]string{"/": someModels})+"/")
	b.serve()
	rounds := 120
	if testing.Short() {
		rounds = 10
	}
	ids := []string{"loop.max_iterations", "llm-echo", "repo_tree", "gone", "plugin.x.y", "llm-openai", "cursor", "1"} // 1 is the first call that is recorded
	n := 0
	openapitest.Fuzz(t, openapitest.API{
		Document: "/api/openapi.json", Do: func(method, target, body string, header ...string) (int, []byte, http.Header) {
			if strings.HasPrefix(target, "/api/secrets") || strings.HasPrefix(target, "/api/cluster/") { // who may is asked elsewhere
				return b.rawSocket(method, target, body, header...)
			}
			return b.raw(method, target, body, header...)
		}, Named: []string{"key", "name", "id", "tool", "client"},
		ID: func() string {
			n++
			return ids[n%len(ids)]
		},
		Skip: func(r *rand.Rand, op string) bool {
			switch op {
			case "rotateKeys": // each costs a second of CPU
				return r.IntN(20) > 0
			case "testProvider": // one that leads nowhere takes five
				return r.IntN(25) > 0
			case "followCalls", "followServerLogs": // they do not end
				return true
			case "removeServer", "switchPlugin":
				return r.IntN(10) > 0
			}
			return false
		},
		Body: func(r *rand.Rand, op string, o map[string]any) {
			switch op {
			case "addServer", "changeServer":
				o["config"] = map[string]any{"command": "/nonexistent/" + fmt.Sprint(r.IntN(9)), "args": []any{"a"}}
				if op == "addServer" && r.IntN(2) == 0 {
					o["name"] = fmt.Sprint("s", r.IntN(5))
				}
			case "createProvider":
				o["plugin"] = "llm-echo"
				if r.IntN(2) == 0 {
					delete(o, "id")
				}
				delete(o, "config")
			case "activateProvider":
				o["name"] = "llm-echo"
			case "callTool":
				o["arguments"] = map[string]any{}
			case "proposeClientChange":
				o["file"] = filepath.Join(b.dir, ".cursor", "mcp.json")
			case "inviteDevice", "approveDevice", "setScopes":
				o["scopes"] = []any{"sessions:read"}
				delete(o, "url")
			}
		},
		After: func([]string) { // what was proposed is applied some time
			var all []admin.Change
			b.admin("GET", "/mcp/changes", "", 200, &all)
			for _, c := range all {
				_, _, _ = b.raw("POST", "/api/mcp/changes/"+c.ID+"/apply", "")
			}
		},
		Rare: []string{"applyClientChange", "proposeClientChange", "applyChange", "withdrawChange", "approveTools", "readCallArtifact", "answerApproval", "approveDevice", "rejectDevice", "revokeDevice", "revokeToken", "setScopes", "installPlugin", "updatePlugin", "removePlugin", "reloadPlugin", "importServers", "rotateKeys", "removeServer", "updateProvider", "deleteProvider", "testProvider", "switchPlugin", "restartServer", "changeServer", "addServer", "inviteDevice", "unsetConfig", "getConfig", "lookAtFolder", "trustFolder", "revokeFolder", "setSecret", "removeSecret", "allowServer", "inviteNode", "removeNode", "drainNode", "getCatalogServer", "installCatalogServer", "updateCatalogServer"},
	}, rounds)
}

// A server is added, tried, changed, switched off and removed through the admin API,
// while yaya runs: with a real server behind it. The API shows no secret, and a shown
// configuration that is sent back keeps the stored ones (R18, R20, HT-25).
func TestServersByAPI(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	b := newBox(t)
	b.serve()
	everything := peerPath(t, "server-everything", "dist", "index.js")
	config := fmt.Sprintf(`{"command":%q,"args":[%q],"env":{"API_KEY":"sk-canary-123456"}}`, node, everything)
	var servers []admin.Server
	b.admin("GET", "/mcp/servers", "", 200, &servers)
	if len(servers) != 0 {
		t.Fatalf("got %v, want len(servers) 0", servers)
	}
	change := func(method, path, body string) admin.Change {
		t.Helper()
		var c admin.Change
		b.admin(method, path, body, 202, &c)
		return c
	}
	c := change("POST", "/mcp/servers", `{"name":"e","config":`+config+`}`)
	if c.Runs != node+" "+everything+" with API_KEY" || strings.Contains(string(c.Config), "canary") {
		t.Errorf("the change says %+v", c)
	}
	b.admin("GET", "/mcp/servers", "", 200, &servers)
	if len(servers) != 0 { // nothing is started before it is applied
		t.Fatalf("got %v, want len(servers) 0", servers)
	}
	b.admin("POST", "/mcp/changes/"+c.ID+"/apply", "", 200, nil)
	ready := func(state string) admin.Server {
		t.Helper()
		for deadline := time.Now().Add(eventually.Limit); time.Now().Before(deadline); {
			b.admin("GET", "/mcp/servers", "", 200, &servers)
			if i := slices.IndexFunc(servers, func(s admin.Server) bool { return s.Name == "e" && s.State == state }); i >= 0 {
				return servers[i]
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Fatalf("it is not %s: %+v", state, servers)
		return admin.Server{}
	}
	s := ready("ready")
	if s.Tools == 0 || !s.Editable || strings.Contains(string(s.Config), "canary") || s.StartMS == 0 {
		t.Errorf(`got %+v; want tools, a start time, editable, and no "canary" in its config`, s)
	}
	var called struct {
		OK      bool    `json:"ok"`
		TookMS  float64 `json:"took_ms"`
		Display []struct{ Text string }
	}
	b.admin("POST", "/tools/e__echo/call", `{"arguments":{"message":"héllo"}}`, 200, &called)
	if !called.OK || !strings.Contains(fmt.Sprint(called.Display), "héllo") || called.TookMS <= 0 {
		t.Errorf(`got %+v; want OK, with "héllo" and a time`, called)
	}
	b.admin("POST", "/tools/e__echo/call", `{"arguments":{"message":7}}`, 200, &called)
	if called.OK {
		t.Errorf("bad arguments: %+v", called)
	}
	b.admin("GET", "/mcp/servers", "", 200, &servers)
	if got := servers[0].Calls; got.Total < 1 || got.P50MS <= 0 {
		t.Errorf("calls %+v", got)
	}
	// The shown configuration is sent back with one change: the secret is still there.
	var shown map[string]any
	if err := json.Unmarshal(s.Config, &shown); err != nil {
		t.Fatal(err)
	}
	shown["disabled_tools"] = []string{"echo"}
	edited, err := json.Marshal(map[string]any{"config": shown})
	if err != nil {
		t.Fatal(err)
	}
	stale := change("PUT", "/mcp/servers/e", string(edited))
	c = change("PUT", "/mcp/servers/e", string(edited))
	b.admin("POST", "/mcp/changes/"+c.ID+"/apply", "", 200, nil)
	b.admin("POST", "/mcp/changes/"+stale.ID+"/apply", "", 409, nil)
	file, err := os.ReadFile(filepath.Join(b.dir, "c", "mcp.json"))
	if err != nil || !strings.Contains(string(file), "sk-canary-123456") || !strings.Contains(string(file), "disabled_tools") {
		t.Errorf("the file is %s, %v", file, err)
	}
	ready("ready")
	b.admin("POST", "/tools/e__echo/call", `{"arguments":{"message":"x"}}`, 200, &called)
	if called.OK {
		t.Error("a tool that is switched off was called")
	}
	b.admin("POST", "/mcp/servers/e/restart", "", 204, nil)
	ready("ready")
	shown["disabled"] = true
	if edited, err = json.Marshal(map[string]any{"config": shown}); err != nil {
		t.Fatal(err)
	}
	c = change("PUT", "/mcp/servers/e", string(edited))
	b.admin("POST", "/mcp/changes/"+c.ID+"/apply", "", 200, nil)
	ready("disabled")
	b.admin("POST", "/mcp/servers/e/restart", "", 400, nil)
	b.admin("DELETE", "/mcp/servers/e", "", 204, nil)
	b.admin("GET", "/mcp/servers", "", 200, &servers)
	if len(servers) != 0 {
		t.Errorf("it is still there: %+v", servers)
	}
	if out := b.must("audit", "--json"); strings.Contains(out, "canary") || !strings.Contains(out, `"server_changed"`) {
		t.Errorf("the audit: %s", out)
	}
}

// With --mcp-config the servers are somebody else's: they are shown, and not changed.
func TestForeignServersAreNotChanged(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := filepath.Join(b.dir, "other.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"x":{"command":"/nonexistent/x"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b.serve("--mcp-config", file)
	var servers []admin.Server
	b.admin("GET", "/mcp/servers", "", 200, &servers)
	if len(servers) != 1 || servers[0].Editable {
		t.Errorf("got %+v, want one server that is not editable", servers)
	}
	b.admin("POST", "/mcp/servers", `{"name":"y","config":{"command":"y"}}`, 400, nil)
	b.admin("DELETE", "/mcp/servers/x", "", 400, nil)
	b.admin("POST", "/mcp/servers/x/restart", "", 204, nil)
}

// The local owner's door: no device, no token, no challenge; a foreign page cannot open
// it. It reports changes. A client that has it open counts as somebody to ask; without
// one, nobody does (Y-141, DN-01).
func TestLive(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.must("config", "set", "plugin.strategy_coder.auto_verify", "false")
	b.script(`[{"match":"^ask","steps":[{"tool_calls":[{"name":"shell","args":{"command":"echo hi"}}]}]}]`)
	b.must("config", "set", "approval.rules", `[{"provider":"foreign","origin":"mcp","decision":"ask"}]`)
	b.must("mcp", "add", "foreign", changing(t, func(s *sdk.Server) { sdk.AddTool(s, &sdk.Tool{Name: "weather"}, answers("sunny")) }))
	b.serve()
	ask := func() (id string) {
		t.Helper()
		_, out := b.v1("POST", "/sessions", fmt.Sprintf(`{"workspace_path":%q}`, b.workspace()))
		id, _ = out["session_id"].(string)
		if code, out := b.v1("POST", "/sessions/"+id+"/messages", `{"role":"user","parts":[{"type":"text","text":"ask"}]}`); code != 202 {
			t.Fatalf("got %v, %v, want code 202", code, out)
		}
		return id
	}
	// A client that cannot be asked itself, and a tool about which somebody has to be.
	mute := newRawClient(t, b.url(), true, func(c *rawClient) { c.caps = map[string]any{} })
	if _, err := mute.text("foreign__weather", nil); err == nil || !strings.Contains(err.Error(), "nobody is there to ask") {
		t.Errorf("nobody was there: %v", err)
	}
	for _, origin := range []string{"http://evil.example", "null", "http://127.0.0.1:1"} {
		_, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+b.addr+"/api/live?vsn=2.0.0", http.Header{"Origin": {origin}})
		if err == nil || resp == nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: got %v %v, want an error, a resp, StatusCode %d", origin, resp, err, http.StatusForbidden)
		}
	}
	ws, resp, err := websocket.DefaultDialer.DialContext(t.Context(), "ws://"+b.addr+"/api/live?vsn=2.0.0", http.Header{"Origin": {"http://" + b.addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	if resp.Header.Get("X-YAMO-Challenge") != "" {
		t.Error("there is a challenge")
	}
	read := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(eventually.Limit); ; {
			_ = ws.SetReadDeadline(deadline)
			_, data, err := ws.ReadMessage()
			if err != nil {
				t.Fatalf("no %s: %v", want, err)
			}
			if strings.Contains(string(data), want) {
				return
			}
		}
	}
	read(`"auth_ok"`)
	if err := ws.WriteMessage(websocket.TextMessage, []byte(`["1","1","dashboard:main","phx_join",{}]`)); err != nil {
		t.Fatal(err)
	}
	read(`"status":"ok"`)
	var asks []admin.Ask
	called := make(chan error, 1)
	go func() {
		_, err := mute.text("foreign__weather", nil)
		called <- err
	}()
	read(`"approvals"`)
	b.admin("GET", "/approvals", "", 200, &asks)
	if len(asks) != 1 || asks[0].Tool != "foreign__weather" {
		t.Fatalf("asks: %+v", asks)
	}
	b.admin("POST", "/approvals/"+asks[0].ID, `{"response":"reject","feedback":"by the inbox"}`, 200, nil)
	if err := <-called; err == nil || !strings.Contains(err.Error(), "by the inbox") {
		t.Errorf("the call came to %v", err)
	}
	read(`"approvals"`)
	var ended []admin.PastAsk
	b.admin("GET", "/approvals/answered", "", 200, &ended)
	if len(ended) != 1 || ended[0].ID != asks[0].ID || asks[0].Server != "foreign" || ended[0].Server != "foreign" || ended[0].Response != "reject" || ended[0].Feedback != "by the inbox" || ended[0].By != "owner" {
		t.Errorf("answered: %+v, want the rejected call of the server foreign", ended)
	}
	id := ask()
	read(`"approvals"`)
	b.admin("GET", "/approvals", "", 200, &asks)
	if len(asks) != 1 || asks[0].SessionID != id || !strings.HasPrefix(string(asks[0].Params), `{"command":"echo hi",`) {
		t.Fatalf("asks: %+v", asks)
	}
	b.admin("POST", "/approvals/"+asks[0].ID, `{"response":"perhaps"}`, 400, nil)
	b.admin("POST", "/approvals/nothing", `{"response":"approve"}`, 404, nil)
	b.admin("POST", "/approvals/"+asks[0].ID, `{"response":"approve"}`, 200, nil)
	read(`"approvals"`)
	b.admin("POST", "/approvals/"+asks[0].ID, `{"response":"reject"}`, 409, nil)
	b.until(id, "", "turn_completed")
	b.admin("PATCH", "/config/plugin.x.y", `{"value":1}`, 200, nil)
	read(`"config"`)
	b.must("config", "set", "plugin.x.z", "2") // by another process
	read(`"config"`)
	b.must("device", "invite")
	read(`"devices"`)
}

// A server that a project brings waits, is shown as what it would run, and starts when
// somebody agrees to exactly that, without a restart of yaya (R18, UP-21).
func TestProjectServersByAPI(t *testing.T) {
	t.Parallel()
	node := needPeers(t)
	b := newBox(t)
	b.cwd = b.workspace()
	everything := peerPath(t, "server-everything", "dist", "index.js")
	if err := os.WriteFile(filepath.Join(b.cwd, ".mcp.json"), fmt.Appendf(nil, `{"mcpServers":{"brought":{"command":%q,"args":[%q],"env":{"TOKEN":"sk-canary-12345678"},"sandbox":{"read":[%q]}}}}`, node, everything, filepath.Dir(peerPath(t))), 0o600); err != nil {
		t.Fatal(err)
	}
	b.serve()
	var servers []admin.Server
	b.admin("GET", "/mcp/servers", "", 200, &servers)
	if len(servers) != 1 || servers[0].State != "waiting" || servers[0].Editable {
		t.Fatalf("servers %+v", servers)
	}
	var waiting []admin.Waiting
	b.admin("GET", "/mcp/quarantine", "", 200, &waiting)
	if len(waiting) != 1 || !strings.HasPrefix(waiting[0].Runs, node+" "+everything+" with TOKEN, in sandbox profile server: ") || strings.Contains(string(waiting[0].Config), "canary") {
		t.Fatalf("waiting %+v", waiting)
	}
	b.admin("POST", "/mcp/quarantine/brought/approve", `{"digest":"other"}`, 409, nil)
	b.admin("POST", "/mcp/quarantine/nothing/approve", `{"digest":"other"}`, 404, nil)
	b.admin("POST", "/mcp/servers/brought/restart", "", 404, nil) // it is not started by the back door
	b.admin("PUT", "/mcp/servers/brought", `{"config":{"command":"x"}}`, 404, nil)
	b.admin("POST", "/mcp/quarantine/brought/approve", fmt.Sprintf(`{"digest":%q}`, waiting[0].Digest), 204, nil)
	for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(50 * time.Millisecond) {
		b.admin("GET", "/mcp/servers", "", 200, &servers)
		if servers[0].State == "ready" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not start: %+v", servers)
		}
	}
	b.admin("GET", "/mcp/quarantine", "", 200, &waiting)
	if len(waiting) != 0 {
		t.Errorf("it still waits: %+v", waiting)
	}
	b.admin("DELETE", "/mcp/servers/brought", "", 400, nil) // it is the project's
}

// An approval covers exactly the tools that were shown: a digest of anything else is
// refused, even if the server has changed its tools since (R18, R19).
func TestQuarantineByAPI(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	var server *sdk.Server
	b.must("mcp", "add", "foreign", changing(t, func(s *sdk.Server) {
		server = s
		sdk.AddTool(s, &sdk.Tool{Name: "weather", Description: "One."}, answers("sunny"))
	}))
	b.serve()
	var waiting []admin.Waiting
	change := func(description string) admin.Waiting {
		t.Helper()
		sdk.AddTool(server, &sdk.Tool{Name: "weather", Description: description}, answers("sunny"))
		for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(50 * time.Millisecond) {
			b.must("mcp", "tools") // a boundary
			b.admin("GET", "/mcp/quarantine", "", 200, &waiting)
			if len(waiting) == 1 && strings.Contains(waiting[0].Tools[0].Diff, description) {
				return waiting[0]
			}
			if time.Now().After(deadline) {
				t.Fatalf("it does not wait: %+v", waiting)
			}
		}
	}
	first := change("Two.")
	second := change("Three.")
	approve := func(w admin.Waiting, tools string, status int) {
		t.Helper()
		b.admin("POST", "/mcp/quarantine/foreign/approve", fmt.Sprintf(`{"digest":%q,"tools":%s}`, w.Digest, tools), status, nil)
	}
	approve(first, `[]`, 409)
	approve(second, `["other"]`, 400)
	approve(second, `["weather"]`, 204)
	approve(second, `[]`, 404)
	if out := b.must("mcp", "tools"); !strings.Contains(out, "Three.") {
		t.Errorf("it is not offered: %s", out)
	}
}
