package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// SEC-11: a body that does not come ends its connection, whether a handler reads it
// or not.
func TestBodiesHaveADeadline(t *testing.T) {
	a, _ := authority(t)
	reads := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) })
	ignores := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	srv, _ := started(t, Config{
		Listen: "127.0.0.1:0", Socket: filepath.Join(t.TempDir(), "s"), Authority: a, MCP: reads, Routes: apis(t, ignores),
		limits: limits{body: 50 * time.Millisecond},
	})
	for _, route := range []string{"GET /health", "HEAD /health", "GET /nowhere", "POST /auth/register", "POST /auth/refresh", "POST /mcp", "DELETE /mcp", "PATCH /api/config/x", "POST /nowhere"} {
		for name, head := range map[string]string{
			"announced":          "Content-Length: 100\r\n\r\n",
			"announced, large":   "Content-Length: 4000000\r\n\r\n",
			"begun":              "Content-Length: 100\r\n\r\n{",
			"chunked":            "Transfer-Encoding: chunked\r\n\r\n",
			"chunked, and begun": "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		} {
			c := dialFrom(t, srv.Addr(), 1)
			fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s", route, srv.Addr(), head)
			if !closedByPeer(t, c) {
				t.Errorf("%s, %s: the connection stays open", route, name)
			}
		}
	}
}

// SEC-11: a body that nobody reads does not hold up the end of its request for as long as one that
// somebody does: a stop waits for it.
func TestUnreadBodiesEndSoon(t *testing.T) {
	a, _ := authority(t)
	srv, _ := started(t, Config{
		Listen: "127.0.0.1:0", Socket: filepath.Join(t.TempDir(), "s"), Authority: a, MCP: http.NotFoundHandler(),
		limits: limits{body: time.Hour, rest: 50 * time.Millisecond},
	})
	for name, head := range map[string]string{
		"a foreign host":      "Host: evil.example\r\n",
		"a token that is bad": "Host: " + srv.Addr() + "\r\nAuthorization: Bearer nope\r\n",
	} {
		for _, size := range []string{"Content-Length: 100\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"} {
			c := dialFrom(t, srv.Addr(), 1)
			fmt.Fprintf(c, "POST /mcp HTTP/1.1\r\nContent-Type: application/json\r\n%s%s", head, size)
			if !closedByPeer(t, c) {
				t.Errorf("%s: the connection stays open", name)
			}
		}
	}
}

// REL-3: the deadline of a body ends with the body: work and streams that take
// longer go on.
func TestDeadlinesEndWithBodies(t *testing.T) {
	const limit = 50 * time.Millisecond
	a, _ := authority(t)
	slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("ReadAll of the request's body = %v, want no error", err)
		}
		w.WriteHeader(http.StatusOK)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("Flush = %v, want no error", err)
		}
		select {
		case <-r.Context().Done():
			fmt.Fprint(w, "cancelled")
		case <-time.After(10 * limit):
			fmt.Fprint(w, string(body))
		}
	})
	srv, _ := started(t, Config{
		Listen: "127.0.0.1:0", Socket: filepath.Join(t.TempDir(), "s"), Authority: a, MCP: slow, limits: limits{body: limit},
	})
	c := dialFrom(t, srv.Addr(), 1)
	r := bufio.NewReader(c)
	for _, tt := range []struct{ name, method, rest, want string }{
		{"announced", "POST", "Content-Length: 5\r\n\r\nhello", "hello"},
		{"chunked", "POST", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello"},
		{"a GET's", "GET", "Content-Length: 5\r\n\r\nhello", ""},
		{"none", "GET", "\r\n", ""},
		{"empty", "POST", "Content-Length: 0\r\n\r\n", ""},
	} { // all on one connection
		fmt.Fprintf(c, "%s /mcp HTTP/1.1\r\nHost: %s\r\n%s", tt.method, srv.Addr(), tt.rest)
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			t.Fatalf("%s: ReadResponse = %v, want a response", tt.name, err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || strings.TrimSpace(string(body)) != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.name, body, err, tt.want)
		}
	}
}
