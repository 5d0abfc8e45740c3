package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/gateway/admin"
)

// SEC-12: a masked secret is not taken to another address, to another command or to
// another name, and the refusal names it.
func TestMaskedSecretsDoNotMove(t *testing.T) {
	t.Parallel()
	var leaked atomic.Bool
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(fmt.Sprint(r.Header), "canary") {
			leaked.Store(true)
		}
		http.NotFound(w, r)
	}))
	defer evil.Close()
	mine := httptest.NewServer(http.NotFoundHandler())
	defer mine.Close()
	b := newBox(t)
	b.serve()
	add := func(name, config string) {
		t.Helper()
		var c admin.Change
		b.admin("POST", "/mcp/servers", fmt.Sprintf(`{"name":%q,"config":%s}`, name, config), 202, &c)
		b.admin("POST", "/mcp/changes/"+c.ID+"/apply", "", 200, nil)
	}
	add("web", fmt.Sprintf(`{"type":"http","url":"%s/mcp?key=canary","headers":{"Authorization":"Bearer canary"}}`, mine.URL))
	add("cmd", `{"command":"/nonexistent/mine","args":["a"],"env":{"API_KEY":"canary"}}`)
	for name, c := range map[string]struct{ method, path, body, field string }{
		"another address":      {"PUT", "/mcp/servers/web", fmt.Sprintf(`{"config":{"type":"http","url":"%s/mcp","headers":{"Authorization":"****"}}}`, evil.URL), "headers.Authorization"},
		"another path":         {"PUT", "/mcp/servers/web", fmt.Sprintf(`{"config":{"type":"http","url":"%s/evil","headers":{"Authorization":"****"}}}`, mine.URL), "headers.Authorization"},
		"the query's secret":   {"PUT", "/mcp/servers/web", fmt.Sprintf(`{"config":{"type":"http","url":"%s/mcp?key=****"}}`, evil.URL), "key"},
		"another command":      {"PUT", "/mcp/servers/cmd", `{"config":{"command":"/nonexistent/evil","args":["a"],"env":{"API_KEY":"****"}}}`, "env.API_KEY"},
		"other arguments":      {"PUT", "/mcp/servers/cmd", `{"config":{"command":"/nonexistent/mine","args":["evil"],"env":{"API_KEY":"****"}}}`, "env.API_KEY"},
		"a command's address":  {"PUT", "/mcp/servers/cmd", `{"config":{"command":"/nonexistent/mine","args":["a"],"env":{"API_KEY":"****","OPENAI_BASE_URL":"https://evil.example"}}}`, "env.OPENAI_BASE_URL"},
		"a command's proxy":    {"PUT", "/mcp/servers/cmd", `{"config":{"command":"/nonexistent/mine","args":["a"],"env":{"API_KEY":"****"},"env_vars":["HTTPS_PROXY"]}}`, "env_vars"},
		"another name":         {"POST", "/mcp/servers", `{"name":"renamed","config":{"command":"/nonexistent/mine","args":["a"],"env":{"API_KEY":"****"}}}`, "env.API_KEY"},
		"the last characters":  {"PUT", "/mcp/servers/cmd", `{"config":{"command":"/nonexistent/mine","args":["a"],"env":{"API_KEY":"****nary"}}}`, "env.API_KEY"},
		"an address's command": {"PUT", "/mcp/servers/web", `{"config":{"command":"/nonexistent/evil","env":{"Authorization":"****"}}}`, "env.Authorization"},
	} {
		t.Run(name, func(t *testing.T) {
			code, body, _ := b.raw(c.method, "/api"+c.path, c.body, "Content-Type", "application/json")
			if code != http.StatusBadRequest || !strings.Contains(string(body), c.field) || !strings.Contains(string(body), "enter the secret") {
				t.Errorf("got %d %s, want 400 that names %s", code, body, c.field)
			}
		})
	}
	// With the secret entered again, or nothing of that changed, it is done.
	for _, c := range []struct{ path, body string }{
		{"/mcp/servers/cmd", `{"config":{"command":"/nonexistent/mine","args":["a"],"env":{"API_KEY":"****"},"description":"d"}}`},
		{"/mcp/servers/web", fmt.Sprintf(`{"config":{"type":"http","url":"%s/mcp","headers":{"Authorization":"Bearer new"}}}`, evil.URL)},
	} {
		var ch admin.Change
		b.admin("PUT", c.path, c.body, 202, &ch)
		b.admin("POST", "/mcp/changes/"+ch.ID+"/apply", "", 200, nil)
	}
	file, err := os.ReadFile(filepath.Join(b.dir, "c", "mcp.json"))
	if err != nil || !strings.Contains(string(file), `"API_KEY": "canary"`) || !strings.Contains(string(file), "Bearer new") || strings.Contains(string(file), "****") {
		t.Errorf("the file is %s, %v", file, err)
	}
	if leaked.Load() {
		t.Error("a secret was sent to another address")
	}
}
