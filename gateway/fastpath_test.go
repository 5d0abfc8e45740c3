package gateway

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/yaya-ai/yaya/auth"
)

// wired sends requests over one connection, byte for byte.
type wired struct {
	t    *testing.T
	c    net.Conn
	in   *bufio.Reader
	addr string
}

func wire(t *testing.T, addr string) *wired {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &wired{t, c, bufio.NewReader(c), addr}
}

// post sends a request for MCP and returns the status of its answer. A field Host replaces
// the usual one.
func (w *wired) post(fields ...string) int {
	w.t.Helper()
	all := strings.Join(fields, "\r\n")
	if !strings.Contains(all, "Host:") {
		fields = append(fields, "Host: "+w.addr)
	}
	if _, err := fmt.Fprintf(w.c, "POST /mcp HTTP/1.1\r\n%s\r\nContent-Length: 2\r\n\r\n{}", strings.Join(fields, "\r\n")); err != nil {
		w.t.Fatal(err)
	}
	resp, err := http.ReadResponse(w.in, nil)
	if err != nil {
		w.t.Fatalf("%q: %v", fields, err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode
}

// AU-38, TW-15, LD-05: the fast path takes the checks of a head over to the next requests with it,
// on one connection, for the local owner alone. Every other head is checked as on the slow
// path, with the same answers, and what can change is looked at for each request.
func TestBothPathsAdmitTheSame(t *testing.T) {
	a, _ := authority(t)
	for name, slow := range map[string]bool{"fast path": false, "slow path": true} {
		t.Run(name, func(t *testing.T) {
			var callers []string
			var used atomic.Uint64 // of the memory, in percent
			srv, _ := started(t, Config{Listen: "127.0.0.1:0", Socket: t.TempDir() + "/s", SlowPath: slow, Authority: a, MCP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				callers = append(callers, auth.FromContext(r.Context()).Actor()+" "+r.Pattern)
				w.WriteHeader(http.StatusAccepted)
			})}, func(s *Server) { s.load.limit, s.load.used = 100, used.Load })
			c := wire(t, srv.Addr())
			for n, step := range []struct {
				fields []string
				want   int
			}{
				{nil, 202},
				{nil, 202},
				{[]string{"Origin: http://evil.example"}, 403},
				{[]string{"Origin: http://" + srv.Addr()}, 202},
				{[]string{"Host: evil.example"}, 403},
				{[]string{"Sec-Fetch-Site: cross-site"}, 403},
				{[]string{"X-Forwarded-For: 192.0.2.1"}, 401},
				{[]string{"Authorization: Bearer wrong"}, 401},
				{[]string{"Authorization: Basic x"}, 401},
				{nil, 202},
			} {
				if got := c.post(step.fields...); got != step.want {
					t.Errorf("step %d, %q: got status %d, want %d", n, step.fields, got, step.want)
				}
			}
			if want := strings.Repeat(" owner /mcp", 4); " "+strings.Join(callers, " ") != want {
				t.Errorf("the handler saw %q, want %q", callers, want)
			}
			used.Store(100)
			srv.load.share.Store(math.Float64bits(1))
			if got := c.post(); got != http.StatusServiceUnavailable {
				t.Errorf("without memory: got status %d, want 503", got)
			}
			used.Store(0)
			srv.load.share.Store(0)
			if got := c.post(); got != http.StatusAccepted {
				t.Errorf("with memory again: got status %d, want 202", got)
			}
			srv.leaving.Store(true)
			if got := c.post(); got != http.StatusAccepted {
				t.Errorf("while the server leaves: got status %d, want 202", got)
			}
			srv.leaving.Store(false)
			if rest, err := io.ReadAll(c.in); err != nil || len(rest) > 0 {
				t.Errorf("behind the answer of a server that leaves come %q, %v, want the end", rest, err)
			}
		})
	}
}

// The tests of the gateway are about the fast path where they mean to be.
func TestFastPathServes(t *testing.T) {
	if slowPath {
		t.Skip("the tests run on the slow path")
	}
	var fast bool
	srv, _ := started(t, Config{Listen: "127.0.0.1:0", Socket: t.TempDir() + "/s", MCP: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fast = strings.Contains(fmt.Sprintf("%T", w), "fastpath.")
		w.WriteHeader(http.StatusAccepted)
	})})
	if got := wire(t, srv.Addr()).post(); got != http.StatusAccepted || !fast {
		t.Errorf("got status %d, served by the fast path: %v, want 202 and true", got, fast)
	}
}
