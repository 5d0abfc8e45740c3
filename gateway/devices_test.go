package gateway

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/control"
	controllog "github.com/yaya-ai/yaya/control/local"
	"github.com/yaya-ai/yaya/gateway/api"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/journal"
)

var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 3072)
	if err != nil {
		panic(err)
	}
	return k
})

// authority returns one with its log, in a folder of its own.
func authority(t *testing.T) (*auth.Authority, *controllog.Log) {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
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
	a, err := auth.NewAuthority(auth.AuthorityConfig{Keys: keys, GenerateKey: func() (*rsa.PrivateKey, error) { return rsaKey(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	log, err := controllog.Open(journal.Root(root), controllog.Options{Projections: []control.Projection{a}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close(); keys.Close(); root.Close() })
	if err := a.Start(log); err != nil {
		t.Fatal(err)
	}
	return a, log
}

// serving runs a server and returns its base URL and a client for its socket.
func serving(t *testing.T, cfg Config) (base string, unix *http.Client) {
	t.Helper()
	dir, err := os.MkdirTemp("", "yg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if cfg.Listen == "" {
		cfg.Listen = "127.0.0.1:0"
	}
	cfg.Socket = filepath.Join(dir, "s")
	srv, unix := started(t, cfg)
	return "http://" + srv.Addr(), unix
}

// slowPath has all tests use the slow path, as it has yaya.
var slowPath = os.Getenv("YAYA_HTTP__FAST_PATH") == "false"

// started runs a server on the address and the socket of its configuration.
func started(t *testing.T, cfg Config, change ...func(*Server)) (srv *Server, unix *http.Client) {
	t.Helper()
	l, err := Listen(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.SlowPath = cfg.SlowPath || slowPath
	srv = New(l, cfg)
	for _, c := range change {
		c(srv)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	unix = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", cfg.Socket)
	}}}
	t.Cleanup(func() {
		unix.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run = %v, want no error", err)
		}
	})
	return srv, unix
}

type answer struct {
	status int
	body   string
	header http.Header
}

func ask(t *testing.T, c *http.Client, method, url, body string, header ...string) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
			continue
		}
		req.Header.Add(header[i], header[i+1])
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, string(data), resp.Header}
}

func device(id string) (ed25519.PrivateKey, auth.Registration) {
	pub, key, _ := ed25519.GenerateKey(rand.Reader)
	return key, auth.Registration{PublicKey: base64.StdEncoding.EncodeToString(pub), DeviceID: id, Label: id}
}

// token enrolls a device.
func token(t *testing.T, a *auth.Authority, id string, scopes ...auth.Scope) string {
	t.Helper()
	inv, err := a.Invite(t.Context(), auth.LocalOwner, "", scopes)
	if err != nil {
		t.Fatal(err)
	}
	_, r := device(id)
	r.Code = inv.Code
	got, err := a.Register(t.Context(), "p", r)
	if err != nil {
		t.Fatal(err)
	}
	return got.Token.Token
}

// AU-46, AU-35, AU-10, HT-25, R7, Y-202: every route for every kind of principal.
func TestEveryRouteForEveryPrincipal(t *testing.T) {
	a, _ := authority(t)
	ok := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "reached by ", auth.FromContext(r.Context()).Actor(), " ", auth.FromContext(r.Context()).Name())
	})
	cfg := Config{Authority: a, MCP: ok, Metrics: ok, Profiles: ok, Page: ok, Wire: ok, CLI: ok, Live: ok, Routes: apis(t, ok), Status: func() any { return 1 }}
	base, unix := serving(t, cfg)
	behind, _ := serving(t, Config{Authority: a, MCP: ok, Metrics: ok, Profiles: ok, Page: ok, Wire: ok, CLI: ok, Live: ok, Routes: apis(t, ok), Status: func() any { return 1 }, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	admin, none := token(t, a, "admin", auth.AllScopes()...), token(t, a, "none")
	revoked := token(t, a, "gone", auth.AllScopes()...)
	if err := a.Revoke(t.Context(), auth.LocalOwner, "gone", ""); err != nil {
		t.Fatal(err)
	}
	only, lasting := map[auth.Scope]string{}, map[auth.Scope]string{}
	for _, s := range auth.AllScopes() {
		only[s] = token(t, a, "only-"+strings.ReplaceAll(string(s), ":", "-"), s)
		if tok, _, err := a.CreateLasting(t.Context(), auth.LocalOwner, auth.NewLasting{Name: strings.ReplaceAll(string(s), ":", "-"), Scopes: []auth.Scope{s}}); err == nil {
			lasting[s] = tok
		} else if !errors.Is(err, auth.ErrBadRequest) {
			t.Fatalf("got %v, want error %v", err, auth.ErrBadRequest)
		}
	}
	if len(lasting) != len(only)-4 {
		t.Errorf("lasting tokens have %d scopes, want %d", len(lasting), len(only)-4)
	}
	// public and loopback are the statuses that the owner gets on loopback. The table in
	// testdata holds the policy of every route, and every caller meets that policy here.
	public := map[string]int{"POST /auth/register": 415, "POST /auth/refresh": 401}
	srv := &Server{cfg: cfg}
	for _, r := range srv.table() {
		if r.Pattern == "/" { // where nothing is
			continue
		}
		loopback := 200
		switch {
		case r.Access.Public:
			loopback = cmp.Or(public[r.Pattern], 200)
		case r.Access.Owner == api.Socket:
			loopback = 401
		}
		method, path, found := strings.Cut(r.Pattern, " ")
		if !found {
			method, path = http.MethodPost, r.Pattern
		}
		path = anyParam.ReplaceAllString(strings.TrimSuffix(path, "{$}"), "x")
		check := func(who string, got answer, wanted int) {
			t.Helper()
			if got.status != wanted {
				t.Errorf("%s for %s: %d, want %d (%s)", r.Pattern, who, got.status, wanted, got.body)
			}
		}
		bearer := func(tok string) answer {
			return ask(t, http.DefaultClient, method, base+path, "", "Authorization", "Bearer "+tok)
		}
		check("the owner", ask(t, http.DefaultClient, method, base+path, ""), loopback)
		check("the owner over the socket", ask(t, unix, method, "http://yaya"+path, ""), cmp.Or(public[r.Pattern], 200))
		if r.Access.Public {
			check("a stranger", ask(t, http.DefaultClient, method, behind+path, ""), loopback)
			continue
		}
		if r.Access.Device == "" {
			check("a stranger", ask(t, http.DefaultClient, method, behind+path, ""), 403)
			check("an administrator", bearer(admin), 403)
			continue
		}
		stranger := ask(t, http.DefaultClient, method, behind+path, "")
		check("a stranger", stranger, 401)
		if !strings.HasPrefix(stranger.header.Get("WWW-Authenticate"), "Bearer ") {
			t.Errorf("%s: a stranger is not told how: %v", r.Pattern, stranger.header)
		}
		check("an administrator", bearer(admin), 200)
		check("a device without scopes", bearer(none), 403)
		check("a revoked device", bearer(revoked), 401)
		for s, tok := range only {
			wanted := 403
			if s == r.Access.Device {
				wanted = 200
			}
			check("a device with "+string(s), bearer(tok), wanted)
		}
		for s, tok := range lasting { // USE-8: as a device, but for what a device proves itself for
			wanted := 403
			if s == r.Access.Device && loopback == 200 {
				wanted = 200
			}
			check("a lasting token with "+string(s), bearer(tok), wanted)
		}
		if body := bearer(admin).body; r.Pattern != "GET /status" && body != "reached by admin device:admin" {
			t.Errorf("%s: got %s, want that the device admin reaches it", r.Pattern, body)
		}
	}
}

// W-6, W-7, W-10, W-17, W-52: registration and refresh over HTTP.
func TestRegisterAndRefresh(t *testing.T) {
	a, _ := authority(t)
	base, _ := serving(t, Config{Authority: a, MCP: http.NotFoundHandler()})
	c := http.DefaultClient
	post := func(v any, header ...string) answer {
		t.Helper()
		raw, _ := json.Marshal(v)
		return ask(t, c, "POST", base+"/auth/register", string(raw), header...)
	}
	key, r := device("phone")
	got := post(r) // AU-29: loopback gets no exception
	var pending struct{ Status, RequestID, ServerID string }
	decode := func(body string, v any) {
		t.Helper()
		if err := json.Unmarshal([]byte(strings.NewReplacer("request_id", "RequestID", "server_id", "ServerID").Replace(body)), v); err != nil {
			t.Fatalf("the body %q: %v, want JSON", body, err)
		}
	}
	decode(got.body, &pending)
	if got.status != 202 || pending.Status != "pending" || pending.RequestID == "" || pending.ServerID != a.ServerID() || strings.Contains(got.body, "token") {
		t.Fatalf("got %+v, want 202 and a pending request of the server %s without a token", got, a.ServerID())
	}
	if _, err := a.Approve(t.Context(), auth.LocalOwner, pending.RequestID, auth.DefaultScopes()); err != nil {
		t.Fatal(err)
	}
	r.RequestID = pending.RequestID
	r.Proof = base64.StdEncoding.EncodeToString(auth.SignRegistration(key, pending.ServerID, pending.RequestID, "phone"))
	got = post(r)
	var tok struct {
		Token     string    `json:"device_token"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	if err := json.Unmarshal([]byte(got.body), &tok); err != nil || got.status != 200 || got.header.Get("Cache-Control") != "no-store" {
		t.Fatalf(`got %+v, %v, want status 200, Cache-Control "no-store"`, got, err)
	}
	if d := time.Until(tok.ExpiresAt); d < 23*time.Hour+59*time.Minute || d > 24*time.Hour {
		t.Errorf("it expires in %v", d)
	}
	refresh := func(token string) answer {
		return ask(t, c, "POST", base+"/auth/refresh", "", "Authorization", "Bearer "+token)
	}
	next := refresh(tok.Token)
	if next.status != 200 || !strings.Contains(next.body, "device_token") || !strings.Contains(next.body, "expires_at") {
		t.Fatalf(`got %+v, want status 200, "device_token" in it, "expires_at" in it`, next)
	}
	if again := refresh(tok.Token); again.status != 200 || again.body != next.body { // AU-12: requests cross
		t.Errorf("a second time at once: got %+v, want %+v", again, next)
	}
	var successor struct {
		Token string `json:"device_token"`
	}
	if err := json.Unmarshal([]byte(next.body), &successor); err != nil {
		t.Fatal(err)
	}
	if third := refresh(successor.Token); third.status != 200 {
		t.Fatalf("the successor: %+v", third)
	}
	if again := refresh(tok.Token); again.status != 401 || strings.Contains(again.body, "refreshed") {
		t.Errorf("after its successor was used: %+v", again)
	}
	if got := ask(t, c, "POST", base+"/auth/refresh", ""); got.status != 401 {
		t.Errorf("without a token: %+v", got)
	}
	for name, tt := range map[string]struct {
		body   string
		header []string
		status int
	}{
		"not JSON":       {"x", nil, 400},
		"array":          {"[]", nil, 400},
		"unknown member": {`{"device_id":"d","scopes":["admin"]}`, nil, 400},
		"other case":     {`{"Device_ID":"d"}`, nil, 400},
		"twice":          {`{"device_id":"d","device_id":"e"}`, nil, 400},
		"bad key":        {`{"device_id":"d","public_key":"AAAA"}`, nil, 400},
		"deep":           {strings.Repeat("[", 1000), nil, 400},
		"too large":      {`{"device_id":"` + strings.Repeat("x", 20<<10) + `"}`, nil, 413},
		"gzip":           {"{}", []string{"Content-Encoding", "gzip"}, 415},
		"cross site":     {"{}", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		"foreign origin": {"{}", []string{"Origin", "http://evil.example"}, 403},
		"foreign host":   {"{}", []string{"Host", "evil.example"}, 403},
	} {
		if got := ask(t, c, "POST", base+"/auth/register", tt.body, tt.header...); got.status != tt.status {
			t.Errorf("%s: got %+v, want status %v", name, got, tt.status)
		}
	}
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} { // HT-03
		req, _ := http.NewRequestWithContext(t.Context(), "POST", base+"/auth/register", strings.NewReader("{}"))
		req.Header.Set("Content-Type", kind)
		resp, err := c.Do(req)
		if err != nil || resp.StatusCode != 415 {
			t.Errorf("%s: got %v, %v, want StatusCode 415", kind, resp, err)
		} else {
			resp.Body.Close()
		}
	}
}

// AU-33, R6: guessing ends soon, with 429 and Retry-After, on loopback too; a good
// token works all the while.
func TestGuessingIsSlow(t *testing.T) {
	a, _ := authority(t)
	good := token(t, a, "good", auth.AgentsRead)
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	now := time.Now() // the thousand guesses take no time, however slow the machine is
	base, _ := serving(t, Config{Authority: a, MCP: ok, Routes: apis(t, ok), Attempts: auth.NewAttempts(func() time.Time { return now })})
	if got := ask(t, http.DefaultClient, "GET", base+"/agents", "", "Authorization", "Bearer "+good); got.status != 200 {
		t.Fatalf("got %+v, want status 200", got)
	}
	_, r := device("guess")
	statuses := map[int]int{}
	for n := range 1000 {
		r.Code = fmt.Sprintf("AAAA-AAAA-%04d", n)
		raw, _ := json.Marshal(r)
		got := ask(t, http.DefaultClient, "POST", base+"/auth/register", string(raw))
		statuses[got.status]++
		if got.status == 429 && got.header.Get("Retry-After") == "" {
			t.Fatalf("got %+v, want a Retry-After with the 429", got)
		}
	}
	if statuses[401] > 10 || statuses[429] < 990 {
		t.Errorf("got %v, want statuses[401] at most 10, statuses[429] at least 990", statuses)
	}
	if got := ask(t, http.DefaultClient, "GET", base+"/agents", "", "Authorization", "Bearer a.b.c"); got.status != 429 { // one budget for all ways
		t.Errorf("a wrong token: %+v", got)
	}
	if got := ask(t, http.DefaultClient, "GET", base+"/agents", "", "Authorization", "Bearer "+good); got.status != 200 {
		t.Errorf("the good token: %+v", got)
	}
}

// SEC-9: wrong codes from many addresses stop pairing for nobody else.
func TestGuessingCostsOthersNothing(t *testing.T) {
	a, _ := authority(t)
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	base, _ := serving(t, Config{Authority: a, MCP: ok, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	register := func(from, code string) answer {
		_, r := device("d-" + code)
		r.Code = code
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return ask(t, http.DefaultClient, "POST", base+"/auth/register", string(raw), "X-Forwarded-For", from)
	}
	for n := range 200 {
		if got := register(fmt.Sprintf("192.0.2.%d", n/10), fmt.Sprintf("AAAA-AAAA-%04d", n)); got.status != 401 {
			t.Fatalf("guess %d: got %d, want 401", n, got.status)
		}
	}
	if got := register("192.0.2.1", "AAAA-AAAA-AAAA"); got.status != 429 || got.header.Get("Retry-After") == "" {
		t.Errorf("one that has guessed: got %d, want 429 with Retry-After", got.status)
	}
	inv, err := a.Invite(t.Context(), auth.LocalOwner, "", auth.DefaultScopes())
	if err != nil {
		t.Fatal(err)
	}
	if got := register("198.51.100.1", inv.Code); got.status != 200 {
		t.Errorf("a good code from an address that has not guessed: got %d %s, want 200", got.status, got.body)
	}
}

// AU-38, AU-39: tokens in other places than the header, and broken headers.
func TestBrokenAuthorization(t *testing.T) {
	a, _ := authority(t)
	tok := token(t, a, "d", auth.AllScopes()...)
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	base, _ := serving(t, Config{Authority: a, MCP: ok, Routes: apis(t, ok)})
	for name, tt := range map[string]struct {
		path   string
		header []string
	}{
		"in the URL":     {"/agents?token=" + tok, nil},
		"access_token":   {"/agents?access_token=" + tok, []string{"Authorization", "Bearer " + tok}},
		"two headers":    {"/agents", []string{"Authorization", "Bearer " + tok, "Authorization", "Bearer " + tok}},
		"list":           {"/agents", []string{"Authorization", "Bearer " + tok + ", Bearer " + tok}},
		"tab":            {"/agents", []string{"Authorization", "Bearer\t" + tok}},
		"trailing":       {"/agents", []string{"Authorization", "Bearer " + tok + " x"}},
		"basic":          {"/agents", []string{"Authorization", "Basic " + tok}},
		"no scheme":      {"/agents", []string{"Authorization", tok}},
		"empty":          {"/agents", []string{"Authorization", "Bearer "}},
		"dots":           {"/agents", []string{"Authorization", "Bearer " + strings.Repeat(".", 30<<10)}},
		"another header": {"/agents", []string{"X-Authorization", "Bearer " + tok}},
	} {
		got := ask(t, http.DefaultClient, "GET", base+tt.path, "", tt.header...)
		if got.status != 400 && got.status != 401 {
			t.Errorf("%s: got %d, want 400 or 401", name, got.status)
		}
		if strings.Contains(got.body, tok) {
			t.Errorf("%s: the answer shows the token", name)
		}
	}
}

// AU-16: the requests and connections of a device end when it is revoked.
func TestRevocationEndsRequests(t *testing.T) {
	a, _ := authority(t)
	tok := token(t, a, "d", auth.ToolsCall)
	under := make(chan struct{})
	ended := make(chan error, 1)
	base, _ := serving(t, Config{Authority: a, MCP: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(under)
		<-r.Context().Done()
		ended <- context.Cause(r.Context())
	})})
	done := make(chan answer, 1)
	go func() { done <- ask(t, http.DefaultClient, "GET", base+"/mcp", "", "Authorization", "Bearer "+tok) }()
	<-under
	if err := a.Revoke(t.Context(), auth.LocalOwner, "d", ""); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "revoked") {
			t.Errorf(`got %v, want an error, err with "revoked"`, err)
		}
	case <-time.After(eventually.Limit):
		t.Fatal("it goes on")
	}
	<-done
}

// AU-44, R6, R11: behind a proxy nobody is the local owner, only the proxy may
// speak, and what it says of others counts for it alone.
func TestBehindProxy(t *testing.T) {
	a, _ := authority(t)
	who := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, auth.FromContext(r.Context()).Actor()) })
	wire := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, Audience(r)) })
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	base, unix := serving(t, Config{Authority: a, MCP: who, Wire: wire, Proxies: proxies, Hosts: []string{"yaya.example"}})
	for _, h := range [][]string{nil, {"X-Forwarded-For", "127.0.0.1"}, {"X-Real-IP", "127.0.0.1"}, {"X-Forwarded-User", "root"}, {"Forwarded", "for=127.0.0.1"}} {
		if got := ask(t, http.DefaultClient, "GET", base+"/mcp", "", h...); got.status != 401 {
			t.Errorf("%v: got %+v, want status 401", h, got)
		}
	}
	if got := ask(t, unix, "GET", "http://yaya/mcp", ""); got.body != "owner" {
		t.Errorf("over the socket: %+v", got)
	}
	if got := ask(t, http.DefaultClient, "GET", base+"/ws", "", "Host", "yaya.example"); got.body != "wss://yaya.example/ws" {
		t.Errorf("audience: %+v", got)
	}
	if got := ask(t, http.DefaultClient, "GET", base+"/ws", "", "Host", "yaya.example", "Origin", "https://yaya.example"); got.status != 200 {
		t.Errorf("its own page: %+v", got)
	}
	for _, origin := range []string{"http://yaya.example", "https://yaya.example:444", "null", "https://evil.example"} { // WS-01
		if got := ask(t, http.DefaultClient, "GET", base+"/ws", "", "Host", "yaya.example", "Origin", origin); got.status != 403 {
			t.Errorf("origin %s: %+v", origin, got)
		}
	}
	// One client behind the proxy that fails does not cost another one.
	fail := func(from string) int {
		return ask(t, http.DefaultClient, "GET", base+"/mcp", "", "Authorization", "Bearer a.b.c", "X-Forwarded-For", "8.8.8.8, "+from).status
	}
	for range 10 {
		fail("192.0.2.1")
	}
	if got := fail("192.0.2.1"); got != 429 {
		t.Errorf("the one that fails: %d", got)
	}
	if got := fail("192.0.2.2"); got != 401 {
		t.Errorf("another: %d", got)
	}
	// A peer that is not a proxy is a stranger.
	other, _ := serving(t, Config{Authority: a, MCP: who, Proxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	if got := ask(t, http.DefaultClient, "GET", other+"/health", ""); got.status != 403 {
		t.Errorf("a peer that is not a proxy: %+v", got)
	}
	// Without a proxy, X-Forwarded-For is ignored.
	plain, _ := serving(t, Config{Authority: a, MCP: who})
	for n := range 12 {
		got := ask(t, http.DefaultClient, "GET", plain+"/mcp", "", "Authorization", "Bearer a.b.c", "X-Forwarded-For", fmt.Sprint("10.0.0.", n)).status
		if want := map[bool]int{true: 401, false: 429}[n < 10]; got != want {
			t.Errorf("attempt %d: %d", n, got)
		}
	}
}

// HT-30, HT-32, R11: other machines need TLS.
func TestTLS(t *testing.T) {
	if _, err := Listen(t.Context(), Config{Listen: "0.0.0.0:0"}); err == nil || !strings.Contains(err.Error(), "--tls-cert") {
		t.Errorf("without TLS: %v", err)
	}
	key, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	leaf, _ := x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	a, _ := authority(t)
	wire := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, Audience(r)) })
	base, _ := serving(t, Config{Listen: "0.0.0.0:0", Authority: a, MCP: wire, Wire: wire, TLS: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return cert, nil }})
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(base, "http://"))
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	defer c.CloseIdleConnections()
	if got := ask(t, c, "GET", "https://127.0.0.1:"+port+"/ws", ""); got.body != "wss://127.0.0.1:"+port+"/ws" {
		t.Errorf("got %+v, want body %q", got, "wss://127.0.0.1:"+port+"/ws")
	}
	if got := ask(t, c, "GET", "https://127.0.0.1:"+port+"/mcp", ""); got.status != 200 { // this user, on this machine
		t.Errorf("the owner: %+v", got)
	}
	if got := ask(t, http.DefaultClient, "GET", "http://127.0.0.1:"+port+"/health", ""); got.status != 400 {
		t.Errorf("without TLS: %+v", got)
	}
}
