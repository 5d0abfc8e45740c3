package certs_test

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/certs"
	"github.com/yaya-ai/yaya/internal/certs/certstest"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// HTTP-01, over a network: a host whose TLS somebody else serves gets its certificate over
// port 80, where nothing else is to be had but the way to https.
func TestHTTP01(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	ca, err := certstest.New(base, certstest.Hosts(func() string { return "127.0.0.1:1" }, func() string { return addr }))
	if err != nil {
		t.Fatal(err)
	}
	a, err := certs.OpenACME(certs.ACMEConfig{Names: []string{"yaya.example:8443", "www.yaya.example"}, Directory: ca.Directory(), Dir: folder(t), Plain: l, Log: zerolog.Nop(), Transport: direct{ca}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ran := make(chan struct{})
	go func() {
		defer close(ran)
		a.Run(ctx)
	}()
	get := func(method, host, path string) (int, string, string) {
		t.Helper()
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		tr := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil }}
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header.Get("Location"), string(body)
	}
	eventually.True(t, "a certificate for both names", func() bool {
		for _, s := range a.Status() {
			if s.Expires.IsZero() {
				return false
			}
		}
		return true
	})
	if _, err := a.Certificate(&tls.ClientHelloInfo{ServerName: "www.yaya.example"}); err != nil {
		t.Errorf("Certificate for www.yaya.example = %v, want one", err)
	}
	for name, c := range map[string]struct {
		method, host, path string
		status             int
		location           string
	}{
		"a page":                 {"GET", "yaya.example", "/ui/x?y=z", 307, "https://yaya.example:8443/ui/x?y=z"},
		"another name":           {"GET", "WWW.yaya.example:80", "/", 307, "https://www.yaya.example/"},
		"two slashes":            {"GET", "yaya.example", "//evil.example/", 307, "https://yaya.example:8443//evil.example/"},
		"an unknown name":        {"GET", "evil.example", "/", 403, ""},
		"an address":             {"GET", "127.0.0.1", "/", 403, ""},
		"a body":                 {"POST", "yaya.example", "/mcp", 400, ""},
		"no challenge":           {"GET", "yaya.example", "/.well-known/acme-challenge/", 404, ""},
		"a challenge of nobody":  {"GET", "yaya.example", "/.well-known/acme-challenge/x", 404, ""},
		"a challenge, elsewhere": {"GET", "evil.example", "/.well-known/acme-challenge/x", 403, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, location, body := get(c.method, c.host, c.path)
			if status != c.status || location != c.location || strings.Contains(body, "account") {
				t.Errorf("got %d %q %q, want %d %q", status, location, body, c.status, c.location)
			}
		})
	}
	// Those that say nothing hold no place for long, and none when it ends.
	for range 200 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	cancel()
	<-ran
	if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		c.Close()
		t.Error("it still listens")
	}
	_ = a.Close()
}
