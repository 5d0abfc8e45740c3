package fastpath_test

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/yaya-ai/yaya/internal/fastpath"
)

// certificate is one for tests.
var certificate = sync.OnceValue(func() tls.Certificate {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS.Certificates[0]
})

// withTLS has connections begin with a handshake.
func withTLS(protocols ...string) func(*fastpath.Config) {
	cert := certificate()
	return func(c *fastpath.Config) {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{cert}, NextProtos: protocols}
	}
}

// trusting is the configuration of a client that tests no certificate.
func trusting(version uint16, protocols ...string) *tls.Config {
	return &tls.Config{InsecureSkipVerify: true, MinVersion: version, MaxVersion: version, NextProtos: protocols} //nolint:gosec // the test's own server
}

// secretly is [road.exchange] over TLS: the client says farewell when it has sent everything.
func (r *road) secretly(t *testing.T, version uint16, sent []byte) []byte {
	t.Helper()
	plain := r.dial()
	defer func() { _ = plain.Close() }()
	c := tls.Client(plain, trusting(version))
	if err := c.Handshake(); err != nil { //nolint:noctx // a connection in memory
		t.Fatal(err)
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		if _, err := c.Write(sent); err == nil { // the server may close before
			_ = c.CloseWrite()
		}
	})
	got, _ := io.ReadAll(c) // however that ends
	_ = plain.Close()
	sending.Wait()
	return got
}

// TestRoadsAreEqual, over TLS.
func TestRoadsAreEqualOverTLS(t *testing.T) {
	h := http.HandlerFunc(echo)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		slow, fast := newRoad(t, false, h, withTLS()), newRoad(t, true, h, withTLS())
		for name, sent := range cases() {
			want := answers(slow.secretly(t, version, []byte(sent)), http.MethodPost)
			got := answers(fast.secretly(t, version, []byte(sent)), http.MethodPost)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %s: got\n%.2000s\nwant\n%.2000s", tls.VersionName(version), name, fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
			}
		}
	}
}

// Requests over TLS are the fast path's; those of HTTP/2, and others that are not simple, are net/http's.
// All know their TLS.
func TestWhoServesTLS(t *testing.T) {
	for name, c := range map[string]struct {
		protocols []string
		method    string
		want      string
	}{
		"HTTP/1.1, agreed on":  {[]string{"http/1.1"}, http.MethodPost, "*fastpath.exchange HTTP/1.1 true"},
		"HTTP/1.1, by default": {nil, http.MethodPost, "*fastpath.exchange HTTP/1.1 true"},
		"a GET":                {nil, http.MethodGet, "*http.response HTTP/1.1 true"},
		"HTTP/2":               {[]string{"h2", "http/1.1"}, http.MethodPost, "HTTP/2.0 true"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRoad(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = fmt.Fprintf(w, "%T %s %v", w, r.Proto, r.TLS != nil)
			}), withTLS("h2", "http/1.1"))
			tr := &http.Transport{ForceAttemptHTTP2: len(c.protocols) == 2, TLSClientConfig: trusting(0, c.protocols...), Dial: func(string, string) (net.Conn, error) { return r.dial(), nil }} //nolint:staticcheck // a connection in memory has no context
			defer tr.CloseIdleConnections()
			req, err := http.NewRequestWithContext(t.Context(), c.method, "https://localhost/a", strings.NewReader("x"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			if body, err := io.ReadAll(resp.Body); err != nil || !strings.HasSuffix(string(body), c.want) {
				t.Errorf("got %q, %v, want %q", body, err, c.want)
			}
		})
	}
}

// Handshakes that fail get net/http's answer, and one that does not come ends its connection as it
// does there.
func TestHandshakesThatFail(t *testing.T) {
	change := withTLS("http/1.1")
	for name, fast := range map[string]bool{"net/http": false, "fast path": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRoad(t, fast, http.HandlerFunc(echo), change)
				c := r.dial()
				send(t, c, post("/a", "x")[:5]) // a record's head: more is not read
				if resp, body := status(t, c); resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "HTTPS") {
					t.Errorf("HTTP without TLS got %s, %q, want status 400 and that the server speaks HTTPS", resp.Status, body)
				}
				_ = c.Close()
				if took := ended(t, r.dial()); took != headTimeout {
					t.Errorf("a connection without a handshake ended after %v, want %v", took, headTimeout)
				}
				other := tls.Client(r.dial(), trusting(tls.VersionTLS13, "other"))
				if err := other.Handshake(); err == nil { //nolint:noctx // a connection in memory
					t.Error("a client with another protocol made a handshake, want an error")
				}
				_ = other.NetConn().Close()
				c = r.dial()
				secret := tls.Client(c, trusting(tls.VersionTLS13))
				if err := secret.Handshake(); err != nil { //nolint:noctx // a connection in memory
					t.Fatal(err)
				}
				since := time.Now()
				if n, err := secret.Read(make([]byte, 1)); !errors.Is(err, io.EOF) || time.Since(since) != headTimeout {
					t.Errorf("a connection without a request ended with %d bytes, %v after %v, want EOF after %v", n, err, time.Since(since), headTimeout)
				}
				_ = c.Close()
			})
		})
	}
}

// A client with TLS that leaves ends its request, whether it says farewell and stays, only closes
// its connection, or resets it: at the same time on both roads.
func TestClientsWithTLSThatLeave(t *testing.T) {
	change := withTLS()
	for name, leave := range map[string]func(*tls.Conn) error{
		"says farewell": func(c *tls.Conn) error { return c.CloseWrite() },
		"closes":        func(c *tls.Conn) error { return c.Close() },
		"vanishes":      func(c *tls.Conn) error { return c.NetConn().Close() },
	} {
		for road, fast := range map[string]bool{"net/http": false, "fast path": true} {
			for body, pause := range map[string]time.Duration{"with the head": 0, "later": time.Second} {
				t.Run(name+", "+road+", a body that comes "+body, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						began, over := make(chan struct{}), make(chan struct{})
						r := newRoad(t, fast, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
							if got, err := io.ReadAll(r.Body); err != nil || string(got) != "xyz" {
								t.Errorf("the body is %q, %v, want xyz", got, err)
							}
							close(began)
							<-r.Context().Done()
							close(over)
						}), change)
						plain := r.dial()
						defer func() { _ = plain.Close() }()
						c := tls.Client(plain, trusting(tls.VersionTLS13))
						send(t, c, strings.TrimSuffix(post("/a", "xyz"), "z"))
						time.Sleep(pause)
						send(t, c, "z")
						<-began
						go func() { _, _ = io.Copy(io.Discard, plain) }() // a pipe waits for who reads
						time.Sleep(10 * time.Second)
						synctest.Wait()
						select {
						case <-over:
							t.Fatal("the request has ended before its client left")
						default:
						}
						if err := leave(c); err != nil {
							t.Fatal(err)
						}
						<-over
					})
				})
			}
		}
	}
}

// Requests that take long do not lose what their client sends meanwhile, however it arrives, and
// the deadlines after them are the usual ones.
func TestRequestsAfterLongOnes(t *testing.T) {
	change := withTLS()
	for name, fast := range map[string]bool{"net/http": false, "fast path": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var n atomic.Int32
				r := newRoad(t, fast, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					if n.Add(1)%2 == 1 {
						time.Sleep(10 * time.Minute) // longer than every deadline
					}
					if err := r.Context().Err(); err != nil {
						t.Errorf("the context ended with %v, want it to go on", err)
					}
					_, _ = w.Write(body)
				}), change)
				plain := r.dial()
				defer func() { _ = plain.Close() }()
				c := tls.Client(plain, trusting(tls.VersionTLS13))
				in := bufio.NewReader(c)
				read := func(want string) {
					t.Helper()
					resp, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					if body, err := io.ReadAll(resp.Body); err != nil || string(body) != want {
						t.Fatalf("got %q, %v, want %q", body, err, want)
					}
				}
				for _, gap := range []time.Duration{0, time.Minute} {
					var sending sync.WaitGroup
					sending.Go(func() {
						for _, part := range []string{post("/a", "one"), post("/a", "two")[:3], post("/a", "two")[3:] + post("/a", "three"), post("/a", strings.Repeat("4", 9000))} {
							send(t, c, part)
							time.Sleep(gap)
						}
					})
					for _, want := range []string{"one", "two", "three", strings.Repeat("4", 9000)} {
						read(want)
					}
					sending.Wait()
				}
				since := time.Now()
				if _, err := in.ReadByte(); !errors.Is(err, io.EOF) || time.Since(since) < idleTimeout || time.Since(since) > idleTimeout*11/10 {
					t.Errorf("a pause ended the connection with %v after %v, want EOF after %v, or a tenth more", err, time.Since(since), idleTimeout)
				}
			})
		})
	}
}

// Shutdown ends a handshake that is under way, and connections without a request, which hear a
// farewell; one that is busy has its answer first.
func TestShutdownWithTLS(t *testing.T) {
	change := withTLS()
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		r := newRoad(t, true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/wait" {
				<-goOn
			}
			w.WriteHeader(http.StatusAccepted)
		}), change)
		shaking, idle, busy := r.dial(), tls.Client(r.dial(), trusting(tls.VersionTLS13)), tls.Client(r.dial(), trusting(tls.VersionTLS13))
		send(t, idle, post("/a", "x"))
		status(t, idle)
		send(t, busy, post("/wait", "x"))
		time.Sleep(time.Second) // it is watched
		if err := r.fast.Close(); err != nil {
			t.Fatal(err)
		}
		over := make(chan error, 1)
		go func() { over <- r.fast.Shutdown(t.Context()) }()
		ended(t, shaking)
		ended(t, idle)
		select {
		case err := <-over:
			t.Fatalf("Shutdown() = %v while a request runs, want it to wait", err)
		default:
		}
		close(goOn)
		if resp, _ := status(t, busy); resp.StatusCode != http.StatusAccepted || !resp.Close {
			t.Errorf("got %s, close %v, want status 202 and that the connection closes", resp.Status, resp.Close)
		}
		ended(t, busy)
		if err := <-over; err != nil {
			t.Error(err)
		}
		_, _ = idle.NetConn().Close(), busy.NetConn().Close()
	})
}
