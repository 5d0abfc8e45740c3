package gateway

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"testing"
)

// free reports whether something else can listen at an address.
func free(t *testing.T, network, addr string) bool {
	t.Helper()
	l, err := net.Listen(network, addr) //nolint:noctx // test
	if err != nil {
		return false
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return true
}

// When one address of several cannot be had, none is kept.
func TestListenKeepsAllOrNone(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	other, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	at := other.Addr().String()
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]Config{
		"the local address is in use":         {Listen: at, Local: taken.Addr().String()},
		"the local address is not this one's": {Listen: at, Local: "0.0.0.0:0"},
		"the socket has no folder":            {Listen: at, Socket: filepath.Join(t.TempDir(), "none", "s")},
	} {
		if l, err := Listen(t.Context(), cfg); err == nil {
			t.Errorf("%s: Listen() listens on %s, want an error", name, l.Addr())
			_ = l.Close()
		}
		if !free(t, "tcp", at) {
			t.Errorf("%s: %s is still bound, want it free", name, at)
		}
	}
}

// A client that connects before the server runs is answered when it does; and listeners
// that the server has closed can be closed once more.
func TestListenersWaitForTheServer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := Listen(t.Context(), Config{Listen: "127.0.0.1:0", Local: "127.0.0.1:0", Socket: socket})
	if err != nil {
		t.Fatal(err)
	}
	if l.Addr() == l.LocalAddr() || l.LocalAddr() == "" {
		t.Errorf("Addr() = %q, LocalAddr() = %q; want two addresses", l.Addr(), l.LocalAddr())
	}
	early, err := net.Dial("tcp", l.Addr()) //nolint:noctx // test
	if err != nil {
		t.Fatalf("Dial() before the server runs: %v, want a connection that waits", err)
	}
	defer early.Close()
	if _, err := fmt.Fprintf(early, "GET /health HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", l.Addr()); err != nil {
		t.Fatal(err)
	}
	srv := New(l, Config{MCP: http.NotFoundHandler()})
	if err := srv.OnLoad(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(early), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("GET /health, sent before the server ran = %d, want 200", resp.StatusCode)
	}
	if err := srv.OnUnload(t.Context(), nil); err != nil {
		t.Errorf("OnUnload() = %v, want nil", err)
	}
	if err := l.Close(); err != nil {
		t.Errorf("Close() after the server = %v, want nil", err)
	}
	if !free(t, "tcp", l.Addr()) || !free(t, "unix", socket) {
		t.Error("an address is still bound, want all free")
	}
}
