package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/yaya-ai/yaya/internal/keypin"
	"github.com/yaya-ai/yaya/internal/netaddr"
)

// The lifetime of a self-signed certificate: some systems refuse one that lasts longer
// than 825 days, even if their user trusts it.
const (
	selfLife    = 730 * 24 * time.Hour
	selfRenewal = 60 * 24 * time.Hour // before its end
	selfLook    = 30 * time.Second    // how often addresses and the clock are looked at, at most
	maxSANs     = 100
	selfFile    = "self-signed.pem"
)

// SelfSigned holds a self-signed certificate and its key. The certificate is reissued
// shortly before it expires and when this machine's names or addresses change; the key
// stays, and clients identify this yaya by its fingerprint.
type SelfSigned struct {
	dir   *os.Root
	names []string
	log   zerolog.Logger
	addrs func() ([]netip.Addr, error)
	key   crypto.Signer

	mu     sync.Mutex
	pair   *tls.Certificate
	looked time.Time
	err    error // of the last time that a certificate had to be made
}

// OpenSelfSigned reads the key and its certificate from a folder, and creates missing
// ones. The certificate is for the names, which may have ports, and for this machine's
// name and addresses.
func OpenSelfSigned(dir *os.Root, names []string, log zerolog.Logger) (*SelfSigned, error) {
	return newSelfSigned(dir, names, log, ownAddresses)
}

func newSelfSigned(dir *os.Root, names []string, log zerolog.Logger, addrs func() ([]netip.Addr, error)) (*SelfSigned, error) {
	s := &SelfSigned{dir: dir, log: log, addrs: addrs}
	for _, h := range names {
		name := hostOf(h)
		if _, err := netip.ParseAddr(strings.Trim(name, "[]")); err != nil && !netaddr.IsHostName(name) {
			return nil, fmt.Errorf("--host %.100q is neither the name of a host nor an address", h)
		}
		s.names = append(s.names, strings.Trim(name, "[]"))
	}
	if host, err := os.Hostname(); err == nil && netaddr.IsHostName(strings.ToLower(host)) {
		host = strings.ToLower(host)
		s.names = append(s.names, host)
		if !strings.Contains(host, ".") {
			s.names = append(s.names, host+".local")
		}
	}
	s.names = append(s.names, "localhost")
	pair, err := readPair(dir, selfFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		s.key = made
	case err != nil:
		return nil, fmt.Errorf("the key of --tls-self-signed: %w (with a new key, devices that connect by its fingerprint need a new code)", err)
	default:
		key, ok := pair.PrivateKey.(crypto.Signer)
		if !ok {
			return nil, fmt.Errorf("%s/%s is damaged: its key cannot sign", dir.Name(), selfFile)
		}
		s.key, s.pair = key, pair
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.look(time.Now()); err != nil {
		return nil, err
	}
	return s, nil
}

// Certificate is for [tls.Config.GetCertificate].
func (s *SelfSigned) Certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.looked) >= selfLook || now.Before(s.looked) {
		if err := s.look(now); err != nil { // the present one is better than none
			s.log.Error().Err(err).Msg("the certificate of --tls-self-signed was not renewed")
		}
	}
	return s.pair, nil
}

// look reissues the certificate if necessary. s.mu is held.
func (s *SelfSigned) look(now time.Time) (err error) {
	s.looked = now
	defer func() { s.err = err }()
	names, ips := s.wanted()
	if s.pair != nil && now.Add(selfRenewal).Before(s.pair.Leaf.NotAfter) && covers(s.pair.Leaf, names, ips) {
		return nil
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, template(serial, now, names, ips), template(serial, now, names, ips), s.key.Public(), s.key)
	if err != nil {
		return err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	pair := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: s.key, Leaf: leaf}
	if err := writePair(s.dir, selfFile, pair); err != nil {
		return fmt.Errorf("keep the certificate of --tls-self-signed: %w", err)
	}
	s.pair = pair
	s.log.Info().Strs("names", names).Str("fingerprint", keypin.Of(leaf)).Str("certificate", s.certificate()).Time("until", leaf.NotAfter).Msg("a certificate was made, which only its fingerprint speaks for")
	return nil
}

func template(serial *big.Int, now time.Time, names []string, ips []net.IP) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "yaya on " + names[0]},
		NotBefore: now.Add(-time.Hour).UTC(), NotAfter: now.Add(selfLife).UTC(), // clocks differ
		DNSNames: names, IPAddresses: ips, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
}

// wanted returns the names that the certificate has to cover.
func (s *SelfSigned) wanted() (names []string, ips []net.IP) {
	addrs, err := s.addrs()
	if err != nil {
		s.log.Debug().Err(err).Msg("this machine's addresses are not known")
	}
	addrs = append(addrs, netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"))
	for _, name := range s.names {
		if a, err := netip.ParseAddr(name); err == nil {
			addrs = append(addrs, a)
		} else if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs)
	for _, a := range addrs[:min(len(addrs), maxSANs)] {
		ips = append(ips, a.AsSlice())
	}
	return names, ips
}

// covers reports whether a certificate covers all of them. It may cover more: an address
// that comes and goes does not cause a new one each time.
func covers(leaf *x509.Certificate, names []string, ips []net.IP) bool {
	for _, name := range names {
		if !slices.Contains(leaf.DNSNames, name) {
			return false
		}
	}
	for _, ip := range ips {
		if !slices.ContainsFunc(leaf.IPAddresses, ip.Equal) {
			return false
		}
	}
	return true
}

// ownAddresses returns the addresses at which others in the network can reach this
// machine. Of IPv6 it returns only local addresses: privacy addresses change each day,
// and would cause a new certificate each day.
func ownAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var out []netip.Addr
	for _, x := range all {
		n, err := netip.ParsePrefix(x.String())
		if err != nil {
			continue
		}
		if a := n.Addr().Unmap(); a.Is4() || a.IsPrivate() {
			out = append(out, a)
		}
	}
	return out, nil
}

// Names are the hosts that the certificate is for, without addresses and "localhost".
func (s *SelfSigned) Names() (out []string) {
	for _, name := range s.names {
		if _, err := netip.ParseAddr(name); err != nil && name != "localhost" {
			out = append(out, name)
		}
	}
	return out
}

// Address returns an address of this machine in the local network, "" if it is in none.
func (s *SelfSigned) Address() string {
	addrs, err := s.addrs()
	if err != nil {
		return ""
	}
	for _, a := range addrs {
		if a.Is4() && !a.IsLoopback() && !a.IsLinkLocalUnicast() {
			return a.String()
		}
	}
	return ""
}

// Fingerprint returns the fingerprint of the key, as [keypin.Of] writes it. It does
// not change.
func (s *SelfSigned) Fingerprint() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return keypin.Of(s.pair.Leaf)
}

// CertificateFingerprint returns the fingerprint of the certificate, as browsers show
// it: the SHA-256 of all of it in capitals and colons. It changes when the certificate
// is renewed.
func (s *SelfSigned) CertificateFingerprint() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.certificate()
}

func (s *SelfSigned) certificate() string {
	sum := sha256.Sum256(s.pair.Leaf.Raw)
	digits := strings.ToUpper(hex.EncodeToString(sum[:]))
	var b strings.Builder
	for i := 0; i < len(digits); i += 2 {
		if i > 0 {
			b.WriteByte(':')
		}
		b.WriteString(digits[i : i+2])
	}
	return b.String()
}

// Status returns the state of the certificate.
func (s *SelfSigned) Status() []Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return []Status{{Name: s.names[0], Expires: s.pair.Leaf.NotAfter, Issuer: "itself", Err: s.err, Next: s.pair.Leaf.NotAfter.Add(-selfRenewal)}}
}
