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
	at, err := gateway.Listen(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.SlowPath = cfg.SlowPath || os.Getenv("YAYA_HTTP__FAST_PATH") == "false"
	srv := gateway.New(at, cfg)
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
			t.Errorf("Run = %v, want no error", err)
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
	ready := []gateway.Check{{Name: "disk", Status: "ok"}, {Name: "servers", Status: "failed", Reason: "servers are starting"}}
	r := run(t, gateway.Config{Metrics: m.Handler(), Status: func() any { return map[string]int{"x": 1} }, Ready: func(context.Context) []gateway.Check { return ready }})
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
	ready[1] = gateway.Check{Name: "servers", Status: "degraded", Reason: "1 of 2 servers failed"}
	if status, body, _ := get(t, c, base+"/health?ready=1", nil); status != 200 || !strings.Contains(body, `"status":"ok"`) || !strings.Contains(body, "1 of 2 servers failed") {
		t.Errorf("ready, with a server that failed: got %d %s, want 200 and which check is degraded", status, body)
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
			t.Errorf("%s: got %d, want 404", path, status)
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
		{"LOCALHOST", "LocalHOST:" + port, "", "", 200}, // RFC 9110 section 4.2.3
		{"IPv6", "[::1]:" + port, "", "", 200},
		{"own page", "", "http://127.0.0.1:" + port, "same-origin", 200},
		{"rebinding", "evil.example:" + port, "", "", 403},
		{"Host without port", "127.0.0.1", "", "", 403},
		{"foreign origin", "", "http://evil.example", "", 403},
		{"foreign port", "", "http://127.0.0.1:1", "", 403},
		{"https of the same name", "", "https://127.0.0.1:" + port, "", 403},
		{"null origin", "", "null", "", 403},
		{"cross-site without Origin", "", "", "cross-site", 403},
		{"same-site without Origin", "", "", "same-site", 403}, // a page at another port
		{"unknown site", "", "", "nearby", 403},
		{"own page without Origin", "", "", "same-origin", 200},
		{"typed", "", "", "none", 200},
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE"} {
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

// The server refuses what a browser sends for a page of another site, on every route but the
// public ones: a link to the page works.
func TestCrossSiteRequests(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	r := run(t, gateway.Config{Metrics: ok, Page: ok, Status: func() any { return 1 }})
	for path, want := range map[string]int{"/": 200, "/ui/x.js": 200, "/health": 200, "/nothing": 404, "/metrics": 403, "/status": 403, "/mcp": 403, "//metrics": 403} {
		for _, site := range []string{"cross-site", "same-site"} {
			status, body, h := get(t, http.DefaultClient, "http://"+r.srv.Addr()+path, func(req *http.Request) { req.Header.Set("Sec-Fetch-Site", site) }) //nolint:forbidigo // test
			if status != want {
				t.Errorf("GET %s, %s: got %d %s, want %d", path, site, status, body, want)
			}
			if got := h.Get("X-Content-Type-Options"); got != "nosniff" {
				t.Errorf("GET %s, %s: X-Content-Type-Options is %q, want nosniff", path, site, got)
			}
		}
		status, _, h := get(t, http.DefaultClient, "http://"+r.srv.Addr()+path, nil) //nolint:forbidigo // test
		if status == 403 {
			t.Errorf("GET %s of no site: got 403, want it served", path)
		}
		if got := h.Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("GET %s: X-Content-Type-Options is %q, want nosniff", path, got)
		}
	}
}

// OPTIONS * is answered by yaya, after the check of Host, and not by net/http before it.
func TestOptionsOfEverything(t *testing.T) {
	r := run(t, gateway.Config{})
	for host, want := range map[string]string{r.srv.Addr(): "HTTP/1.1 400 ", "evil.example": "HTTP/1.1 403 "} {
		conn, err := net.Dial("tcp", r.srv.Addr()) //nolint:noctx // test
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "OPTIONS * HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn) //nolint:forbidigo // test
		if err != nil || !strings.HasPrefix(string(got), want) || !strings.Contains(string(got), `{"detail":"`) {
			t.Errorf("OPTIONS * at %s: got %q, %v, want %s in JSON", host, got, err, want)
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
		l, err := gateway.Listen(t.Context(), gateway.Config{Listen: addr})
		if err == nil {
			t.Errorf("Listen(%s) listens on %s, want an error", addr, l.Addr())
			_ = l.Close()
		}
	}
	r := run(t, gateway.Config{})
	if _, err := gateway.Listen(t.Context(), gateway.Config{Listen: r.srv.Addr()}); err == nil || !strings.Contains(err.Error(), "--listen") {
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
		t.Errorf("got %d %s; want 200 mcp", status, body)
	}
}

// A request that outlasts the drain is cancelled with the cause, and has time to answer.
func TestDrainCutsOff(t *testing.T) {
	begun := make(chan struct{})
	r := run(t, gateway.Config{MCP: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		close(begun)
		<-req.Context().Done()
		_, _ = io.WriteString(w, context.Cause(req.Context()).Error())
	}), DrainTimeout: 2 * time.Second})
	answered := make(chan string, 1)
	go func() {
		_, body, _ := get(t, http.DefaultClient, "http://"+r.srv.Addr()+"/mcp", nil) //nolint:forbidigo // test
		answered <- body
	}()
	<-begun
	if err := r.stop(); err != nil {
		t.Errorf("Run = %v after the stop, want no error", err)
	}
	if got := <-answered; got != tool.ErrStopping.Error() {
		t.Errorf("the client got %q, want the cause %q", got, tool.ErrStopping)
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
		t.Errorf("Run = %v after the stop, want no error", err)
	}
	if d := time.Since(start); d > eventually.Limit {
		t.Errorf("the drain took %v: it waited for an idle connection", d)
	}
}
