package fastpath_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/yaya-ai/yaya/internal/fastpath"
)

// BenchmarkRequest is a small request over TCP, with a handler that reads it.
func BenchmarkRequest(b *testing.B) {
	answer := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}`)
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var buf [512]byte
		for {
			if _, err := r.Body.Read(buf[:]); err != nil {
				break
			}
		}
		w.Header()["Content-Type"] = []string{"application/json"}
		_, _ = w.Write(answer)
	})
	for _, name := range []string{"fastpath", "net-http"} {
		b.Run(name, func(b *testing.B) {
			var lc net.ListenConfig
			inner, err := lc.Listen(b.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				b.Fatal(err)
			}
			srv := &http.Server{Handler: h, ReadHeaderTimeout: headTimeout, IdleTimeout: idleTimeout}
			l := inner
			if name == "fastpath" {
				fast := fastpath.Listen(tcpConns{inner}, fastpath.Config{
					Handler: h, Takes: func(string) bool { return true }, Context: func(net.Conn) context.Context { return context.Background() },
					HeadTimeout: headTimeout, IdleTimeout: idleTimeout,
				})
				defer fast.Wait()
				defer fast.Abort()
				l = fast
			}
			done := make(chan error, 1)
			go func() { done <- srv.Serve(l) }()
			defer func() {
				_ = srv.Close()
				<-done
			}()
			var d net.Dialer
			c, err := d.DialContext(b.Context(), "tcp", inner.Addr().String())
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			in, request := bufio.NewReader(c), []byte(post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Accept: application/json, text/event-stream\r\nMcp-Session-Id: 0123456789abcdef\r\n"))
			exchange := func() int {
				if _, err := c.Write(request); err != nil {
					b.Fatal(err)
				}
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.Copy(io.Discard, resp.Body)
				if err != nil {
					b.Fatal(err)
				}
				return int(n)
			}
			if n := exchange(); n != len(answer) {
				b.Fatalf("got %d bytes, want %d", n, len(answer))
			}
			b.ReportAllocs()
			for b.Loop() {
				exchange()
			}
		})
	}
}
