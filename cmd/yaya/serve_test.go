package main

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/yaya-ai/yaya/internal/certs/certstest"
	"github.com/yaya-ai/yaya/internal/eventually"
)

// LD-05, R32: yaya under a memory limit that it is above of says so instead of
// taking on work, and says that it lives.
func TestShortOfMemory(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.env = []string{"GOMEMLIMIT=6MiB"}
	b.serve()
	var resp *http.Response
	for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(100 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url(), strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if resp, err = http.DefaultClient.Do(req); err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusServiceUnavailable || time.Now().After(deadline) {
			break
		}
	}
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
		t.Errorf("got %v, want StatusCode %d, a Retry-After", resp.Status, http.StatusServiceUnavailable)
	}
	resp, err := http.Get("http://" + b.addr + "/health") //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("got %v, want StatusCode %d", resp.Status, http.StatusOK)
	}
}

// HT-30, R11: yaya serves TLS with a certificate of its own, addressed by the names
// that it is given and by no other; nobody is the local owner by a proxy's doing.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	cert, key := certstest.SelfSigned(t, b.dir, 1)
	pemData, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pemData)
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true}}
	out := b.daemon("serve", "--listen", b.addr, "--tls-cert", cert, "--tls-key", key, "--host", "yaya.example")
	get := func(host string) (int, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+b.addr+"/health", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := c.Do(req)
		if err != nil {
			return 0, err
		}
		_ = resp.Body.Close()
		return resp.StatusCode, nil
	}
	for deadline := time.Now().Add(eventually.Limit); ; time.Sleep(20 * time.Millisecond) {
		if _, err := get("yaya.example"); err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %q until the deadline, want the addresses", out.said.String())
		}
	}
	for host, want := range map[string]int{"yaya.example": 200, "evil.example": 403} {
		if status, err := get(host); err != nil || status != want {
			t.Errorf("got as %s: %d %v, want status %v", host, status, err, want)
		}
	}
	if !strings.Contains(out.said.String(), "https://yaya.example/mcp") {
		t.Errorf("it says\n%s", out.said.String())
	}
}
