package downstream_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/principal"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/mcpbridge/downstream"
)

// DN-02: a session is its principal's: whoever else learns its id can neither use
// nor end it, and what is kept by client is kept apart by principal.
func TestSessionsBelongToPrincipals(t *testing.T) {
	reg := new(tool.Registry)
	var seen []string
	reg.Replace("srv", []tool.Provided{{Tool: relay("srv__who", func(_ context.Context, c tool.Call) (tool.Result, error) {
		seen = append(seen, c.SessionID)
		return ok(`{"content":[]}`)
	})}})
	srv := downstream.New(downstream.Config{Dispatcher: tool.NewDispatcher(tool.DispatcherConfig{Registry: reg}), Registry: reg})
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		srv.ServeHTTP(w, r.WithContext(principal.With(r.Context(), r.Header.Get("X-Test-Principal"))))
	}))
	defer hs.Close()
	defer srv.Close()
	r := at(t, hs.URL)
	as := func(who string, h map[string]string) map[string]string {
		out := map[string]string{"X-Test-Principal": who}
		for k, v := range h {
			out[k] = v
		}
		return out
	}
	id := r.send("POST", initialize, as("ada", nil)).header.Get("Mcp-Session-Id")
	s := map[string]string{"Mcp-Session-Id": id}
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"srv__who"}}`
	for _, who := range []string{"bob", ""} {
		for _, method := range []string{"DELETE", "POST", "GET"} {
			body := ""
			if method == "POST" {
				body = call
			}
			h := as(who, s)
			h["Accept"] = "application/json, text/event-stream"
			if a := r.send(method, body, h); a.status != 404 {
				t.Errorf("%q, %s: %d %s", who, method, a.status, a.body)
			}
		}
	}
	if a := r.send("POST", call, as("ada", s)); a.status != 200 || len(seen) != 1 {
		t.Errorf("its own: %d %s", a.status, a.body)
	}
	for _, who := range []string{"ada", "bob", "ada"} {
		r.send("POST", strings.Replace(call, `"srv__who"`, `"srv__who",`+modernMeta, 1), as(who, modern("tools/call", "srv__who")))
	}
	if len(seen) != 4 || seen[1] == seen[2] || seen[1] != seen[3] {
		t.Errorf("clients of two principals are kept by %v", seen)
	}
}
