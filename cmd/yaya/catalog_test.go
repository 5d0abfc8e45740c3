package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/yaya-ai/yaya/gateway/admin"
)

// mcpRegistry is a registry with one server, which a test can change.
type mcpRegistry struct {
	*httptest.Server
	entry atomic.Value // string
	asked atomic.Value // func(), before an entry is sent
}

func newMCPRegistry(t testing.TB, entry string) *mcpRegistry {
	r := &mcpRegistry{}
	r.entry.Store(entry)
	wired := func() string {
		return fmt.Sprintf(`{"server":%s,"_meta":{"io.modelcontextprotocol.registry/official":{"status":"active"}}}`, r.entry.Load())
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v0.1/servers", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"servers":[%s],"metadata":{}}`, wired())
	})
	mux.HandleFunc("GET /v0.1/servers/{name}/versions/{version}", func(w http.ResponseWriter, q *http.Request) {
		if f, ok := r.asked.Load().(func()); ok {
			f()
		}
		if !strings.HasPrefix(r.entry.Load().(string), fmt.Sprintf(`{"name":%q`, q.PathValue("name"))) {
			http.NotFound(w, q)
			return
		}
		fmt.Fprint(w, wired())
	})
	r.Server = httptest.NewServer(mux)
	t.Cleanup(r.Close)
	return r
}

// weatherEntry has a package that needs a key, and a remote at an address.
func weatherEntry(version, remote string) string {
	return fmt.Sprintf(`{"name":"io.github.sky/weather","title":"Weather","description":"Weather of the world","version":%q,
"packages":[{"registryType":"npm","identifier":"@sky/weather","version":%[1]q,"environmentVariables":[{"name":"SKY_KEY","isRequired":true,"isSecret":true,"description":"API key"},{"name":"UNITS","default":"metric"}]}],
"remotes":[{"type":"streamable-http","url":%q,"headers":[{"name":"Authorization","value":"Bearer {token}","variables":{"token":{"isRequired":true,"isSecret":true,"description":"API token"}}}]}]}`, version, remote)
}

const skySecret = "s3cret-of-the-sky-41"

// The commands of the catalogue find, show, ask for and write a server, without a daemon. The
// configuration has no secret.
func TestCatalogCommands(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := newMCPRegistry(t, weatherEntry("1.0.0", "https://sky.example.com/mcp"))
	b.must("config", "set", "catalog.registries", `["team=`+r.URL+`"]`)
	var page admin.CatalogPage
	if err := json.Unmarshal([]byte(b.must("catalog", "search", "weather", "--json")), &page); err != nil {
		t.Fatal(err)
	}
	if len(page.Servers) == 0 || page.Servers[0].Name != "io.github.sky/weather" || page.Servers[0].Registry != "team" {
		t.Errorf("found %+v", page.Servers)
	}
	if out := b.must("catalog", "show", "io.github.sky/weather"); !strings.Contains(out, "SKY_KEY") || !strings.Contains(out, "required; secret") {
		t.Errorf("it shows\n%s", out)
	}
	install := []string{"catalog", "install", "io.github.sky/weather", "--use", "npm"}
	b.env = append(b.env, "SKY="+skySecret)
	for name, more := range map[string][]string{
		"is a secret":          {"--set", "SKY_KEY=" + skySecret},
		"SKY_KEY is missing":   nil,
		"agrees to one":        {"--secret-env", "SKY_KEY=SKY", "--yes"},
		"does not ask for":     {"--set", "PATH=/tmp"},
		"NOBODY is not set":    {"--secret-env", "SKY_KEY=NOBODY"},
		"is neither":           {"--secret-env", "SKY_KEY=SKY", "--sandbox", "off"},
		"is not an exact":      {"--version", "latest"},
		"has no option":        {"--use", "pypi"},
		"there is no registry": {"--registry", "other"},
	} {
		out, err := b.run(append(slices.Clone(install), more...)...)
		if err == nil || !strings.Contains(out, name) {
			t.Errorf("install %q: %v, want %q in\n%s", more, err, name, out)
		}
	}
	out, err := b.run(append(install, "--secret-env", "SKY_KEY=SKY")...)
	if err == nil || !strings.Contains(out, "npx -y @sky/weather@1.0.0") || !strings.Contains(out, "nothing was added, because there is no terminal to ask on: give --yes --version 1.0.0 to agree") {
		t.Errorf("without a terminal and --yes: %v\n%s", err, out)
	}
	file := filepath.Join(b.dir, "c", "mcp.json")
	if _, err := os.Stat(file); err == nil {
		t.Error("the configuration was written without an agreement")
	}
	b.must(append(install, "--secret-env", "SKY_KEY=SKY", "--version", "1.0.0", "--yes")...)
	raw, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(raw), skySecret) || !strings.Contains(string(raw), "${secret:weather.SKY_KEY}") || !strings.Contains(string(raw), "@sky/weather@1.0.0") {
		t.Errorf("mcp.json, %v:\n%s", err, raw)
	}
	if s := b.secrets().Secrets; len(s) != 1 || s[0].Name != "weather.SKY_KEY" || s[0].Set.IsZero() {
		t.Errorf("secrets %+v", s)
	}
	if out, err := b.run(append(install, "--secret-env", "SKY_KEY=SKY", "--version", "1.0.0", "--yes")...); err == nil || !strings.Contains(out, "--as") {
		t.Errorf("a second time: %v\n%s", err, out)
	}
	if s := b.secrets().Secrets; len(s) != 1 {
		t.Errorf("a refused installation leaves %+v", s)
	}
	out, err = b.typed(skySecret+"\n", append(install, "--secret-stdin", "SKY_KEY", "--version", "1.0.0", "--as", "second", "--yes")...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r.entry.Store(weatherEntry("1.1.0", "https://sky.example.com/mcp"))
	b.must("config", "set", "catalog.registries", `["team=`+r.URL+`/"]`) // another cache
	if out := b.must("catalog", "updates"); !strings.Contains(out, "1.1.0") {
		t.Errorf("updates\n%s", out)
	}
	for want, more := range map[string][]string{"agrees to one": nil, "is 1.1.0, not 1.2.0": {"--version", "1.2.0"}} {
		if out, err := b.run(append([]string{"catalog", "update", "weather", "--yes"}, more...)...); err == nil || !strings.Contains(out, want) {
			t.Errorf("update %q: %v, want %q in\n%s", more, err, want, out)
		}
	}
	if out, err := b.run("catalog", "update", "weather"); err == nil || !strings.Contains(out, "changes @sky/weather@1.0.0 to @sky/weather@1.1.0") || !strings.Contains(out, "nothing was updated, because there is no terminal to ask on: give --yes --version 1.1.0 to agree") {
		t.Errorf("without a terminal and --yes: %v\n%s", err, out)
	}
	b.must("catalog", "update", "weather", "--yes", "--version", "1.1.0")
	if raw, err := os.ReadFile(file); err != nil || !strings.Contains(string(raw), "@sky/weather@1.1.0") || !strings.Contains(string(raw), "${secret:weather.SKY_KEY}") {
		t.Errorf("after the update, %v:\n%s", err, raw)
	}
	if out, err := b.run("catalog", "update", "weather", "--yes", "--version", "1.1.0"); err == nil || !strings.Contains(out, "has the newest version") {
		t.Errorf("a second update: %v\n%s", err, out)
	}
	r.entry.Store(weatherEntry("0.9.0", "https://sky.example.com/mcp"))
	b.must("config", "set", "catalog.registries", `["team=`+strings.Replace(r.URL, "127.0.0.1", "localhost", 1)+`"]`) // another cache, of an older version
	if out := b.must("catalog", "updates"); !strings.Contains(out, "another") || !strings.Contains(out, "older version 0.9.0") || strings.Contains(out, "the same") {
		t.Errorf("updates with an older version:\n%s", out)
	}
	if out, err := b.run("catalog", "update", "weather"); err == nil || !strings.Contains(out, "older version 0.9.0") {
		t.Errorf("update to an older version: %v\n%s", err, out)
	}
	for _, bad := range []string{`["nothing"]`, `["bundled=https://a.example"]`, `["a=ftp://a.example"]`} {
		if out, err := b.run("config", "set", "catalog.registries", bad); err == nil {
			t.Errorf("catalog.registries %s was accepted: %s", bad, out)
		}
	}
	b.must("config", "set", "catalog.registries", "[]")
	if out := b.must("catalog", "search", "filesystem"); !strings.Contains(out, "bundled/filesystem") {
		t.Errorf("without registries\n%s", out)
	}
}

// A server of the catalogue is added over the API of a running yaya, gets its secret, and is
// called. An entry that has changed since it was shown is refused.
func TestCatalogInstalls(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	remote, got := forecaster(t)
	r := newMCPRegistry(t, weatherEntry("1.0.0", remote))
	b.must("config", "set", "catalog.registries", `["team=`+r.URL+`"]`)
	b.serve()
	at := "/catalogue/" + url.PathEscape("io.github.sky/weather")
	var e admin.CatalogServer
	b.admin("GET", at, "", 200, &e)
	body := func(digest, more string) string {
		return fmt.Sprintf(`{"registry":"team","version":"1.0.0","digest":%q,"option":"remote","inputs":[{"name":"token","value":%q}]%s}`, digest, skySecret, more)
	}
	b.admin("POST", at+"/install", body(strings.Repeat("0", 64), ""), 409, nil)
	b.admin("POST", at+"/install", body(e.Digest, `,"as":"../x"`), 400, nil)
	b.admin("POST", at+"/install", body(e.Digest, `,"hosts":["a.example"]`), 400, nil)
	var ch admin.Change
	b.admin("POST", at+"/install", body(e.Digest, ""), 202, &ch)
	if ch.Runs != remote+" with the headers Authorization" || strings.Contains(string(ch.Config), skySecret) || !slices.ContainsFunc(ch.Notes, func(n string) bool { return strings.Contains(n, "your own network") }) {
		t.Errorf("the change says %+v", ch)
	}
	var all []admin.Server
	if b.admin("GET", "/mcp/servers", "", 200, &all); len(all) != 0 || len(b.secrets().Secrets) != 0 {
		t.Errorf("before it is applied there are %v and %v", all, b.secrets())
	}
	r.entry.Store(strings.ReplaceAll(weatherEntry("1.0.0", remote), "Weather of the world", "Now other words"))
	b.admin("POST", at+"/install", body(e.Digest, ""), 409, nil)
	b.admin("POST", "/mcp/changes/"+ch.ID+"/apply", "", 200, nil)
	b.waitState("weather", "ready")
	if out := b.must("mcp", "call", "weather__forecast"); !strings.Contains(out, "rain") || got.Load() != "Bearer "+skySecret {
		t.Errorf("the call says %q, and the server got %q", out, got.Load())
	}
	if all := b.holding(skySecret); len(all) > 0 {
		t.Errorf("the secret is in %q", all)
	}
	b.admin("POST", at+"/install", strings.Replace(body(e.Digest, ""), `"digest":"`+e.Digest, `"digest":"`+current(b, at), 1), 409, nil) // the name is taken
	var updates []admin.CatalogUpdate
	if b.admin("GET", "/mcp/updates", "", 200, &updates); len(updates) != 1 || updates[0].Newest != "" || updates[0].Error != "" {
		t.Errorf("updates %+v", updates)
	}
	b.admin("POST", "/mcp/servers/weather/update", "", 400, nil)
	b.admin("POST", "/mcp/servers/nobody/update", "", 404, nil)
	b.admin("GET", "/catalogue/io.github.sky%2Fnone", "", 404, nil)
	b.admin("GET", "/catalogue?cursor=x", "", 400, nil)
}

// A secret that somebody sets while an installation waits for its answer is theirs: it is neither
// replaced nor removed, and the installation says so.
func TestCatalogKeepsSecrets(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	remote, got := forecaster(t)
	r := newMCPRegistry(t, weatherEntry("1.0.0", remote))
	b.must("config", "set", "catalog.registries", `["team=`+r.URL+`"]`)
	b.serve()
	at := "/catalogue/" + url.PathEscape("io.github.sky/weather")
	install := fmt.Sprintf(`{"registry":"team","version":"1.0.0","digest":%q,"option":"remote","inputs":[{"name":"token","value":%q}]}`, current(b, at), skySecret)
	var ch admin.Change
	b.admin("POST", at+"/install", install, 202, &ch)
	const mine = "set-by-hand-of-the-user-7"
	b.secret("weather.token", mine)
	if code, out, _ := b.raw("POST", "/api/mcp/changes/"+ch.ID+"/apply", ""); code != 409 || !strings.Contains(string(out), "the secret weather.token was set since this was proposed, and is kept") {
		t.Errorf("apply = %d %s, want 409 and the name of the secret", code, out)
	}
	b.must("mcp", "add", "mine", remote, "--header", "Authorization: Bearer ${secret:weather.token}")
	b.waitState("mine", "ready")
	if b.must("mcp", "call", "mine__forecast"); got.Load() != "Bearer "+mine {
		t.Errorf("after the refusal the secret is %q, want %q", got.Load(), mine)
	}
	b.admin("POST", at+"/install", install, 202, &ch)
	b.admin("POST", "/mcp/changes/"+ch.ID+"/apply", "", 200, nil)
	b.waitState("weather", "ready")
	if b.must("mcp", "call", "weather__forecast"); got.Load() != "Bearer "+skySecret {
		t.Errorf("the server got %q, want %q", got.Load(), "Bearer "+skySecret)
	}
	if b.must("mcp", "call", "mine__forecast"); got.Load() != "Bearer "+mine {
		t.Errorf("after the installation the secret is %q, want %q", got.Load(), mine)
	}
}

// The question about an entry hides nothing of the publisher's, and names a secret that other users
// could read; only who may add servers has a bundle fetched; the audit has the names of secrets.
func TestCatalogQuestions(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := newMCPRegistry(t, `{"name":"io.github.sky/weather","description":"Weather","version":"1.0.0","packages":[{"registryType":"npm","identifier":"x","version":"1.0.0",
"environmentVariables":[{"name":"SKY_HOST","value":"https://evil.example"}],
"packageArguments":[{"type":"positional","value":"--api-key=evil-0123456789"},{"type":"positional","value":"--token"},{"type":"positional","value":"evil-9876543210"},{"type":"named","name":"--password","isRequired":true}]}]}`)
	b.must("config", "set", "catalog.registries", `["team=`+r.URL+`"]`)
	b.serve()
	at := "/catalogue/" + url.PathEscape("io.github.sky/weather")
	var ch admin.Change
	b.admin("POST", at+"/install", fmt.Sprintf(`{"registry":"team","version":"1.0.0","digest":%q,"inputs":[{"name":"password","value":%q}]}`, current(b, at), skySecret), 202, &ch)
	for _, want := range []string{"--api-key=evil-0123456789", "evil-9876543210", "${secret:weather.password}"} {
		if !strings.Contains(ch.Runs, want) {
			t.Errorf("it runs %s, without %s", ch.Runs, want)
		}
	}
	for _, want := range []string{"SKY_HOST=https://evil.example", "can read the secret weather.password"} {
		if !slices.ContainsFunc(ch.Notes, func(n string) bool { return strings.Contains(n, want) }) {
			t.Errorf("the notes have no %s: %q", want, ch.Notes)
		}
	}
	var second admin.Change
	b.admin("POST", at+"/install", fmt.Sprintf(`{"registry":"team","version":"1.0.0","digest":%q,"inputs":[{"name":"password","value":"another-of-the-sky"}]}`, current(b, at)), 202, &second)
	var codes [2]int
	var wait sync.WaitGroup
	for i, id := range []string{ch.ID, second.ID} { // one of them loses, and takes nothing away
		wait.Go(func() { codes[i], _, _ = b.raw("POST", "/api/mcp/changes/"+id+"/apply", "") })
	}
	wait.Wait()
	if s := b.secrets().Secrets; len(s) != 1 || s[0].Set.IsZero() || min(codes[0], codes[1]) != 200 || max(codes[0], codes[1]) != 409 {
		t.Errorf("two changes end with %v, and the secrets are %+v", codes, s)
	}
	if all := b.audited("secret_set"); len(all) == 0 || all[0].Target != "weather.password" {
		t.Errorf("the audit has %+v", all)
	}
	r.entry.Store(`{"name":"io.github.sky/weather","description":"Weather","version":"1.1.0","packages":[{"registryType":"npm","identifier":"x","version":"1.1.0",
"packageArguments":[{"type":"positional","value":"--api-key=evil-0123456789"},{"type":"positional","value":"evil-9876543210"}]}]}`)
	r.asked.Store(func() { b.must("mcp", "disable", "weather") })
	b.admin("POST", "/mcp/servers/weather/update", "", 409, nil) // edited meanwhile
	r.asked.Store(func() {})
	b.admin("POST", "/mcp/servers/weather/update", "", 202, &ch)
	for _, want := range []string{"x@1.1.0", "--api-key=evil-0123456789", "evil-9876543210", "${secret:weather.password}"} {
		if !strings.Contains(ch.Runs, want) {
			t.Errorf("the update runs %s, without %s", ch.Runs, want)
		}
	}
	r.entry.Store(`{"name":"io.github.sky/weather","description":"Weather","version":"1.0.0","packages":[{"registryType":"mcpb","identifier":"https://127.0.0.1:1/x.mcpb","fileSha256":"` + strings.Repeat("a", 64) + `"}]}`)
	b.admin("POST", at+"/install", fmt.Sprintf(`{"registry":"team","version":"1.0.0","digest":%q,"as":"other"}`, current(b, at)), 400, nil) // its bundle is fetched, and cannot be
}

func current(b *box, at string) string {
	var e admin.CatalogServer
	b.admin("GET", at, "", 200, &e)
	return e.Digest
}

// forecaster is a remote server of the catalogue, and the last Authorization that it got.
func forecaster(t *testing.T) (address string, got *atomic.Value) {
	got = new(atomic.Value)
	s := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "forecast", Description: "Tell the weather"}, answers("rain"))
	h := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		got.Store(q.Header.Get("Authorization"))
		h.ServeHTTP(w, q)
	}))
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv.URL, got
}

// Without words, a registry that fails or whose cursors go round does not hide those after it, and
// the page says what failed.
func TestPageCatalogueBrowses(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	down := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(down.Close)
	loop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"servers":[{"server":{"name":"io.github.sea/storms","description":"Storms","version":"1.0.0","remotes":[{"type":"sse","url":"https://sea.example.com/"}]}}],"metadata":{"nextCursor":"again"}}`)
	}))
	t.Cleanup(loop.Close)
	r := newMCPRegistry(t, weatherEntry("1.0.0", "https://sky.example.com/mcp"))
	b.must("config", "set", "catalog.registries", fmt.Sprintf(`["down=%s","loop=%s","team=%s"]`, down.URL, loop.URL, r.URL))
	if out := b.must("catalog", "search", "--cursor", "down:"); !strings.Contains(out, "--cursor 'loop:'") {
		t.Errorf("the page of a registry that fails is\n%s\nwant the cursor of the next one", out)
	}
	b.serve()
	b.scenario("browses", nil, nil)
	b.must("config", "set", "catalog.registries", fmt.Sprintf(`["down=%s"]`, down.URL))
	b.scenario("browses", map[string]any{"alone": true}, nil)
}

// The page finds a server in the catalogue, asks for its secret, shows what would run, and adds
// it; its first call is in Traffic.
func TestPageCatalogue(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	remote, got := forecaster(t)
	r := newMCPRegistry(t, weatherEntry("1.0.0", remote))
	b.must("config", "set", "catalog.registries", `["team=`+r.URL+`"]`)
	b.serve()
	b.scenario("catalogue", map[string]any{"secret": skySecret, "remote": remote}, nil)
	if got.Load() != "Bearer "+skySecret {
		t.Errorf("the server got %q", got.Load())
	}
	if all := b.holding(skySecret); len(all) > 0 {
		t.Errorf("the secret is in %q", all)
	}
}
