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
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/kernel/plugin"
)

// Y-200: a resource that this yaya does not have answers every request with 503.
func TestWithoutAnything(t *testing.T) {
	api := admin.New(admin.Config{Log: zerolog.Nop()})
	for _, path := range []string{"/api/config", "/api/settings", "/api/plugins", "/api/llm-providers", "/api/mcp/servers", "/api/mcp/quarantine", "/api/mcp/changes", "/api/tools", "/api/approvals", "/api/approvals/answered", "/api/devices", "/api/audit", "/api/cluster", "/api/metrics", "/api/setup"} {
		rec := httptest.NewRecorder()
		api.ServeHTTP(rec, httptest.NewRequestWithContext(auth.WithPrincipal(t.Context(), auth.LocalOwner), "GET", path, nil))
		var e map[string]string
		if rec.Code != http.StatusServiceUnavailable || json.Unmarshal(rec.Body.Bytes(), &e) != nil || !strings.HasPrefix(e["detail"], "this yaya has no ") {
			t.Errorf("%s: got %d %s, want 503 and a detail that names the missing part", path, rec.Code, rec.Body)
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
	for key, want := range map[string]string{"plugin.x.api_key": `"****"`, "plugin.x.token": `"****"`, "plugin.x.deep": `{"n":[{"secret":"****"}],"password":"****"}`, "loop.max_iterations": `5`, "approval.timeout": `"60s"`} {
		if string(all[key]) != want { // Y-203: defaults are in force, too
			t.Errorf("got %s is %s, want all[key] %v", key, all[key], want)
		}
	}
	w.want("GET", "/api/config/plugin.x.api_key", "", 200, `{"key":"plugin.x.api_key","value":"****"}`)
	w.want("GET", "/api/config/plugin.x.api_key?show=1", "", 200, `"value":"sk-123456789"`)
	w.want("GET", "/api/config/plugin.x.nothing", "", 404, "no value")
	w.want("GET", "/api/config/auth.issuer", "", 404, "no value")

	// A masked value that comes back changes nothing.
	w.want("PATCH", "/api/config/plugin.x.api_key", `{"value":"****"}`, 200, `"ok":true`)
	w.want("PATCH", "/api/config/plugin.x.deep", `{"value":{"password":"****","n":[{"secret":"****"}]}}`, 200, `"ok":true`)
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
	w.want("PATCH", "/api/config/plugin.z.a", `{"value":1}`, 200, "")
	w.want("PATCH", "/api/config/plugin.z.b", `{"value":1}`, 200, "")
	w.want("DELETE", "/api/config/plugin.z?below=1", "", 200, `{"key":"plugin.z.*","removed":true}`)
	w.want("GET", "/api/config/plugin.z.b", "", 404, "has no value")
	w.want("DELETE", "/api/config/plugin.z?below=1", "", 200, `"removed":false`)
	w.want("GET", "/api/settings", "", 200, `{"key":"loop.max_iterations","value":5,"origin":"set","doc":"model calls in one turn","type":"number","default":500}`)

	// The audit names each change and each shown secret, and contains no value.
	got := w.want("GET", "/api/audit", "", 200, `"event":"config_changed","actor":"owner","target":"plugin.x.api_key"`)
	if !strings.Contains(got, `"event":"secrets_shown","actor":"owner","target":"plugin.x.api_key"`) || strings.Contains(got, "hunter") || strings.Contains(got, "sk-1") {
		t.Errorf("the audit: %s", got)
	}
	w.who = auth.Principal{Kind: auth.External, ID: "issuer|eve"}
	w.want("GET", "/api/config/plugin.x.api_key?show=1", "", 403, "config:write")
	w.want("GET", "/api/config/plugin.x.api_key", "", 200, `"****"`)
}

// SEC-12: a key is not taken to another address than it was entered for, by whatever
// way an address is changed, and a mask is never a key.
func TestKeysStayWithTheirAddress(t *testing.T) {
	w := newWorld(t)
	w.want("POST", "/api/llm-providers", `{"id":"prod","plugin":"llm-openai","config":{"api_key":"canary","base_url":"https://a.example/v1"}}`, 201, "")
	w.want("POST", "/api/llm-providers", `{"id":"plain","plugin":"llm-openai","config":{"api_key":"canary"}}`, 201, "")
	w.want("PATCH", "/api/config/plugin.x.deep", `{"value":{"url":"https://a.example","auth":{"token":"canary"}}}`, 200, "")
	w.want("PATCH", "/api/config/plugin.x.list", `{"value":[{"name":"a","token":"canary"},{"name":"b","token":"other"}]}`, 200, "")
	const again, unknown = "enter the secret again", "enter the secret"
	for name, c := range map[string]struct{ method, path, body, why string }{
		"address":                           {"PATCH", "/api/llm-providers/prod", `{"config":{"base_url":"https://evil.example/v1"}}`, again},
		"address, the key masked":           {"PATCH", "/api/llm-providers/prod", `{"config":{"base_url":"https://evil.example/v1","api_key":"****"}}`, again},
		"path":                              {"PATCH", "/api/llm-providers/prod", `{"config":{"base_url":"https://a.example/evil"}}`, again},
		"port":                              {"PATCH", "/api/llm-providers/prod", `{"config":{"base_url":"https://a.example:444/v1"}}`, again},
		"scheme":                            {"PATCH", "/api/llm-providers/prod", `{"config":{"base_url":"http://a.example/v1"}}`, again},
		"another address beside it":         {"PATCH", "/api/llm-providers/prod", `{"config":{"proxy":"http://evil.example"}}`, again},
		"one setting":                       {"PATCH", "/api/config/providers.prod.base_url", `{"value":"https://evil.example/v1"}`, again},
		"its address removed":               {"DELETE", "/api/config/providers.prod.base_url", ``, again},
		"its plugin":                        {"PATCH", "/api/config/providers.prod.plugin", `{"value":"llm-echo"}`, again},
		"its plugin's address":              {"PATCH", "/api/config/plugin.llm_openai.base_url", `{"value":"https://evil.example/v1"}`, "providers.plain.api_key"},
		"an address beside, in a value":     {"PATCH", "/api/config/plugin.x.deep", `{"value":{"url":"https://evil.example","auth":{"token":"****"}}}`, again},
		"an address more, in a value":       {"PATCH", "/api/config/plugin.x.deep", `{"value":{"url":"https://a.example","proxy":"https://evil.example","auth":{"token":"****"}}}`, again},
		"elements in another order":         {"PATCH", "/api/config/plugin.x.list", `{"value":[{"name":"b","token":"****"},{"name":"a","token":"****"}]}`, again},
		"a mask for no secret":              {"PATCH", "/api/config/plugin.x.api_key", `{"value":"****"}`, unknown},
		"a mask for no secret, in a value":  {"PATCH", "/api/config/plugin.y.deep", `{"value":{"a":[{"token":"****"}]}}`, unknown},
		"a mask with an end":                {"PATCH", "/api/config/providers.prod.api_key", `{"value":"****nary"}`, unknown},
		"a mask in a secret":                {"PATCH", "/api/llm-providers/prod", `{"config":{"api_key":"Bearer ****"}}`, unknown},
		"a new provider with a mask":        {"POST", "/api/llm-providers", `{"id":"new","plugin":"llm-openai","config":{"api_key":"****"}}`, unknown},
		"a new provider, renamed from prod": {"POST", "/api/llm-providers", `{"id":"prod-2","plugin":"llm-openai","config":{"api_key":"****","base_url":"https://a.example/v1"}}`, unknown},
	} {
		t.Run(name, func(t *testing.T) { w.want(c.method, c.path, c.body, 400, c.why) })
	}
	if v := w.cfg.Text("providers.prod.api_key") + w.cfg.Text("providers.plain.api_key"); v != "canarycanary" {
		t.Errorf("the keys became %s", v)
	}
	if i := w.cfg.Providers().GetInstance("new"); i != nil {
		t.Errorf("a refused provider was written: %+v", i)
	}
	// A change that does not move a key is made, and so is one that enters the key again.
	for name, c := range map[string]struct{ method, path, body string }{
		"another field":           {"PATCH", "/api/llm-providers/prod", `{"config":{"model":"m","api_key":"****"}}`},
		"the same, otherwise":     {"PATCH", "/api/llm-providers/prod", `{"config":{"base_url":"HTTPS://A.example:443/v1/"}}`},
		"the same, masked":        {"PATCH", "/api/config/plugin.x.deep", `{"value":{"url":"https://a.example","auth":{"token":"****"},"more":1}}`},
		"elements as they were":   {"PATCH", "/api/config/plugin.x.list", `{"value":[{"name":"a","token":"****"},{"name":"b","token":"new"}]}`},
		"a provider without keys": {"POST", "/api/llm-providers", `{"id":"local","plugin":"llm-openai","config":{"base_url":"http://127.0.0.1:1/v1"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if code, body := w.do(c.method, c.path, c.body); code/100 != 2 {
				t.Errorf("got %d %s, want it done", code, body)
			}
		})
	}
	w.want("PATCH", "/api/llm-providers/prod", `{"config":{"base_url":"https://b.example/v1","api_key":"new"}}`, 200, "")
	if got := w.want("GET", "/api/config/plugin.x.list?show=1", "", 200, ""); !strings.Contains(got, `"token":"canary"`) || !strings.Contains(got, `"token":"new"`) {
		t.Errorf(`got %s, want the tokens "canary" and "new" in it`, got)
	}
	w.want("DELETE", "/api/config/providers.plain.api_key", "", 200, "")
	w.want("PATCH", "/api/config/plugin.llm_openai.base_url", `{"value":"https://other.example/v1"}`, 200, "")
}

// Y-210, Y-211, Y-212, Y-214, Y-215: the plugins.
func TestPlugins(t *testing.T) {
	w := newWorld(t)
	w.want("PATCH", "/api/config/plugin.llm_openai.base_url", `{"value":"http://127.0.0.1:1"}`, 200, "")
	w.want("PATCH", "/api/config/plugin.llm_openai.nested.api_key", `{"value":"sk-123456789"}`, 200, "")
	var out struct{ Plugins []admin.Plugin }
	if err := json.Unmarshal([]byte(w.want("GET", "/api/plugins", "", 200, "")), &out); err != nil || len(out.Plugins) != 2 {
		t.Fatalf("got %v, %v, want len(Plugins) 2", err, out)
	}
	echo, openai := out.Plugins[0], out.Plugins[1]
	if echo.Name != "llm-echo" || echo.Category != string(plugin.LLMProvider) || echo.Status != "loaded" || echo.Version == "" || !echo.Enabled || len(echo.CurrentConfig) != 0 {
		t.Errorf("got %+v; want llm-echo loaded as an llm-provider, enabled and without settings", echo)
	}
	if string(openai.CurrentConfig["base_url"]) != `"http://127.0.0.1:1"` || string(openai.CurrentConfig["nested"]) != `{"api_key":"****"}` || !strings.Contains(string(openai.ConfigSchema), "base_url") {
		t.Errorf("got %s, %s; want its base_url, a masked api_key, and base_url in the schema", openai.CurrentConfig, openai.ConfigSchema)
	}
	w.want("PATCH", "/api/plugins/llm-openai", `{"enabled":false}`, 200, `{"name":"llm-openai","enabled":false,"reload_required":true}`)
	if got := w.want("GET", "/api/plugins", "", 200, ""); !strings.Contains(got, `"name":"llm-openai","category":"llm-provider","status":"loaded"`) { // Y-211: it goes on
		t.Errorf("got %s, want llm-openai loaded until the reload", got)
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

func (i installer) Propose(_ context.Context, source string, editable bool) (admin.PluginPackage, error) {
	return admin.PluginPackage{Name: "x", Source: source + "@1", Digest: "sha256:1", Permissions: []string{"none"}, Editable: editable}, i.err
}

func (i installer) Update(_ context.Context, name, version string) (admin.PluginPackage, error) {
	return admin.PluginPackage{Name: name, Version: version, Permissions: []string{"none"}}, i.err
}
func (i installer) Packages() map[string]admin.Package                  { return nil }
func (i installer) Install(context.Context, string, bool, string) error { return i.err }
func (i installer) Reload(context.Context, string, string) error        { return i.err }
func (i installer) Uninstall(context.Context, string, bool) error       { return i.err }

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
		w.want("POST", "/api/plugins/install", `{"source":"./x","editable":true,"digest":"sha256:1"}`, c.status, c.want)
		if c.err != nil { // the same errors come when a package is shown
			w.want("POST", "/api/plugins/install", `{"source":"./x","editable":true}`, c.status, c.want)
			w.want("POST", "/api/plugins/x/update", `{}`, c.status, c.want)
			continue
		}
		w.want("POST", "/api/plugins/install", `{"source":"./x"}`, 200, `{"source":"./x@1","ok":false,"package":{"name":"x"`)
		w.want("POST", "/api/plugins/x/update", `{"version":"2.0.0"}`, 200, `"version":"2.0.0"`)
	}
	w.want("POST", "/api/plugins/install", `{"source":""}`, 400, "source")
	w.want("GET", "/api/audit?event=plugin_*", "", 200, `"target":"./x"`)
}

// A request that changes nothing succeeds without an entry in the audit: an entry says that
// something has changed.
func TestWhatChangesNothingIsNotAudited(t *testing.T) {
	w := newWorld(t)
	w.want("POST", "/api/llm-providers", `{"plugin":"llm-openai","id":"work","label":"Work","config":{"api_key":"sk-abcdefgh1234","model":"m"}}`, 201, "")
	for _, c := range []struct {
		name, method, path, body string
		event                    string // of the entry, "" for none
	}{
		{"a value", "PATCH", "/api/config/plugin.x.size", `{"value":{"a":1}}`, "config_changed"},
		{"the same value", "PATCH", "/api/config/plugin.x.size", `{"value":{ "a": 1 }}`, ""},
		{"another value", "PATCH", "/api/config/plugin.x.size", `{"value":2}`, "config_changed"},
		{"a secret", "PATCH", "/api/config/plugin.x.api_key", `{"value":"sk-12345678abcd"}`, "config_changed"},
		{"the same secret", "PATCH", "/api/config/plugin.x.api_key", `{"value":"sk-12345678abcd"}`, ""},
		{"another secret", "PATCH", "/api/config/plugin.x.api_key", `{"value":"sk-12345678efgh"}`, "config_changed"},
		{"a value taken back", "DELETE", "/api/config/plugin.x.size", "", "config_removed"},
		{"a value that nobody has set", "DELETE", "/api/config/plugin.x.size", "", ""},
		{"values taken back", "DELETE", "/api/config/plugin.x?below=1", "", "config_removed"},
		{"values that nobody has set", "DELETE", "/api/config/plugin.x?below=1", "", ""},
		{"a plugin that is on", "PATCH", "/api/plugins/llm-echo", `{"enabled":true}`, ""},
		{"a plugin off", "PATCH", "/api/plugins/llm-echo", `{"enabled":false}`, "plugin_switched"},
		{"a plugin that is off", "PATCH", "/api/plugins/llm-echo", `{"enabled":false}`, ""},
		{"a plugin on", "PATCH", "/api/plugins/llm-echo", `{"enabled":true}`, "plugin_switched"},
		{"the active provider", "PATCH", "/api/llm-providers/active", `{"name":"work"}`, "provider_activated"},
		{"the provider that is active", "PATCH", "/api/llm-providers/active", `{"name":"work"}`, ""},
		{"fields of a provider", "PATCH", "/api/llm-providers/work", `{"label":"Work","config":{"api_key":"sk-abcdefgh1234","model":"n"}}`, "provider_changed"},
		{"the same fields", "PATCH", "/api/llm-providers/work", `{"label":"Work","config":{"api_key":"sk-abcdefgh1234","model":"n"}}`, ""},
	} {
		entries := func() (all []control.Audit) {
			t.Helper()
			if err := json.Unmarshal([]byte(w.want("GET", "/api/audit", "", 200, "")), &all); err != nil {
				t.Fatal(err)
			}
			return all
		}
		was := len(entries())
		w.want(c.method, c.path, c.body, 200, "")
		var got string
		for _, e := range entries()[was:] {
			got += e.Event
			if c.name == "fields of a provider" && !strings.Contains(string(e.Payload), `"fields":["model"]`) {
				t.Errorf("%s: the entry says %s, want the field that has changed", c.name, e.Payload)
			}
		}
		if got != c.event {
			t.Errorf("%s: the audit has %q more, want %q", c.name, got, c.event)
		}
	}
}
