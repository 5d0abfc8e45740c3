package nodes

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"
)

// Validity of certificates. The clocks of nodes may differ: a certificate begins before its time.
const (
	clockMargin   = 24 * time.Hour
	authorityLife = 10 * 365 * 24 * time.Hour
	nodeLife      = 365 * 24 * time.Hour
)

// authority makes the certificates of a node. Its key is the same on every node.
type authority struct {
	key     ed25519.PrivateKey
	cert    *x509.Certificate
	cluster string // the name that every certificate has
	node    string
	now     func() time.Time

	mu   sync.Mutex
	leaf *tls.Certificate
	ends time.Time // when leaf is made again
}

func newAuthority(identity ed25519.PrivateKey, node string, now func() time.Time) (*authority, error) {
	seed, err := hkdf.Key(sha256.New, identity.Seed(), nil, "yaya-cluster-authority-v1", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	a := &authority{key: ed25519.NewKeyFromSeed(seed), node: node, now: now}
	sum := sha256.Sum256(a.key.Public().(ed25519.PublicKey))
	a.cluster = hex.EncodeToString(sum[:8]) + ".yaya"
	raw, err := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: a.cluster}, NotAfter: now().Add(authorityLife), KeyUsage: x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}, a.key.Public())
	if err != nil {
		return nil, err
	}
	a.cert, err = x509.ParseCertificate(raw)
	return a, err
}

// sign signs a certificate; the authority's own is signed by itself.
func (a *authority) sign(t *x509.Certificate, public any) ([]byte, error) {
	serial := make([]byte, 16)
	_, _ = rand.Read(serial) // crypto/rand never fails
	t.SerialNumber, t.NotBefore = new(big.Int).SetBytes(serial), a.now().Add(-clockMargin)
	parent := a.cert
	if parent == nil {
		parent = t
	}
	return x509.CreateCertificate(rand.Reader, t, parent, public, a.key)
}

// certificate returns the certificate of this node, and makes another one when half of the time of
// the last one is over: a process may run for years.
func (a *authority) certificate() (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if a.leaf != nil && now.Before(a.ends) {
		return a.leaf, nil
	}
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	raw, err := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: a.node}, DNSNames: []string{a.cluster}, NotAfter: now.Add(nodeLife), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, public)
	if err != nil {
		return nil, err
	}
	a.leaf, a.ends = &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, now.Add(nodeLife/2)
	return a.leaf, nil
}

// TLS returns how two nodes know each other; it is the same for both ends. The authority of the
// certificates follows from a key that all nodes have and nobody else, see [Node.Key]. Each connection
// is refused whose node admitted refuses; its name is the common name of its certificate.
func TLS(identity ed25519.PrivateKey, node string, now func() time.Time, admitted func(node string) error) (*tls.Config, error) {
	a, err := newAuthority(identity, node, now)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, ServerName: a.cluster, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, Time: now,
		GetCertificate:       func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.certificate() },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return a.certificate() },
		// Each connection is asked about when it is made, by what is known at that time.
		SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("a node has no certificate")
			}
			peer := s.PeerCertificates[0]
			if err := peer.VerifyHostname(a.cluster); err != nil { // a server checks no name by itself
				return err
			}
			return admitted(peer.Subject.CommonName)
		},
	}, nil
}

// TLS returns how this node and the other members know each other. See [TLS].
func (n *Nodes) TLS() (*tls.Config, error) {
	key, err := n.cfg.Node.Key(n.cfg.Identity)
	if err != nil {
		return nil, err
	}
	return TLS(key, n.cfg.Node.Name, n.cfg.Now, func(node string) error {
		if !n.Has(node) {
			return fmt.Errorf("%.100q is not a node of the cluster", node)
		}
		return nil
	})
}

// Others returns the names of the other members, sorted.
func (n *Nodes) Others() (out []string) {
	for _, m := range n.Members() {
		if m.Name != n.cfg.Node.Name {
			out = append(out, m.Name)
		}
	}
	return out
}

// Has reports whether a node is a member.
func (n *Nodes) Has(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.members[node] != nil
}
