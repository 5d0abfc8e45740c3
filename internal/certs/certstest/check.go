package certstest

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/yaya-ai/yaya/internal/certs"
)

const checkTime = 10 * time.Second

// Hosts is a [Check] over the network: all names lead to these addresses. One that is ""
// is not reachable.
func Hosts(tlsAddr, httpAddr func() string) Check {
	return func(kind, name, token, keyAuth string) error {
		ctx, cancel := context.WithTimeout(context.Background(), checkTime)
		defer cancel()
		if kind == "http-01" {
			return overHTTP(ctx, httpAddr(), name, token, keyAuth)
		}
		return overTLS(ctx, tlsAddr(), name, keyAuth)
	}
}

func overTLS(ctx context.Context, addr, name, keyAuth string) error {
	d := tls.Dialer{Config: &tls.Config{ServerName: name, NextProtos: []string{certs.ALPN}, InsecureSkipVerify: true}} //nolint:gosec // what it shows is looked at
	c, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	tc, ok := c.(*tls.Conn)
	if !ok {
		return errors.New("not TLS")
	}
	state := tc.ConnectionState()
	if state.NegotiatedProtocol != certs.ALPN {
		return fmt.Errorf("it speaks %q", state.NegotiatedProtocol)
	}
	return Shown(state.PeerCertificates[0], name, keyAuth)
}

// Shown looks at the certificate of TLS-ALPN-01 (RFC 8737 section 3).
func Shown(c *x509.Certificate, name, keyAuth string) error {
	if !slices.Equal(c.DNSNames, []string{name}) {
		return fmt.Errorf("it is for %v", c.DNSNames)
	}
	sum := sha256.Sum256([]byte(keyAuth))
	want, err := asn1.Marshal(sum[:])
	if err != nil {
		return err
	}
	for _, e := range c.Extensions {
		if e.Id.Equal(asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 31}) && e.Critical && string(e.Value) == string(want) {
			return nil
		}
	}
	return errors.New("it has not the digest of this challenge")
}

func overHTTP(ctx context.Context, addr, name, token, keyAuth string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+name+"/.well-known/acme-challenge/"+token, nil)
	if err != nil {
		return err
	}
	t := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, addr)
	}}
	resp, err := t.RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) //nolint:forbidigo // bounded
	if err == nil && (resp.StatusCode != http.StatusOK || string(got) != keyAuth) {
		err = fmt.Errorf("HTTP %d with %.60q", resp.StatusCode, got)
	}
	return err
}
