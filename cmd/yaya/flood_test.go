package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// SEC-10, SEC-11: bodies that are announced and do not come take no memory, and their
// connections are closed, whether a handler reads the body or not.
func TestSilentBodies(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a body may take 30 s")
	}
	b := newBox(t)
	b.env = []string{"GOMEMLIMIT=192MiB"} // at which 1.6 GB are refused
	b.serve()
	var silent []net.Conn
	open := func(head string) {
		c, err := net.Dial("tcp", b.addr) //nolint:noctx // test
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n%s\r\n\r\n{", head, b.addr, "Content-Length: 4194304"); err != nil {
			t.Fatal(err)
		}
		silent = append(silent, c)
	}
	for range 400 {
		open("POST /mcp")
	}
	for range 100 {
		open("GET /health")
	}
	for looks := range 15 { // memory is looked at once a second
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url(), strings.NewReader(initializeBody))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("request %d while bodies are awaited: got %s, want 200", looks, resp.Status)
		}
		time.Sleep(200 * time.Millisecond)
	}
	for n, c := range silent {
		_ = c.SetReadDeadline(time.Now().Add(60 * time.Second))
		if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("silent connection %d stays open", n)
		}
	}
}

// SEC-9: 256 WebSockets of 16 addresses that say nothing do not keep the owner's page
// from following, nor others from connecting.
func TestSilentWebSockets(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.serve()
	dial := func(from net.IP, path string) *websocket.Conn {
		d := websocket.Dialer{NetDialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).DialContext}
		ws, resp, err := d.DialContext(t.Context(), "ws://"+b.addr+path, nil)
		if err != nil && resp == nil && !from.Equal(net.IPv4(127, 0, 0, 1)) {
			t.Skip("this machine has one loopback address:", err)
		}
		if err != nil {
			t.Fatalf("%s: got %v, %v, want a WebSocket", path, resp, err)
		}
		_ = resp.Body.Close()
		t.Cleanup(func() { _ = ws.Close() })
		return ws
	}
	for n := range 256 {
		dial(net.IPv4(127, 0, 1, byte(n/16+1)), "/ws")
	}
	for path, want := range map[string]string{"/api/live": "auth_ok", "/ws": "auth_challenge"} {
		if _, first, err := dial(net.IPv4(127, 0, 0, 1), path).ReadMessage(); err != nil || !strings.Contains(string(first), want) {
			t.Errorf("%s: got %q, %v, want %s", path, first, err, want)
		}
	}
}

const initializeBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
