// Package keypin pins self-signed certificates: a client identifies the server by the
// fingerprint of its public key, which its user has given it.
package keypin

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const prefix = "sha256:"

// Of returns the fingerprint of a certificate's public key: "sha256:" and the SHA-256 of
// its SubjectPublicKeyInfo (RFC 7469 section 2.4) in 64 hexadecimal digits. It stays the
// same when the certificate is renewed with the same key.
func Of(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return prefix + hex.EncodeToString(sum[:])
}

// Parse returns a fingerprint as [Of] writes it. It takes what people copy: capitals,
// colons and spaces between the digits, and no "sha256:" before them.
func Parse(s string) (string, error) {
	digits := strings.ToLower(strings.TrimSpace(s))
	digits = strings.TrimPrefix(digits, prefix)
	digits = strings.NewReplacer(":", "", " ", "").Replace(digits)
	if raw, err := hex.DecodeString(digits); err != nil || len(raw) != sha256.Size {
		return "", fmt.Errorf("%.100q is not the fingerprint of a key: that is sha256: and 64 hexadecimal digits, as \"yaya device invite\" prints it", s)
	}
	return prefix + digits, nil
}

// ErrOther reports that a server has another key than the pinned one.
var ErrOther = errors.New("the server's key is not the one of the code")

// Config returns the TLS configuration for a server whose key has that fingerprint,
// whatever the issuer and name of its certificate: only the key is compared.
func Config(fingerprint string) (*tls.Config, error) {
	want, err := Parse(fingerprint)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		// VerifyConnection takes its place. It is called for resumed sessions as well.
		InsecureSkipVerify: true, //nolint:gosec // the key is compared
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return fmt.Errorf("%w: it has shown none", ErrOther)
			}
			got := Of(s.PeerCertificates[0])
			if whole := sha256.Sum256(s.PeerCertificates[0].Raw); want == prefix+hex.EncodeToString(whole[:]) {
				return fmt.Errorf("%w: %s is the fingerprint of its certificate, which changes when that is renewed; the one of its key is %s, which \"yaya device invite\" prints there: give that", ErrOther, want, got)
			}
			if subtle.ConstantTimeCompare([]byte(got), []byte(want)) != 1 {
				return fmt.Errorf("%w: it has %s, and the code says %s: somebody may be between, or the key was replaced there; compare them on that machine, and make a new code (yaya device invite)", ErrOther, got, want)
			}
			return nil
		},
	}, nil
}
