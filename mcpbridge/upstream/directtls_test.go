package upstream

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/callctx"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// secured returns a configuration for servers, and a transport that trusts its certificate.
func secured(t *testing.T) (*tls.Config, *direct) {
	t.Helper()
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(srv.Close)
	d := NewTransport().(*direct) //nolint:forcetypeassert // what it makes
	d.next.TLSClientConfig = &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	d.next.TLSClientConfig.RootCAs.AddCert(srv.Certificate())
	t.Cleanup(d.CloseIdleConnections)
	return &tls.Config{Certificates: srv.TLS.Certificates, MinVersion: tls.VersionTLS12}, d
}

// idleTo returns the idle connections of a transport's own.
func (d *direct) idleTo(u *url.URL) []*directConn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.idle[origin{u.Scheme, u.Host}]
}

// A host that answers with HTTP/1.1 is called on connections without net/http's goroutines, from
// the second request on. One that speaks HTTP/2 never is.
func TestHTTPSOnOwnConnections(t *testing.T) {
	for protocol, own := range map[string]int{"http/1.1": 1, "h2": 0} {
		t.Run(protocol, func(t *testing.T) {
			_, d := secured(t)
			var seen sync.Map
			srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body) //nolint:forbidigo // test
				if err != nil || len(body) != int(r.ContentLength) {
					t.Errorf("the server got %d bytes, %v; want %d", len(body), err, r.ContentLength)
				}
				seen.Store(r.RemoteAddr, r.Proto)
				_, _ = w.Write(body)
			}))
			srv.EnableHTTP2 = protocol == "h2"
			srv.StartTLS()
			defer srv.Close()
			d.next.TLSClientConfig.RootCAs.AddCert(srv.Certificate())
			to, err := url.Parse(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{2, 2, 10, 3 * directBuffer, 256 << 10, 2} {
				if err := turn(t.Context(), d, to, bytes.Repeat([]byte("x"), size)); err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
			}
			conns := 0
			seen.Range(func(_, _ any) bool { conns++; return true })
			if got := len(d.idleTo(to)); got != own || conns != own+1 {
				t.Errorf("%d idle connections of our own and %d in all, want %d and %d", got, conns, own, own+1)
			}
		})
	}
}

// together delays what is written after hold until the end of the connection, so that all of it
// arrives in one piece.
type together struct {
	net.Conn
	mu   sync.Mutex
	hold bool
	late []byte
}

func (c *together) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hold {
		return c.Conn.Write(p)
	}
	c.late = append(c.late, p...)
	return len(p), nil
}

// Close leaves the connection itself open if something was delayed.
func (c *together) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.hold {
		return c.Conn.Close()
	}
	err := c.SetWriteDeadline(time.Time{}) // tls.Conn.Close has set one
	if err == nil {
		_, err = c.Conn.Write(c.late)
	}
	return err
}

// serveTLS is serveOn over TLS, for the requests of d.
func serveTLS(t *testing.T, cfg *tls.Config, d *direct, serve func(conn, request int, c net.Conn, under *together) bool) *url.URL {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() {
		d.CloseIdleConnections()
		_ = l.Close()
		all.Wait()
	})
	all.Go(func() {
		for n := 1; ; n++ {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			under := &together{Conn: nc}
			c := tls.Server(under, cfg)
			all.Go(func() {
				defer nc.Close()
				defer func() {
					_ = c.Close()
					_, _ = io.Copy(io.Discard, nc) // until the client leaves
				}()
				r := bufio.NewReader(c)
				for m := 1; ; m++ {
					req, err := http.ReadRequest(r)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					if !serve(n, m, c, under) {
						return
					}
				}
			})
		}
	})
	return &url.URL{Scheme: "https", Host: l.Addr().String(), Path: "/mcp"}
}

// A connection that the server has closed, or on which it has said something unasked, gets no
// request, whether that arrived in one piece with the last answer or later.
func TestStaleSecureConnections(t *testing.T) {
	for name, c := range map[string]struct {
		hold  bool // what follows the answer arrives with it
		after string
	}{
		"closed later": {}, "closed with the answer": {hold: true},
		"unasked later": {after: "HTTP/1.1 408 Request Timeout\r\n\r\n"}, "unasked with the answer": {hold: true, after: "HTTP/1.1 408 Request Timeout\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, d := secured(t)
			var requests atomic.Int32
			answered := make(chan struct{})
			to := serveTLS(t, cfg, d, func(n, _ int, conn net.Conn, under *together) bool {
				requests.Add(1)
				if n == 2 { // the first one of the transport's own
					under.mu.Lock()
					under.hold = c.hold
					under.mu.Unlock()
				}
				if _, err := io.WriteString(conn, plainAnswer); err != nil || n != 2 {
					return err == nil
				}
				if !c.hold {
					<-answered
				}
				_, err := io.WriteString(conn, c.after)
				return err == nil && c.after != "" && !c.hold
			})
			for range 2 { // on net/http's connection, and on our own
				if err := turn(t.Context(), d, to, []byte("{}")); err != nil {
					t.Fatal(err)
				}
			}
			list := d.idleTo(to)
			close(answered)
			if !c.hold {
				eventually.True(t, "the connection is stale", func() bool { return len(list) == 1 && !list[0].alive() })
			}
			if err := turn(t.Context(), d, to, []byte("{}")); err != nil {
				t.Errorf("RoundTrip after the connection became stale = %v, want an answer", err)
			}
			if got := requests.Load(); got != 3 {
				t.Errorf("the server got %d requests, want 3", got)
			}
		})
	}
}

// A host that changes its protocol or its certificate is judged by net/http.
func TestSecureHostsChange(t *testing.T) {
	good, d := secured(t)
	var two atomic.Bool // clients must offer HTTP/2
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Proto", r.Proto)
	}))
	srv.EnableHTTP2 = true
	srv.TLS = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) { //nolint:gosec // of good
		if !two.Load() {
			return good, nil
		}
		if !slices.Contains(hello.SupportedProtos, "h2") {
			return nil, errors.New("no HTTP/2")
		}
		only := good.Clone()
		only.NextProtos = []string{"h2"}
		return only, nil
	}}
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	to, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := turn(t.Context(), d, to, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if got := len(d.idleTo(to)); got != 1 {
		t.Fatalf("%d idle connections of our own, want 1", got)
	}
	d.CloseIdleConnections()

	trusted := d.next.TLSClientConfig.RootCAs
	d.next.TLSClientConfig.RootCAs = x509.NewCertPool()
	err = turn(t.Context(), d, to, []byte("{}"))
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok || d.speaksOne(to.Host) {
		t.Errorf("RoundTrip to a host with an unknown certificate = %v, remembered for HTTP/1.1: %v; want an error of verification, and not", err, d.speaksOne(to.Host))
	}
	d.next.TLSClientConfig.RootCAs = trusted
	if err := turn(t.Context(), d, to, []byte("{}")); err != nil || !d.speaksOne(to.Host) {
		t.Errorf("RoundTrip = %v, remembered: %v; want an answer, and yes", err, d.speaksOne(to.Host))
	}
	d.CloseIdleConnections()

	two.Store(true)
	if err := turn(t.Context(), d, to, []byte("{}")); err != nil || d.speaksOne(to.Host) {
		t.Errorf("RoundTrip to a host that speaks only HTTP/2 now = %v, remembered for HTTP/1.1: %v; want an answer, and not", err, d.speaksOne(to.Host))
	}
}

// The end of a call interrupts its connection over TLS, too.
func TestEndInterruptsTheSecureConnection(t *testing.T) {
	cfg, d := secured(t)
	why := errors.New("why")
	asked := make(chan struct{})
	to := serveTLS(t, cfg, d, func(n, _ int, c net.Conn, _ *together) bool {
		if n == 2 {
			close(asked)
			_, _ = io.Copy(io.Discard, c) // until it is closed
			return false
		}
		_, err := io.WriteString(c, plainAnswer)
		return err == nil
	})
	if err := turn(t.Context(), d, to, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	var ctx callctx.Context
	ctx.Begin(context.Background())
	go func() {
		<-asked
		ctx.Cancel(why)
	}()
	if err := turn(&ctx, d, to, []byte("{}")); !errors.Is(err, why) {
		t.Errorf("RoundTrip = %v, want %v", err, why)
	}
	if err := turn(t.Context(), d, to, []byte("{}")); err != nil || len(d.idleTo(to)) != 1 {
		t.Errorf("RoundTrip = %v with %d idle connections, want an answer, and one", err, len(d.idleTo(to)))
	}
}
