package nodes

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

// A certificate is made again before it ends, holds for clocks that are off by hours, and for no
// other cluster.
func TestCertificates(t *testing.T) {
	now := time.Now()
	_, identity, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAuthority(identity, "north", func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	first, err := a.certificate()
	if err != nil {
		t.Fatal(err)
	}
	again, err := a.certificate()
	if err != nil || again != first {
		t.Errorf("the certificate was made twice: %v", err)
	}
	other, err := newAuthority(identity, "south", func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(other.cert) // made by another node
	holds := func(c *tls.Certificate, at time.Time) error {
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		_, err = leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: a.cluster, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
		return err
	}
	for _, off := range []time.Duration{-23 * time.Hour, 0, 23 * time.Hour} {
		if err := holds(first, now.Add(off)); err != nil {
			t.Errorf("with a clock that is off by %v: %v", off, err)
		}
	}
	now = now.Add(nodeLife * 3 / 4)
	renewed, err := a.certificate()
	if err != nil || renewed == first {
		t.Fatalf("after three quarters of its time the certificate is the same: %v", err)
	}
	if err := holds(renewed, now.Add(nodeLife*3/4)); err != nil {
		t.Errorf("the second certificate: %v", err)
	}
	if holds(first, now.Add(nodeLife)) == nil {
		t.Error("a certificate does not end")
	}
}
