package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/gateway"
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
		t.Error(resp.Status)
	}
	resp, err := http.Get("http://" + b.addr + "/health") //nolint:noctx // test
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
}

// selfSigned writes a certificate with its key, and returns where, and its serial
// number.
func selfSigned(t *testing.T, dir string, serial int64) (cert, key string) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "yaya.example"}, DNSNames: []string{"yaya.example"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, priv.Public(), priv)
	if err != nil {
		t.Fatal(err)
	}
	pk, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: pk}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// HT-30, R11: yaya serves TLS with a certificate of its own, addressed by the names
// that it is given and by no other; nobody is the local owner by a proxy's doing.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	cert, key := selfSigned(t, b.dir, 1)
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
			t.Fatal(out.said.String())
		}
	}
	for host, want := range map[string]int{"yaya.example": 200, "evil.example": 403} {
		if status, err := get(host); err != nil || status != want {
			t.Errorf("as %s: %d %v", host, status, err)
		}
	}
	if !strings.Contains(out.said.String(), "https://yaya.example/mcp") {
		t.Errorf("it says\n%s", out.said.String())
	}
}

// A certificate that is renewed is served from then on; one that is half-written is
// not.
func TestCertificateIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	cert, key := selfSigned(t, dir, 1)
	apply := func(l listenFlags) error {
		l.addr = gateway.DefaultListen
		if err := l.check(); err != nil {
			return err
		}
		source, err := l.source(t.Context(), nil, zerolog.Nop())
		if err != nil {
			return err
		}
		return l.apply(new(gateway.Config), source)
	}
	if err := apply(listenFlags{cert: cert, key: key}); err != nil {
		t.Fatal(err)
	}
	c := &certificate{cert: cert, key: key}
	serial := func() int64 {
		t.Helper()
		c.looked = time.Time{} // as if it had not been looked at for a while
		pair, err := c.get(nil)
		if err != nil {
			t.Fatal(err)
		}
		return pair.Leaf.SerialNumber.Int64()
	}
	if got := serial(); got != 1 {
		t.Errorf("serial %d", got)
	}
	later := func(n int) {
		at := time.Now().Add(time.Duration(n) * time.Minute)
		if err := os.Chtimes(cert, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(cert, []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	later(1)
	if got := serial(); got != 1 {
		t.Errorf("half-written: serial %d", got)
	}
	selfSigned(t, dir, 2)
	later(2)
	if got := serial(); got != 2 {
		t.Errorf("renewed: serial %d", got)
	}
	for want, bad := range map[string]listenFlags{
		"belong together":    {cert: cert},
		"exclude each other": {cert: cert, key: key, proxies: "127.0.0.1", hosts: []string{"h"}},
		"needs --host":       {proxies: "127.0.0.1"},
		"no address":         {proxies: "nonsense", hosts: []string{"h"}},
		"a name is wanted":   {hosts: []string{"https://h/"}},
		"no such file":       {cert: filepath.Join(dir, "none"), key: key},
	} {
		if err := apply(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
