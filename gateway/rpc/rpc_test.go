package rpc_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/gateway/rpc"
	"github.com/yaya-ai/yaya/gateway/wire/wiretest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// W-53, W-54, R7, AU-37: each method asks for its own scope.
func TestScopesOfMethods(t *testing.T) {
	w := wiretest.New(t)
	reader := w.Enroll("reader", auth.AgentsRead)
	for method, params := range map[string]any{"agent.spawn": map[string]any{}, "agent.kill": map[string]any{"id": "x"}, "skill.invoke": map[string]any{"skill": "y"}} {
		if _, rerr := w.Call(reader, method, params); rerr == nil || rerr.Code != -32003 {
			t.Errorf("%s: got %v, want an error, Code %v", method, rerr, -32003)
		}
	}
	for _, method := range []string{"cluster.status", "kernel.list"} {
		if _, rerr := w.Call(reader, method, map[string]any{}); rerr != nil {
			t.Errorf("%s: got %v, want no error", method, rerr)
		}
	}
	blind := w.Enroll("blind", auth.SessionsRead)
	for _, method := range []string{"cluster.status", "kernel.list", "agent.get"} {
		if _, rerr := w.Call(blind, method, map[string]any{}); rerr == nil || rerr.Code != -32003 {
			t.Errorf("%s: got %v, want an error, Code %v", method, rerr, -32003)
		}
	}
	c := w.Connect(blind, false, true)
	for _, topic := range []string{"agent:lobby", "kernel:k1", "cluster:consensus", "skill:evolution", "memory:query"} {
		if status, res := c.Ask(topic, "phx_join", nil); status != "error" || res["reason"] != "forbidden" {
			t.Errorf(`%s: got %s %v, want status "error", reason "forbidden"`, topic, status, res)
		}
	}
}

// COD-5: a request that a door admits without saying whose it is, is refused before its
// body is read.
func TestNobodyIsRefused(t *testing.T) {
	w := wiretest.New(t)
	table := api.NewTable(rpc.Routes(w.Plane, zerolog.Nop()), func(r api.Route) http.Handler { return r.Handler })
	for name, r := range map[string]struct{ method, path, body string }{
		"a call":            {"POST", "/rpc", `{"jsonrpc":"2.0","id":1,"method":"cluster.status"}`},
		"an unknown method": {"POST", "/rpc", `{"jsonrpc":"2.0","id":1,"method":"nope"}`},
		"not JSON":          {"POST", "/rpc", `{`},
		"the agents":        {"GET", "/agents", ""},
		"an agent":          {"GET", "/agents/x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			rec := httptest.NewRecorder()
			req := httptest.NewRequestWithContext(t.Context(), r.method, r.path, strings.NewReader(r.body))
			req.Header.Set("Content-Type", "application/json")
			table.ServeHTTP(rec, req)
			if rec.Code != http.StatusForbidden || !strings.Contains(rec.Body.String(), "not established") {
				t.Errorf("%s %s: got %d %s, want 403", r.method, r.path, rec.Code, rec.Body)
			}
		})
	}
}

// W-58, WS-26: JSON-RPC 2.0 to the letter.
func TestJSONRPC(t *testing.T) {
	w := wiretest.New(t)
	g := w.Enroll("phone")
	status := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"cluster.status"}` }
	many := func(n int) string {
		return "[" + strings.Repeat(status("1")+",", n-1) + status("1") + "]"
	}
	for name, tt := range map[string]struct{ body, want string }{
		"parse":           {`{"jsonrpc`, `"id":null,"error":{"code":-32700`},
		"duplicate":       {`{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}`, `-32700`},
		"not a request":   {`{"foo":1}`, `-32600,"message":"not a JSON-RPC 2.0 request`},
		"number":          {`1`, `-32600`},
		"version":         {`{"jsonrpc":"1.0","id":1,"method":"cluster.status"}`, `-32600`},
		"method type":     {`{"jsonrpc":"2.0","id":1,"method":1}`, `-32600`},
		"unknown":         {`{"jsonrpc":"2.0","id":"x","method":"nope"}`, `"id":"x","error":{"code":-32601`},
		"params array":    {`{"jsonrpc":"2.0","id":1,"method":"agent.get","params":[1]}`, `"error":{"code":-3260`},
		"params null":     {`{"jsonrpc":"2.0","id":1,"method":"agent.get","params":null}`, `"error":{"code":-3260`},
		"unknown param":   {`{"jsonrpc":"2.0","id":1,"method":"agent.get","params":{"ID":"x"}}`, `-32602`},
		"param type":      {`{"jsonrpc":"2.0","id":1,"method":"agent.get","params":{"id":7}}`, `-32602`},
		"string id":       {status(`"a\"b"`), `"id":"a\"b","result"`},
		"big id":          {status(`9007199254740993`), `"id":9007199254740993,"result"`},
		"empty batch":     {`[]`, `-32600`},
		"batch":           {`[` + status("1") + `,` + status(`"2"`) + `,1]`, `-32600`},
		"nested":          {`[[` + status("1") + `]]`, `-32600`},
		"large batch":     {many(51), `-32600`},
		"largest batch":   {many(50), `"result"`},
		"batch of a few":  {`[` + status("1") + `,{"jsonrpc":"2.0","method":"cluster.status"}]`, `[{"jsonrpc":"2.0","id":1,`},
		"same id, twice":  {`[` + status("1") + `,` + status("1") + `]`, `"id":1`},
		"notification":    {`{"jsonrpc":"2.0","method":"cluster.status"}`, ``},
		"notifications":   {`[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]`, ``},
		"deep":            {strings.Repeat("[", 100_000), `-32700`},
		"long number":     {status(strings.Repeat("1", 1001)), `-32700`},
		"invalid UTF-8":   {"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"a\"}", `-32700`},
		"trailing":        {status("1") + "{}", `-32700`},
		"object id":       {status(`{}`), `-32600`},
		"empty":           {``, `-32700`},
		"response":        {`{"jsonrpc":"2.0","id":1,"result":{}}`, `-32600`},
		"fractional id":   {status(`1.5`), `"id":1.5`},
		"params and more": {`{"jsonrpc":"2.0","id":1,"method":"cluster.status","params":{"x":1}}`, `-32602`},
	} {
		code, body := w.RPC(g, tt.body)
		if tt.want == "" {
			if code != 204 || body != "" {
				t.Errorf("%s: got %d %s, want code 204, no body", name, code, body)
			}
			continue
		}
		if code != 200 || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %.200s, want %s", name, code, body, tt.want)
		}
	}
	if code, _ := w.RPC(g, `{"x":"`+strings.Repeat("x", 1<<20)+`"}`); code != 413 { // HT-01
		t.Errorf("a large body: %d", code)
	}
}
