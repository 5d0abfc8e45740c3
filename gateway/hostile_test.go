package gateway

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// raw sends bytes and returns the status line of the answer.
func raw(t *testing.T, base, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		_, _ = io.WriteString(conn, strings.ReplaceAll(request, "HOST", strings.TrimPrefix(base, "http://")))
	}()
	_ = conn.SetReadDeadline(time.Now().Add(eventually.Limit))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line)
}

// WS-03, HT-05, HT-07, HT-13, HT-18, HT-19, HT-28: hostile requests are refused.
func TestHostileRequests(t *testing.T) {
	a, _ := authority(t)
	reached := 0
	ok := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodPost && r.Method != http.MethodHead {
			reached++
		}
	})
	cfg := Config{Authority: a, MCP: ok, Metrics: ok, Wire: ok, Routes: apis(t, ok), Status: func() any { return 1 }}
	base, _ := serving(t, cfg)
	srv := &Server{cfg: cfg}
	for _, r := range srv.table() { // a rebound name reaches nothing
		method, path, found := strings.Cut(r.Pattern, " ")
		if !found {
			method, path = http.MethodPost, r.Pattern
		}
		path = strings.NewReplacer("{id}", "x", "{profile}", "p", "{path...}", "x").Replace(path)
		for _, host := range []string{"evil.example", "evil.example:8787", "127.0.0.1.evil.example", "localhost"} {
			if got := ask(t, http.DefaultClient, method, base+path, "", "Host", host); got.status != http.StatusForbidden {
				t.Errorf("%s with Host %s: %d", r.Pattern, host, got.status)
			}
		}
		for _, origin := range []string{"http://evil.example", "null", "https://" + strings.TrimPrefix(base, "http://")} {
			got := ask(t, http.DefaultClient, method, base+path, "", "Origin", origin)
			if got.status != http.StatusForbidden || got.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s with Origin %s: %d %v", r.Pattern, origin, got.status, got.header)
			}
		}
	}
	for name, tt := range map[string]struct{ request, want string }{
		"length and chunked": {"POST /rpc HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 401"},
		"bad encoding":       {"POST /rpc HTTP/1.1\r\nHost: HOST\r\nTransfer-Encoding: xchunked\r\n\r\n", "501 400"},
		"two lengths":        {"POST /rpc HTTP/1.1\r\nHost: HOST\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello", "400"},
		"folded":             {"GET /health HTTP/1.1\r\nHost: HOST\r\nX: a\r\n b\r\n\r\n", "400 200"},
		"blank before colon": {"GET /health HTTP/1.1\r\nHost : HOST\r\n\r\n", "400"},
		"two hosts":          {"GET /health HTTP/1.1\r\nHost: HOST\r\nHost: evil\r\n\r\n", "400"},
		"no host":            {"GET /health HTTP/1.1\r\n\r\n", "400"},
		"long URL":           {"GET /" + strings.Repeat("x", 100<<10) + " HTTP/1.1\r\nHost: HOST\r\n\r\n", "431 414"},
		"many cookies":       {"GET /health HTTP/1.1\r\nHost: HOST\r\n" + strings.Repeat("Cookie: a=b\r\n", 100_000) + "\r\n", "431"},
		"CONNECT":            {"CONNECT /rpc HTTP/1.1\r\nHost: HOST\r\n\r\n", "405 404 403 400"},
	} {
		line := raw(t, base, tt.request)
		good := false
		for _, code := range strings.Fields(tt.want) {
			good = good || strings.HasPrefix(line, "HTTP/1.1 "+code)
		}
		if !good {
			t.Errorf("%s: %q, want %s", name, line, tt.want)
		}
	}
	for _, method := range []string{"TRACE", "OPTIONS", "PROPFIND"} {
		if got := ask(t, http.DefaultClient, method, base+"/agents", "", "X-HTTP-Method-Override", "GET"); got.status < 400 || got.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: got %+v, want status at least 400, no Access-Control-Allow-Origin", method, got)
		}
	}
	if reached > 0 {
		t.Errorf("%d requests of other methods have reached a handler", reached)
	}
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{"//evil.example/..", "/%5cevil.example", "//evil.example/%2e%2e", "/api//../../evil", "/a/..//evil.example"} {
		got := ask(t, c, "GET", base+path, "")
		if l := got.header.Get("Location"); l != "" && (!strings.HasPrefix(l, "/") || strings.HasPrefix(l, "//") || strings.HasPrefix(l, `/\`)) {
			t.Errorf("%s leads to %s", path, l)
		}
	}
}

// HT-08: half requests are closed by the deadline, and do not hold up whole ones.
func TestSlowRequests(t *testing.T) {
	a, _ := authority(t)
	base, _ := serving(t, Config{Authority: a, MCP: http.NotFoundHandler()})
	addr := strings.TrimPrefix(base, "http://")
	var half []net.Conn
	for range 300 {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: "+addr+"\r\nX-Slow: ")
		half = append(half, conn)
	}
	if got := ask(t, http.DefaultClient, "GET", base+"/health", ""); got.status != 200 {
		t.Errorf("got %+v, want status 200", got)
	}
	for _, conn := range half {
		_ = conn.SetReadDeadline(time.Now().Add(eventually.Limit))
		if _, err := io.Copy(io.Discard, conn); err != nil {
			t.Fatalf("half a request stays open: %v", err)
		}
	}
}

// AU-45: the answers to the token of a revoked device, a malformed and a forged one are the same.
func TestNothingIsBetrayed(t *testing.T) {
	a, _ := authority(t)
	tok := token(t, a, "known", auth.AgentsRead)
	if err := a.Revoke(t.Context(), auth.LocalOwner, "known", ""); err != nil {
		t.Fatal(err)
	}
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	base, _ := serving(t, Config{Authority: a, MCP: ok, Routes: apis(t, ok)})
	var bodies []string
	for _, bearer := range []string{tok, "a.b.c", tok[:len(tok)-4] + "AAAA"} {
		got := ask(t, http.DefaultClient, "GET", base+"/agents", "", "Authorization", "Bearer "+bearer)
		bodies = append(bodies, got.body+got.header.Get("WWW-Authenticate"))
		if got.status != 401 {
			t.Errorf("got %+v, want status 401", got)
		}
	}
	if bodies[0] != bodies[1] || bodies[1] != bodies[2] {
		t.Errorf("got %q, want bodies[0] %v, bodies[1] %v", bodies, bodies[1], bodies[2])
	}
}

// HT-22, COD-2: a handler that panics costs one request, and tells nothing of itself but
// the id that the log has; /v1 has one code and one id for it.
func TestPanic(t *testing.T) {
	a, _ := authority(t)
	broken := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret /home/me") })
	base, _ := serving(t, Config{Authority: a, MCP: broken, Routes: apis(t, broken)})
	got := ask(t, http.DefaultClient, "GET", base+"/mcp", "")
	if got.status != 500 || strings.Contains(got.body, "secret") || !strings.Contains(got.body, "request id") {
		t.Errorf("got %+v, want 500 with an id alone", got)
	}
	got = ask(t, http.DefaultClient, "GET", base+"/v1/sessions", "")
	var e struct {
		Error struct {
			Code, Message string
			RequestID     string `json:"request_id"`
		}
	}
	if err := json.Unmarshal([]byte(got.body), &e); err != nil || e.Error.Code != "internal" || e.Error.RequestID == "" || e.Error.Message != "internal error, request id "+e.Error.RequestID {
		t.Errorf("/v1: got %s (%v), want the code internal and one id", got.body, err)
	}
	if got := ask(t, http.DefaultClient, "GET", base+"/health", ""); got.status != 200 {
		t.Errorf("/health afterwards: got %+v, want 200", got)
	}
}
