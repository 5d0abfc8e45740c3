package tlswords_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/tlswords"
)

// Go's TLS errors reach a person with their meaning and a remedy, and programs
// still find the original error.
func TestExplain(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS12}
	old.StartTLS()
	defer old.Close()
	known := x509.NewCertPool()
	known.AddCert(server.Certificate())
	get := func(url string, cfg *tls.Config) error {
		transport := &http.Transport{TLSClientConfig: cfg}
		defer transport.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	dial := func(addr string) error {
		conn, err := (&tls.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err
	}
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"nobody has signed it", get(server.URL, nil), "SSL_CERT_FILE"},
		{"another name", get("https://localhost:"+port, &tls.Config{RootCAs: known}), "use a name that it is for"},
		{"no TLS, by http", get(strings.Replace(plain.URL, "http:", "https:", 1), nil), "does not speak TLS at this port"},
		{"no TLS", dial(plain.Listener.Addr().String()), "does not speak TLS at this port"},
		{"the server refuses", get(old.URL, &tls.Config{MinVersion: tls.VersionTLS13}), "refuses TLS with this machine"},
		{"expired", &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, "correct the clock"},
		{"another mistake", &tls.CertificateVerificationError{Err: errors.New("x509: odd")}, "cannot be verified (odd)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.err == nil {
				t.Fatal("got no error to explain")
			}
			got := tlswords.Explain(fmt.Errorf("initialize: %w", tt.err))
			if !strings.HasPrefix(got.Error(), "initialize: ") || !strings.Contains(got.Error(), tt.want) || strings.Contains(got.Error(), "x509:") || strings.Contains(got.Error(), "tls:") {
				t.Errorf("Explain(%v) = %v, want %q in plain words", tt.err, got, tt.want)
			}
			if !errors.Is(got, tt.err) && tt.name != "expired" {
				t.Errorf("Explain(%v) does not wrap it", tt.err)
			}
			if again := tlswords.Explain(got); again.Error() != got.Error() {
				t.Errorf("a second Explain says %v, want %v", again, got)
			}
		})
	}
	for _, err := range []error{nil, errors.New("connection refused")} {
		if got := tlswords.Explain(err); got != err { //nolint:errorlint // the very same
			t.Errorf("Explain(%v) = %v, want it as it was", err, got)
		}
	}
}
