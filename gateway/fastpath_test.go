package gateway

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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

// wireTLS is [wire] over TLS.
func wireTLS(t *testing.T, addr string) *wired {
	t.Helper()
	w := wire(t, addr)
	w.c = tls.Client(w.c, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}) //nolint:gosec // the test's own server
	w.in = bufio.NewReader(w.c)
	return w
}

// certified is a certificate of a test's server.
func certified(t *testing.T) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	cert := s.TLS.Certificates[0]
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &cert, nil }
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
	for name, c := range map[string]struct{ slow, secure bool }{
		"fast path": {}, "slow path": {slow: true}, "fast path, TLS": {secure: true}, "slow path, TLS": {slow: true, secure: true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, wire, scheme := Config{Listen: "127.0.0.1:0", Socket: t.TempDir() + "/s", SlowPath: c.slow, Authority: a}, wire, "http"
			if c.secure {
				cfg.TLS, wire, scheme = certified(t), wireTLS, "https"
			}
			var callers []string
			var used atomic.Uint64 // of the memory, in percent
			cfg.MCP = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				callers = append(callers, auth.FromContext(r.Context()).Actor()+" "+r.Pattern)
				if (r.TLS != nil) != c.secure {
					t.Errorf("the request has TLS: %v, want %v", r.TLS != nil, c.secure)
				}
				w.WriteHeader(http.StatusAccepted)
			})
			srv, _ := started(t, cfg, func(s *Server) { s.load.limit, s.load.used = 100, used.Load })
			c := wire(t, srv.Addr())
			for n, step := range []struct {
				fields []string
				want   int
			}{
				{nil, 202},
				{nil, 202},
				{[]string{"Origin: http://evil.example"}, 403},
				{[]string{"Origin: " + scheme + "://" + srv.Addr()}, 202},
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
	cfg := Config{Listen: "127.0.0.1:0", Socket: t.TempDir() + "/s", MCP: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fast = strings.Contains(fmt.Sprintf("%T", w), "fastpath.")
		w.WriteHeader(http.StatusAccepted)
	})}
	for _, wire := range []func(*testing.T, string) *wired{wire, wireTLS} {
		srv, _ := started(t, cfg)
		if got := wire(t, srv.Addr()).post(); got != http.StatusAccepted || !fast {
			t.Errorf("TLS %v: got status %d, served by the fast path: %v, want 202 and true", cfg.TLS != nil, got, fast)
		}
		fast, cfg.TLS, cfg.Socket = false, certified(t), ""
	}
}

// A connection with HTTP/2 goes on behind the fast path's handshake, from its first request to
// others after pauses, and several at once.
func TestHTTP2BehindTheFastPath(t *testing.T) {
	srv, _ := started(t, Config{Listen: "127.0.0.1:0", TLS: certified(t), MCP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(w, r.Body); err != nil {
			t.Error(err)
		}
	})})
	tr := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the test's own server
	defer tr.CloseIdleConnections()
	body := strings.Repeat("x", 1000)
	ask := func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+srv.Addr()+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Error(err)
			return
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != body || resp.ProtoMajor != 2 {
			t.Errorf("%s over %s: got %d bytes, %v, want those that were sent, over HTTP/2", resp.Status, resp.Proto, len(got), err)
		}
	}
	for range 100 {
		ask()
	}
	var all sync.WaitGroup
	for range 50 {
		all.Go(ask)
	}
	all.Wait()
}
