package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/gateway"
	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/kernel/tool"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

type running struct {
	srv    *gateway.Server
	socket string
	stop   func() error
}

func run(t *testing.T, cfg gateway.Config) *running {
	t.Helper()
	dir, err := os.MkdirTemp("", "yg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	cfg.Listen, cfg.Socket = "127.0.0.1:0", filepath.Join(dir, "s")
	if cfg.MCP == nil {
		cfg.MCP = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "mcp") })
	}
	srv, err := gateway.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- srv.Run(ctx) }()
	stop := func() error {
		cancel()
		err := <-done
		done <- err
		return err
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	return &running{srv, cfg.Socket, stop}
}

func get(t *testing.T, c *http.Client, url string, edit func(*http.Request)) (int, string, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(req)
	}
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body) //nolint:forbidigo // test
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

// W-48, W-49, HT-31: health and readiness, and the routes with their policies.
func TestRoutes(t *testing.T) {
	m := gateway.NewMetrics()
	m.ToolCalled(tool.Call{Origin: tool.OriginMCP}, tool.Definition{Identity: tool.Identity{Provider: "srv"}}, tool.Result{OK: true}, time.Millisecond)
	m.Gauge("yaya_test", "A test.", func() float64 { return 7 })
	ready := fmt.Errorf("servers are starting")
	r := run(t, gateway.Config{Metrics: m.Handler(), Status: func() any { return map[string]int{"x": 1} }, Ready: func() error { return ready }})
	c := http.DefaultClient //nolint:forbidigo // test
	base := "http://" + r.srv.Addr()
	status, body, _ := get(t, c, base+"/health", nil)
	var h struct {
		Status   string `json:"status"`
		UptimeMS *int64 `json:"uptime_ms"`
	}
	if err := json.Unmarshal([]byte(body), &h); err != nil || status != 200 || h.Status != "ok" || h.UptimeMS == nil {
		t.Errorf("health: %d %s %v", status, body, err)
	}
	if status, body, _ := get(t, c, base+"/health?ready=1", nil); status != 503 || !strings.Contains(body, "servers are starting") {
		t.Errorf("not ready: %d %s", status, body)
	}
	ready = nil
	if status, _, _ := get(t, c, base+"/health?ready=1", nil); status != 200 {
		t.Errorf("ready: %d", status)
	}
	status, body, header := get(t, c, base+"/metrics", nil)
	if status != 200 || !strings.Contains(body, `yaya_tool_calls_total{origin="mcp",outcome="ok",provider="srv"} 1`) || !strings.Contains(body, "yaya_test 7") || !strings.HasPrefix(header.Get("Content-Type"), "text/plain") {
		t.Errorf("metrics: %d %.500s", status, body)
	}
	if status, body, _ := get(t, c, base+"/status", nil); status != 200 || body != "{\"x\":1}\n" {
		t.Errorf("status: %d %s", status, body)
	}
	if status, body, _ := get(t, c, base+"/mcp", nil); status != 200 || body != "mcp" {
		t.Errorf("mcp: %d %s", status, body)
	}
	for _, path := range []string{"/", "/debug/pprof/", "/debug/vars", "/nope"} { // HT-23
		if status, _, _ := get(t, c, base+path, nil); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
}

// DN-01, HT-04, HT-05, R16: no other Host, no foreign Origin, on any method.
func TestHostAndOrigin(t *testing.T) {
	r := run(t, gateway.Config{})
	_, port, err := net.SplitHostPort(r.srv.Addr())
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, host, origin, site string
		want                     int
	}{
		{"plain", "", "", "", 200},
		{"localhost", "localhost:" + port, "", "", 200},
		{"IPv6", "[::1]:" + port, "", "", 200},
		{"own page", "", "http://127.0.0.1:" + port, "same-origin", 200},
		{"rebinding", "evil.example:" + port, "", "", 403},
		{"Host without port", "127.0.0.1", "", "", 403},
		{"foreign origin", "", "http://evil.example", "", 403},
		{"foreign port", "", "http://127.0.0.1:1", "", 403},
		{"https of the same name", "", "https://127.0.0.1:" + port, "", 403},
		{"null origin", "", "null", "", 403},
		{"cross-site without Origin", "", "", "cross-site", 403},
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			if method == "GET" && tc.name == "cross-site without Origin" {
				continue // a navigation; GETs have no effects
			}
			status, _, h := get(t, http.DefaultClient, "http://"+r.srv.Addr()+"/mcp", func(req *http.Request) { //nolint:forbidigo // test
				req.Method = method
				if tc.host != "" {
					req.Host = tc.host
				}
				if tc.origin != "" {
					req.Header.Set("Origin", tc.origin)
				}
				if tc.site != "" {
					req.Header.Set("Sec-Fetch-Site", tc.site)
				}
			})
			if status != tc.want {
				t.Errorf("%s, %s: got %d, want %d", tc.name, method, status, tc.want)
			}
			if h.Get("Access-Control-Allow-Origin") != "" { // HT-05
				t.Errorf("%s: CORS", tc.name)
			}
		}
	}
}

// WS-02: an origin is what a browser sends, to the letter, and there is one of it.
func TestOriginIsExact(t *testing.T) {
	r := run(t, gateway.Config{})
	at := r.srv.Addr()
	_, port, err := net.SplitHostPort(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, header string
		values       []string
		want         int
	}{
		{"own", "Origin", []string{"http://" + at}, 200},
		{"localhost", "Origin", []string{"http://localhost:" + port}, 200},
		{"userinfo", "Origin", []string{"http://evil@localhost:" + port}, 403},
		{"path", "Origin", []string{"http://" + at + "/"}, 403},
		{"query", "Origin", []string{"http://" + at + "?x"}, 403},
		{"upper-case scheme", "Origin", []string{"HTTP://" + at}, 403},
		{"two", "Origin", []string{"http://" + at, "http://evil.example"}, 403},
		{"two of its own", "Origin", []string{"http://" + at, "http://" + at}, 403},
		{"a list", "Origin", []string{"http://" + at + " http://evil.example"}, 403},
		{"two sites", "Sec-Fetch-Site", []string{"same-origin", "cross-site"}, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, _, _ := get(t, http.DefaultClient, "http://"+at+"/mcp", func(req *http.Request) { req.Header[c.header] = c.values }) //nolint:forbidigo // test
			if status != c.want {
				t.Errorf("%s: %q: got %d, want %d", c.header, c.values, status, c.want)
			}
		})
	}
}

// HT-30, R11: nothing but loopback.
func TestOnlyLoopback(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0", "nonsense", "192.0.2.1:0"} {
		srv, err := gateway.New(t.Context(), gateway.Config{Listen: addr, MCP: http.NotFoundHandler()})
		if err == nil {
			t.Errorf("%s: listens on %s", addr, srv.Addr())
		}
	}
	r := run(t, gateway.Config{})
	if _, err := gateway.New(t.Context(), gateway.Config{Listen: r.srv.Addr(), MCP: http.NotFoundHandler()}); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("an address in use: %v", err)
	}
}

func TestUnixSocket(t *testing.T) {
	r := run(t, gateway.Config{})
	st, err := os.Stat(r.socket)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v %v", st.Mode(), err)
	}
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", r.socket)
	}}
	defer tr.CloseIdleConnections()
	if status, body, _ := get(t, &http.Client{Transport: tr}, "http://yaya/mcp", nil); status != 200 || body != "mcp" {
		t.Errorf("got %d %s", status, body)
	}
}

// HT-29: a drain waits for what runs, and for nothing else.
func TestDrain(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	r := run(t, gateway.Config{MCP: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-release
		_, _ = io.WriteString(w, "done")
	}), DrainTimeout: 2 * eventually.Limit})
	idle, err := net.Dial("tcp", r.srv.Addr()) //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	answered := make(chan string, 1)
	go func() {
		_, body, _ := get(t, http.DefaultClient, "http://"+r.srv.Addr()+"/mcp", nil) //nolint:forbidigo // test
		answered <- body
	}()
	<-begun
	stopped := make(chan error, 1)
	start := time.Now()
	go func() { stopped <- r.stop() }()
	select {
	case <-stopped:
		t.Fatal("stopped before the request was answered")
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	if got := <-answered; got != "done" {
		t.Errorf("answered %q", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if d := time.Since(start); d > eventually.Limit {
		t.Errorf("the drain took %v: it waited for an idle connection", d)
	}
}
