package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// Y-200: what this yaya does not have answers 503, whatever is asked of it.
func TestWithoutAnything(t *testing.T) {
	api := admin.New(admin.Config{Log: zerolog.Nop()})
	for _, path := range []string{"/api/config", "/api/settings", "/api/plugins", "/api/llm-providers", "/api/mcp/servers", "/api/mcp/quarantine", "/api/mcp/changes", "/api/tools", "/api/approvals", "/api/devices", "/api/audit", "/api/cluster", "/api/metrics", "/api/setup"} {
		rec := httptest.NewRecorder()
		api.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		var e map[string]string
		if rec.Code != http.StatusServiceUnavailable || json.Unmarshal(rec.Body.Bytes(), &e) != nil || !strings.HasPrefix(e["detail"], "this yaya has no ") {
			t.Errorf("%s: %d %s", path, rec.Code, rec.Body)
		}
	}
}

// Y-203, Y-204, Y-205, Y-206, Y-208, Y-209: the configuration, one key and all of them.
func TestSettings(t *testing.T) {
	w := newWorld(t)
	w.want("PATCH", "/api/config/plugin.x.api_key", `{"value":"sk-123456789"}`, 200, `{"key":"plugin.x.api_key","ok":true}`)
	w.want("PATCH", "/api/config/plugin.x.token", `{"value":"abc"}`, 200, `"ok":true`)
	w.want("PATCH", "/api/config/plugin.x.deep", `{"value":{"password":"hunter2222","n":[{"secret":7}]}}`, 200, `"ok":true`)
	w.want("PATCH", "/api/config/loop.max_iterations", `{"value":5}`, 200, `"ok":true`)

	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(w.want("GET", "/api/config", "", 200, "")), &all); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{"plugin.x.api_key": `"****6789"`, "plugin.x.token": `"****"`, "plugin.x.deep": `{"n":[{"secret":"****"}],"password":"****2222"}`, "loop.max_iterations": `5`, "approval.timeout": `"60s"`} {
		if string(all[key]) != want { // Y-203: defaults are in force, too
			t.Errorf("%s is %s", key, all[key])
		}
	}
	w.want("GET", "/api/config/plugin.x.api_key", "", 200, `{"key":"plugin.x.api_key","value":"****6789"}`)
	w.want("GET", "/api/config/plugin.x.api_key?show=1", "", 200, `"value":"sk-123456789"`)
	w.want("GET", "/api/config/plugin.x.nothing", "", 404, "no value")
	w.want("GET", "/api/config/auth.issuer", "", 404, "no value")

	// A masked value that comes back changes nothing.
	w.want("PATCH", "/api/config/plugin.x.api_key", `{"value":"****6789"}`, 200, `"ok":true`)
	w.want("PATCH", "/api/config/plugin.x.deep", `{"value":{"password":"****2222","n":[{"secret":"****"}]}}`, 200, `"ok":true`)
	w.want("GET", "/api/config/plugin.x.api_key?show=1", "", 200, `"value":"sk-123456789"`)
	w.want("GET", "/api/config/plugin.x.deep?show=1", "", 200, `hunter2222`)

	for body, why := range map[string]string{`{"value":}`: "not what is expected", `{}`: "value", `{"value":1,"x":1}`: "unexpected", `not json`: "not what is expected"} { // Y-205
		w.want("PATCH", "/api/config/plugin.x.y", body, 400, why)
	}
	w.want("PATCH", "/api/config/loop.max_iterations", `{"value":"many"}`, 400, "whole number")
	w.want("PATCH", "/api/config/loop.max_iteration", `{"value":1}`, 400, "there is no key")
	w.want("PATCH", "/api/config/approval.rules", `{"value":[{"decision":"perhaps"}]}`, 400, "decision")
	w.want("PATCH", "/api/config/a%20b", `{"value":1}`, 400, "cannot be a key")
	w.want("DELETE", "/api/config/plugin.x.token", "", 200, `{"key":"plugin.x.token","removed":true}`)
	w.want("DELETE", "/api/config/plugin.x.token", "", 200, `"removed":false`) // Y-206
	w.want("DELETE", "/api/config/plugin.x.*", "", 400, "cannot be a key")
	w.want("GET", "/api/settings", "", 200, `{"key":"loop.max_iterations","value":5,"origin":"set","doc":"model calls in one turn"}`)

	// What was changed and shown stands in the audit, and no value does.
	got := w.want("GET", "/api/audit", "", 200, `"event":"config_changed","actor":"owner","target":"plugin.x.api_key"`)
	if !strings.Contains(got, `"event":"secrets_shown","actor":"owner","target":"plugin.x.api_key"`) || strings.Contains(got, "hunter") || strings.Contains(got, "sk-1") {
		t.Errorf("the audit: %s", got)
	}
	w.who = auth.Principal{}
	w.want("GET", "/api/config/plugin.x.api_key?show=1", "", 403, "config:write")
	w.want("GET", "/api/config/plugin.x.api_key", "", 200, `"****6789"`)
}

// Y-210, Y-211, Y-212, Y-214, Y-215: the plugins.
func TestPlugins(t *testing.T) {
	w := newWorld(t)
	w.want("PATCH", "/api/config/plugin.llm_openai.base_url", `{"value":"http://127.0.0.1:1"}`, 200, "")
	w.want("PATCH", "/api/config/plugin.llm_openai.nested.api_key", `{"value":"sk-123456789"}`, 200, "")
	var out struct{ Plugins []admin.Plugin }
	if err := json.Unmarshal([]byte(w.want("GET", "/api/plugins", "", 200, "")), &out); err != nil || len(out.Plugins) != 2 {
		t.Fatal(err, out)
	}
	echo, openai := out.Plugins[0], out.Plugins[1]
	if echo.Name != "llm-echo" || echo.Category != string(plugin.LLMProvider) || echo.Status != "loaded" || echo.Version == "" || !echo.Enabled || len(echo.CurrentConfig) != 0 {
		t.Errorf("got %+v", echo)
	}
	if string(openai.CurrentConfig["base_url"]) != `"http://127.0.0.1:1"` || string(openai.CurrentConfig["nested"]) != `{"api_key":"****6789"}` || !strings.Contains(string(openai.ConfigSchema), "base_url") {
		t.Errorf("got %s, %s", openai.CurrentConfig, openai.ConfigSchema)
	}
	w.want("PATCH", "/api/plugins/llm-openai", `{"enabled":false}`, 200, `{"name":"llm-openai","enabled":false,"reload_required":true}`)
	if got := w.want("GET", "/api/plugins", "", 200, ""); !strings.Contains(got, `"name":"llm-openai","category":"llm-provider","status":"loaded"`) { // Y-211: it goes on
		t.Errorf("got %s", got)
	}
	if v, _, ok := w.cfg.Get("plugin.llm_openai.enabled"); !ok || string(v) != "false" {
		t.Errorf("enabled is %s", v)
	}
	w.want("PATCH", "/api/plugins/nothing", `{"enabled":false}`, 404, "no plugin")
	w.want("PATCH", "/api/plugins/llm-openai", `{"enabled":"no"}`, 400, "boolean")
	w.want("DELETE", "/api/plugins/llm-echo", "", 400, "part of yaya")
	w.want("DELETE", "/api/plugins/nothing", "", 404, "no plugin")
	w.want("POST", "/api/plugins/install", `{"source":"example.com/x@v1"}`, 400, "installs no plugins")
}

type installer struct{ err error }

func (i installer) Install(context.Context, string, bool) error { return i.err }

// Y-213, Y-216: a refused source is the caller's mistake, a failure is not; what was
// installed is named.
func TestInstall(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		err    error
		status int
		want   string
	}{
		{nil, 200, `{"source":"./x","ok":true}`},
		{fmt.Errorf("%w: there is no plugin.toml in ./x", admin.ErrRefused), 400, "no plugin.toml"},
		{errors.New("go install: exit status 1"), 500, "exit status 1"},
	} {
		w.admin.Installer = installer{c.err}
		w.rebuild()
		w.want("POST", "/api/plugins/install", `{"source":"./x","editable":true}`, c.status, c.want)
	}
	w.want("POST", "/api/plugins/install", `{"source":""}`, 400, "source")
	w.want("GET", "/api/audit?event=plugin_*", "", 200, `"target":"./x"`)
}
