package main

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/certs/certstest"
	"github.com/yaya-ai/yaya/internal/freeport"
)

// The errors help a person who mixes up addresses and fingerprints of a yaya that makes
// its own certificate.
func TestWrongAddressesAndFingerprints(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	addr := freeport.Addr(t)
	b.daemon("serve", "--listen", addr, "--tls-self-signed", "--local", b.addr)
	waitFor(t, b.addr)
	conn, err := (&tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}).DialContext(t.Context(), "tcp", addr) //nolint:gosec // only looked at
	if err != nil {
		t.Fatal(err)
	}
	secured, ok := conn.(*tls.Conn)
	if !ok {
		t.Fatalf("got a %T, want TLS", conn)
	}
	cert := secured.ConnectionState().PeerCertificates[0]
	_ = conn.Close()
	whole, key := sha256.Sum256(cert.Raw), sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
		not  string
	}{
		{"http where it serves https", []string{"device", "invite", "--url", "http://" + addr}, 2, "use https://" + addr, "Code"},
		{"https", []string{"device", "invite", "--no-qr", "--url", "https://" + addr}, 0, "yaya connect https://" + addr, ""},
		{"http where it serves that", []string{"device", "invite", "--no-qr", "--url", "http://" + b.addr}, 0, "yaya connect http://" + b.addr, ""},
		{"the certificate's fingerprint", []string{"connect", "https://" + addr, "--code", "AAAA-BBBB-CCCC", "--fingerprint", hex.EncodeToString(whole[:])}, 1, "the fingerprint of its certificate, which changes when that is renewed; the one of its key is sha256:" + hex.EncodeToString(key[:]), "somebody may be between"},
		{"no fingerprint", []string{"connect", "https://localhost:" + addr[strings.LastIndex(addr, ":")+1:], "--code", "AAAA-BBBB-CCCC"}, 1, "connect with the fingerprint of its key", "x509"},
		{"https where it serves http", []string{"connect", "https://" + b.addr, "--code", "AAAA-BBBB-CCCC"}, 1, "does not speak TLS at this port", "HTTPS client"},
		{"http where it serves https, from a device", []string{"connect", "http://" + addr, "--code", "AAAA-BBBB-CCCC"}, 1, "the server speaks TLS at this port: write https://" + addr, "refused this device"},
	} {
		out, err := b.run(tt.args...)
		code := exitCode(err)
		if code != tt.code || !strings.Contains(out, tt.want) || tt.not != "" && strings.Contains(out, tt.not) {
			t.Errorf("%s: got %d, %s; want %d, %q and not %q", tt.name, code, out, tt.code, tt.want, tt.not)
		}
	}
}

// An error about files that are not a certificate and its key names their flags.
func TestWrongCertificateFiles(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	cert, key := certstest.SelfSigned(t, b.dir, 1)
	dir := filepath.Join(b.dir, "other")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, other := certstest.SelfSigned(t, dir, 2)
	for _, tt := range []struct{ name, cert, key, want string }{
		{"the key of another", cert, other, "--tls-key " + other + " is the key of another certificate"},
		{"switched", key, cert, "are not a certificate and its private key in PEM"},
	} {
		out, err := b.run("serve", "--listen", b.addr, "--tls-cert", tt.cert, "--tls-key", tt.key)
		if exitCode(err) != 1 || !strings.Contains(out, tt.want) || strings.Contains(out, "tls: ") {
			t.Errorf("%s: got %v, %s; want %q", tt.name, err, out, tt.want)
		}
	}
}
