package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/gateway/admin"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/journal"
	"github.com/yaya-ai/yaya/kernel/bus"
	"github.com/yaya-ai/yaya/kernel/config"
	"github.com/yaya-ai/yaya/kernel/event"
	"github.com/yaya-ai/yaya/kernel/plugin"
	"github.com/yaya-ai/yaya/kernel/tool"
	"github.com/yaya-ai/yaya/plugins/llm_echo"
	"github.com/yaya-ai/yaya/plugins/llm_openai"
	"github.com/yaya-ai/yaya/plugins/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type world struct {
	t    *testing.T
	dir  string
	api  http.Handler
	cfg  *config.Store
	bus  *bus.Bus
	who  auth.Principal
	dev  *auth.Authority
	log  *local.Log
	mu   sync.Mutex
	asks []event.Event

	admin admin.Config
}

// rebuild makes the API of what w.admin says.
func (w *world) rebuild() {
	w.t.Helper()
	w.api = admin.New(w.admin)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), bus: bus.New(bus.Config{}), who: auth.LocalOwner}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	if w.cfg, err = config.Open(config.Options{Root: root}); err != nil {
		t.Fatal(err)
	}
	w.cfg.Bind(w.bus)
	reg, err := plugin.NewRegistry(plugin.Config{Bus: w.bus, Config: w.cfg, Tools: new(tool.Registry), State: root, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	reg.Load(t.Context(), true, llm_echo.New(), llm_openai.New(provider.Env{Getenv: func(string) string { return "" }}))
	if err := reg.Seed(); err != nil {
		t.Fatal(err)
	}
	_, err = bus.On(w.bus, bus.SubscribeOptions{Name: "t"}, event.LLMCallRequest, func(_ context.Context, ev event.Event, _ event.LLMRequest) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.asks = append(w.asks, ev)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := root.Mkdir("keys", 0o700); err != nil {
		t.Fatal(err)
	}
	keys, err := root.OpenRoot("keys")
	if err != nil {
		t.Fatal(err)
	}
	if w.dev, err = auth.NewAuthority(auth.AuthorityConfig{Keys: keys}); err != nil {
		t.Fatal(err)
	}
	reads := new(admin.Reads)
	log, err := local.Open(journal.Root(root), local.Options{Projections: []control.Projection{w.dev, reads}})
	if err != nil {
		t.Fatal(err)
	}
	w.log = log
	if err := w.dev.Start(log); err != nil {
		t.Fatal(err)
	}
	w.admin = admin.Config{Bus: w.bus, Settings: w.cfg, Plugins: reg, Devices: w.dev, Control: log, Reads: reads, Log: zerolog.Nop()}
	w.rebuild()
	t.Cleanup(func() {
		if err := errors.Join(reg.Stop(), w.bus.Close(context.Background()), log.Close(), keys.Close(), root.Close()); err != nil {
			t.Errorf("Close of the plugins, the bus and the log = %v, want no error", err)
		}
	})
	return w
}

// do sends a request and returns status and body.
func (w *world) do(method, path, body string) (int, string) {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r = r.WithContext(auth.WithPrincipal(r.Context(), w.who))
	rec := httptest.NewRecorder()
	w.api.ServeHTTP(rec, r)
	data, err := io.ReadAll(rec.Result().Body) //nolint:forbidigo // test
	if err != nil {
		w.t.Fatal(err)
	}
	if rec.Code >= 400 {
		var e map[string]string // Y-201: errors carry detail, and nothing else
		if err := json.Unmarshal(data, &e); err != nil || e["detail"] == "" || len(e) != 1 {
			w.t.Errorf("%s %s: the error is %s", method, path, data)
		}
	}
	return rec.Code, string(data)
}

func (w *world) want(method, path, body string, status int, contains string) string {
	w.t.Helper()
	code, got := w.do(method, path, body)
	if code != status || !strings.Contains(got, contains) {
		w.t.Errorf("%s %s %s: got %d %s, want %d with %q", method, path, body, code, got, status, contains)
	}
	return got
}

// W-44, R30: a request that changes providers, or shows their secrets, is in the audit
// before it takes effect, without any value; without the entry it has no effect.
func TestProviderChangesAreAudited(t *testing.T) {
	w := newWorld(t)
	w.want("POST", "/api/llm-providers", `{"id":"one","plugin":"llm-openai","config":{"api_key":"sk-canary-1"}}`, 201, "")
	w.want("PATCH", "/api/llm-providers/one", `{"label":"L","config":{"model":"m"}}`, 200, "")
	w.want("PATCH", "/api/llm-providers/active", `{"name":"one"}`, 200, "")
	w.want("GET", "/api/llm-providers?show=1", "", 200, "sk-canary-1")
	w.want("DELETE", "/api/llm-providers/one", "", 409, "active")
	w.want("PATCH", "/api/llm-providers/active", `{"name":"llm-echo"}`, 200, "")
	w.want("POST", "/api/llm-providers", `{"id":"two","plugin":"llm-openai"}`, 201, "")
	w.want("DELETE", "/api/llm-providers/two", "", 204, "")
	got := w.want("GET", "/api/audit", "", 200, "")
	if strings.Contains(got, "canary") {
		t.Error("a secret is in the audit")
	}
	var rows []control.Audit
	if err := json.Unmarshal([]byte(got), &rows); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, r := range rows {
		if strings.HasPrefix(r.Event, "provider_") || r.Event == "secrets_shown" {
			seen = append(seen, r.Actor+" "+r.Event+" "+r.Target+" "+string(r.Payload))
		}
	}
	want := []string{
		`owner provider_created one {"plugin":"llm-openai","fields":["api_key","label"]}`, `owner provider_changed one {"fields":["model","label"]}`, `owner provider_activated one {}`,
		`owner secrets_shown llm-providers {}`, `owner provider_activated llm-echo {}`, `owner provider_created two {"plugin":"llm-openai","fields":["label"]}`, `owner provider_deleted two {"plugin":"llm-openai"}`,
	}
	if !slices.Equal(seen, want) {
		t.Errorf("the audit has\n%s", strings.Join(seen, "\n"))
	}
	if err := w.log.Close(); err != nil {
		t.Fatal(err)
	}
	w.want("PATCH", "/api/llm-providers/one", `{"label":"M"}`, 503, "control log")
	w.want("GET", "/api/llm-providers?show=1", "", 503, "control log")
	w.want("GET", "/api/llm-providers", "", 200, `"label":"L"`)
}

// Y-90, Y-100: a bare array of instances, secrets masked unless asked for.
func TestList(t *testing.T) {
	w := newWorld(t)
	w.want("POST", "/api/llm-providers", `{"id":"prod","plugin":"llm-openai","label":"Production","config":{"api_key":"sk-123456789","model":"m","nested":{"token":"abcdefgh"}}}`, 201, `"****"`)
	var rows []admin.Provider
	if err := json.Unmarshal([]byte(w.want("GET", "/api/llm-providers", "", 200, "")), &rows); err != nil {
		t.Fatal(err)
	}
	if len(rows) != 3 || rows[0].ID != "llm-echo" || !rows[0].Active || rows[2].ID != "prod" || rows[2].Active || rows[2].Label != "Production" || rows[2].Plugin != "llm-openai" {
		t.Fatalf("got %+v; want 3 providers: llm-echo first and active, prod of llm-openai last", rows)
	}
	if c := rows[2].Config; string(c["api_key"]) != `"****"` || string(c["model"]) != `"m"` || string(c["nested"]) != `{"token":"****"}` {
		t.Errorf("got %s; want its secrets masked, and the model m", c)
	}
	if !strings.Contains(string(rows[2].ConfigSchema), "base_url") {
		t.Errorf("schema %s", rows[2].ConfigSchema)
	}
	w.want("GET", "/api/llm-providers?show=1", "", 200, `"sk-123456789"`)
	// A masked value that comes back changes nothing.
	w.want("PATCH", "/api/llm-providers/prod", `{"config":{"api_key":"****"}}`, 200, `"****"`)
	w.want("GET", "/api/llm-providers?show=1", "", 200, `"sk-123456789"`)
}

// Y-91, Y-92, Y-93, Y-99: creating, with an id or without.
func TestCreate(t *testing.T) {
	w := newWorld(t)
	var row admin.Provider
	if err := json.Unmarshal([]byte(w.want("POST", "/api/llm-providers", `{"plugin":"llm-echo"}`, 201, "")), &row); err != nil {
		t.Fatal(err)
	}
	if ok, _ := regexp.MatchString(`^llm-echo-[0-9a-f]{8}$`, row.ID); !ok { // Y-92
		t.Errorf("got id %q, want ok", row.ID)
	}
	w.want("POST", "/api/llm-providers", `{"id":"one","plugin":"llm-echo"}`, 201, `"id":"one"`)
	w.want("POST", "/api/llm-providers", `{"id":"one","plugin":"llm-echo"}`, 409, "already") // Y-93
	for body, why := range map[string]string{
		`{"id":"X","plugin":"llm-echo"}`:                           "cannot be an id",
		`{"id":"","plugin":"llm-echo"}`:                            "cannot be an id",
		`{"id":"two","plugin":"strategy-react"}`:                   "not a loaded provider plugin",
		`{"id":"two"}`:                                             "property plugin",
		`{"id":"two","plugin":"llm-echo","config":{"plugin":"x"}}`: "beside config",
		`{"id":"two","plugin":"llm-echo","config":{"a b":"x"}}`:    "cannot be a key",
		`{"id":"two","plugin":"llm-echo","cfg":{}}`:                "unexpected property",
		`{"id":"two","plugin":"llm-echo"} {}`:                      "not what is expected",
		`not json`:                                                 "not what is expected",
		`[]`:                                                       "expected object",
		`{"id":"two","plugin":"llm-echo","label":7}`:               "expected string",
		`{"id":"two","plugin":"llm-echo","config":{"x":"` + strings.Repeat("x", 70000) + `"}}`: "at most",
	} {
		w.want("POST", "/api/llm-providers", body, 400, why)
	}
	w.want("POST", "/api/llm-providers", `{"id":"`+strings.Repeat("x", 2<<20), 413, "exceeds")
	if w.cfg.Providers().GetInstance("two") != nil {
		t.Error("a refused provider was written")
	}
	// Y-99: a write that fails midway names the way out.
	if err := errors.Join(os.Remove(w.dir+"/config.json"), os.Mkdir(w.dir+"/config.json", 0o700)); err != nil {
		t.Fatal(err)
	}
	w.want("POST", "/api/llm-providers", `{"id":"half","plugin":"llm-echo"}`, 500, "yaya config unset 'providers.half.*'")
}

// Y-94: a partial merge; the plugin stays.
func TestUpdate(t *testing.T) {
	w := newWorld(t)
	w.want("POST", "/api/llm-providers", `{"id":"one","plugin":"llm-openai","label":"L","config":{"model":"m","base_url":"u"}}`, 201, "")
	got := w.want("PATCH", "/api/llm-providers/one", `{"config":{"model":"n"}}`, 200, `"model":"n"`)
	if !strings.Contains(got, `"base_url":"u"`) || !strings.Contains(got, `"label":"L"`) {
		t.Errorf("what was not named has changed: %s", got)
	}
	w.want("PATCH", "/api/llm-providers/one", `{"label":"M"}`, 200, `"label":"M"`)
	w.want("PATCH", "/api/llm-providers/one", `{"plugin":"llm-echo"}`, 400, "cannot be changed")
	w.want("PATCH", "/api/llm-providers/none", `{"label":"M"}`, 404, `"none\"`)
	w.want("PATCH", "/api/llm-providers/one", `{"config":{"label":"M"}}`, 400, "beside config")
}

// Y-95: not the active one, not the last of its plugin, not one that is not
// there.
func TestDelete(t *testing.T) {
	w := newWorld(t)
	w.want("DELETE", "/api/llm-providers/llm-echo", "", 409, "active")
	w.want("DELETE", "/api/llm-providers/llm-openai", "", 409, "last")
	w.want("POST", "/api/llm-providers", `{"id":"two","plugin":"llm-openai"}`, 201, "")
	if code, body := w.do("DELETE", "/api/llm-providers/llm-openai", ""); code != 204 || body != "" {
		t.Errorf("got %d %q; want 204 without a body", code, body)
	}
	w.want("DELETE", "/api/llm-providers/llm-openai", "", 404, "")
	w.want("DELETE", "/api/llm-providers/two", "", 409, "last")
}

// Y-96: flipping the active one.
func TestActivate(t *testing.T) {
	w := newWorld(t)
	w.want("PATCH", "/api/llm-providers/active", `{"name":"llm-openai"}`, 200, `"active":true`)
	if w.cfg.Providers().ActiveID() != "llm-openai" {
		t.Error("it is not")
	}
	w.want("PATCH", "/api/llm-providers/active", `{"name":"nope"}`, 404, "")
	if err := w.cfg.Set("providers.lost.plugin", json.RawMessage(`"llm-gone"`)); err != nil {
		t.Fatal(err)
	}
	w.want("PATCH", "/api/llm-providers/active", `{"name":"lost"}`, 400, "not loaded")
	if w.cfg.Providers().ActiveID() != "llm-openai" {
		t.Error("a refused flip counts")
	}
}

var testSession = regexp.MustCompile(`^_bridge:web-api-test:[0-9a-f-]{36}$`)

// Y-97, Y-98: one trivial request on a fresh session of its own; both ends are
// waited for, five seconds at most.
func TestTest(t *testing.T) {
	w := newWorld(t)
	w.want("POST", "/api/llm-providers/llm-echo/test", "", 200, `"ok":true`)
	w.want("POST", "/api/llm-providers/llm-echo/test", "", 200, `"latency_ms":`)
	w.want("POST", "/api/llm-providers/none/test", "", 404, "")
	if err := w.cfg.Set("providers.bad.plugin", json.RawMessage(`"llm-echo"`)); err != nil {
		t.Fatal(err)
	}
	if err := w.cfg.Set("providers.bad.script", json.RawMessage(`{"steps":[{"error":{"kind":"status","status_code":401,"message":"no key"}},{"text":"slow","delay_ms":60000}]}`)); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(eventually.Limit)
	for { // until the plugin has heard of it
		code, body := w.do("POST", "/api/llm-providers/bad/test", "")
		if code == 200 && strings.Contains(body, `"ok":false`) && strings.Contains(body, "status 401: no key") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf(`got %d %s; want 200 with the failure "status 401: no key"`, code, body)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[string]bool{}
	for _, ev := range w.asks {
		if !testSession.MatchString(ev.SessionID) || seen[ev.SessionID] {
			t.Errorf("asked on %q", ev.SessionID)
		}
		seen[ev.SessionID] = true
		if m := ev.Payload.(event.LLMRequest).Messages; len(m) != 1 || len(m[0].Content) > 20 {
			t.Errorf("the prompt is not trivial: %+v", m)
		}
	}
}

// Y-97: a provider that says nothing is a timeout.
func TestTestTimesOut(t *testing.T) {
	w := newWorld(t)
	if err := w.cfg.Set("plugin.llm_echo.script", json.RawMessage(`{"scenarios":[{"match":"ping","steps":[{"text":"a b","delay_ms":60000},{"text":"a b","delay_ms":60000}]}]}`)); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); time.Since(begun) < eventually.Limit; {
		start := time.Now()
		_, body := w.do("POST", "/api/llm-providers/llm-echo/test", "")
		if strings.Contains(body, `"ok":true`) {
			continue // the script is not there yet
		}
		if took := time.Since(start); took < 5*time.Second || !strings.Contains(body, `"error":"timeout"`) {
			t.Errorf("after %v: %s", took, body)
		}
		return
	}
	t.Error("it always answers")
}

func TestUnknownPaths(t *testing.T) {
	w := newWorld(t)
	w.want("GET", "/api/nothing", "", 404, "resource not found")
	w.want("PUT", "/api/llm-providers/llm-echo", "{}", 405, "knows PATCH, DELETE")
}
