package gateway

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/eventually"
)

// A server that stops ends the connections of the fast path at once, even if net/http waits
// for a request of its own.
func TestStopEndsBothPaths(t *testing.T) {
	for name, c := range map[string]struct{ slow, secure bool }{
		"fast path": {}, "slow path": {slow: true}, "fast path, TLS": {secure: true}, "slow path, TLS": {slow: true, secure: true},
	} {
		t.Run(name, func(t *testing.T) {
			held, hold := make(chan struct{}), make(chan struct{})
			cfg := Config{Listen: "127.0.0.1:0", SlowPath: c.slow, DrainTimeout: 20 * time.Second, MCP: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					close(held)
					<-hold
				}
			})}
			wire := wire
			if c.secure {
				cfg.TLS, wire = certified(t), wireTLS
			}
			l, err := Listen(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			srv := New(l, cfg)
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { done <- srv.Run(ctx) }()
			idle, waits := wire(t, srv.Addr()), wire(t, srv.Addr())
			if got := idle.post(); got != http.StatusOK {
				t.Fatalf("got status %d, want 200", got)
			}
			if _, err := io.WriteString(waits.c, "PUT /mcp HTTP/1.1\r\nHost: "+srv.Addr()+"\r\nContent-Length: 0\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			<-held
			stop()
			if err := idle.c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
				t.Fatal(err)
			}
			if rest, err := io.ReadAll(idle.in); err != nil || len(rest) > 0 {
				t.Errorf("the idle connection ended with %q, %v while another request runs, want the end", rest, err)
			}
			close(hold)
			if err := <-done; err != nil {
				t.Errorf("Run = %v, want no error", err)
			}
		})
	}
}

// The process at the other end of a connection is looked for once, whoever serves it: it does not
// get other rights by a request that net/http has to serve.
func TestOneVerdictForAConnection(t *testing.T) {
	var looks atomic.Int32
	srv, _ := started(t, Config{Listen: "127.0.0.1:0", Socket: t.TempDir() + "/s", MCP: http.NotFoundHandler(), Tool: func(pid int) bool {
		if pid == os.Getpid() {
			looks.Add(1)
		}
		return false
	}})
	c := wire(t, srv.Addr())
	c.post()
	first := looks.Load()
	if first == 0 {
		t.Skip("processes are not looked for here")
	}
	c.post("Connection: keep-alive", "Te: trailers") // net/http's
	c.post()
	if got := looks.Load(); got != first {
		t.Errorf("the process was asked about %d times, want %d: once for the connection", got, first)
	}
}

// OP-70: a connection is handed over when its request has been answered, in whatever pieces the request came.
func TestLeaveAfterPieces(t *testing.T) {
	cfg := Config{Listen: "127.0.0.1:0", MCP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
	})}
	l, err := Listen(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.SlowPath = slowPath
	srv := New(l, cfg)
	if err := srv.OnLoad(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	c := wire(t, srv.Addr())
	for _, part := range []string{"POST /mcp HTTP/1.1\r\nHost: " + srv.Addr() + "\r\nContent-Length: 3\r\n\r\nab", "c"} {
		if _, err := io.WriteString(c.c, part); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(part, "ab") {
			eventually.True(t, "the server reads", func() bool {
				for x := range srv.opened.all() {
					g := x.(*guest)
					g.progress.deadline.Lock()
					ready := !g.progress.until.IsZero() && time.Until(g.progress.until) > readHeaderTimeout // that of the body
					g.progress.deadline.Unlock()
					return ready
				}
				return false
			})
		}
	}
	resp, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "abc" {
		t.Errorf("got %q, %v, want abc", body, err)
	}
	since := time.Now()
	left, err := srv.Leave(t.Context(), 5*time.Second, func() {})
	if err != nil || !left.Drained || len(left.Conns) != 1 {
		t.Errorf("Leave() = %+v, %v after %v, want drained, and one connection", left, err, time.Since(since))
	}
	for _, s := range left.Sockets {
		_ = s.Close()
	}
	for _, f := range left.Conns {
		_ = f.Close()
	}
	if err := srv.OnUnload(t.Context(), nil); err != nil {
		t.Errorf("OnUnload() = %v, want nil", err)
	}
}
