package gateway

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
	"github.com/yaya-ai/yaya/internal/systemd"
)

// OP-70: a server that leaves hands its sockets and the connections that are idle to the next
// one: a request on such a connection and one on a new connection are answered by it, a call
// that runs ends, so does a request of which only a part had come, and a stream is told to come back.
func TestLeave(t *testing.T) {
	hold, held := make(chan struct{}), make(chan struct{})
	mcp := func(name string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodGet:
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, ": here\n\n")
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
			case r.URL.Path == "/mcp/slow":
				close(held)
				<-hold
			}
			if r.Method == http.MethodPost {
				_, _ = io.WriteString(w, name)
			}
		})
	}
	cfg := Config{Listen: "127.0.0.1:0", Socket: filepath.Join(t.TempDir(), "s"), MCP: mcp("first")}
	l, err := Listen(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr()
	first := New(l, cfg)
	if err := first.OnLoad(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	dial := func() net.Conn {
		t.Helper()
		c, err := net.Dial("tcp", at) //nolint:noctx // test
		if err != nil {
			t.Fatalf("Dial() = %v, want a connection that waits", err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	send := func(c net.Conn, method, path string) {
		t.Helper()
		if _, err := fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nContent-Length: 0\r\n\r\n", method, path, at); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(c net.Conn) string {
		t.Helper()
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	idle, fresh, slow, stream, half, halfNew := dial(), dial(), dial(), dial(), dial(), dial()
	for _, c := range []net.Conn{idle, half} {
		send(c, "POST", "/mcp")
		if got := answer(c); got != "first" {
			t.Fatalf("POST /mcp = %q, want first", got)
		}
	}
	for _, c := range []net.Conn{half, halfNew} { // under way, though net/http calls them idle and new
		if _, err := io.WriteString(c, "POST /mcp HTTP/1.1\r\nHost: "+at+"\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	send(slow, "POST", "/mcp/slow")
	<-held
	send(stream, "GET", "/mcp")
	streamed, err := http.ReadResponse(bufio.NewReader(stream), nil)
	if err != nil || streamed.StatusCode != http.StatusOK {
		t.Fatalf("GET /mcp = %v, %v; want a stream", streamed, err)
	}
	done := make(chan Left, 1)
	go func() {
		left, err := first.Leave(t.Context(), time.Minute, func() {})
		if err != nil {
			t.Errorf("Leave = %v, want no error", err)
		}
		done <- left
	}()
	if _, err := io.ReadAll(streamed.Body); err != nil {
		t.Errorf("the stream ended with %v, want a clean end", err)
	}
	eventually.True(t, "the idle connection has been passed", func() bool {
		p := &first.conns.passing
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.files) >= 2
	})
	for name, c := range map[string]net.Conn{"idle": half, "new": halfNew} {
		if _, err := io.WriteString(c, "Content-Length: 0\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if got := answer(c); got != "first" {
			t.Errorf("the request that had begun on the %s connection = %q, want first", name, got)
		}
	}
	late := dial()
	send(late, "POST", "/mcp")
	close(hold)
	if got := answer(slow); got != "first" {
		t.Errorf("the call that ran = %q, want first", got)
	}
	left := <-done
	if !left.Drained || len(left.Sockets) != 2 || len(left.Conns) < 3 {
		t.Fatalf("Leave() = %+v; want drained, two sockets, and the connections idle, fresh and stream", left)
	}
	if err := first.OnUnload(t.Context(), nil); err != nil {
		t.Errorf("OnUnload() = %v, want nil", err)
	}
	send(idle, "POST", "/mcp") // nobody serves now
	passed, err := systemd.Open(left.Sockets, MainSocket, LocalSocket, UnixSocket)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Passed, cfg.Adopt, cfg.MCP = passed, left.Conns, mcp("second")
	next, err := Listen(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range left.Sockets {
		_ = s.Close()
	}
	for _, f := range left.Conns {
		_ = f.Close()
	}
	next.Keep()
	second := New(next, cfg)
	if err := second.OnLoad(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	send(fresh, "POST", "/mcp")
	for name, c := range map[string]net.Conn{"idle": idle, "fresh": fresh, "new": late} {
		if got := answer(c); got != "second" {
			t.Errorf("the %s connection has %q, want second", name, got)
		}
	}
	if err := second.OnUnload(t.Context(), nil); err != nil {
		t.Errorf("OnUnload() = %v, want nil", err)
	}
	if !free(t, "tcp", at) || !free(t, "unix", cfg.Socket) {
		t.Error("an address is still bound, want all free")
	}
}

// OP-74: a socket that a service manager passes is bound by the rules of listeners, too.
func TestPassedSocketsAreChecked(t *testing.T) {
	all, err := net.Listen("tcp", "0.0.0.0:0") //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	s, err := systemd.Keep(MainSocket, all)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, port, _ := net.SplitHostPort(all.Addr().String())
	_ = all.Close()
	passed, err := systemd.Open([]systemd.Socket{s}, MainSocket)
	if err != nil {
		t.Fatal(err)
	}
	if l, err := Listen(t.Context(), Config{Listen: "localhost:" + port, Passed: passed}); err == nil || !strings.Contains(err.Error(), "other machines") {
		t.Errorf("Listen() with a passed socket for all = %v, %v; want an error", l, err)
	}
}
