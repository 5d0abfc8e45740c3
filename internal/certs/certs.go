// Package certs obtains the listener's certificates: from a certification authority
// that speaks ACME (RFC 8555), or self-signed.
//
// It uses the protocol's client of golang.org/x/crypto/acme, and not autocert: that orders
// certificates when a stranger's handshake asks for them, in goroutines and timers that
// nothing can end, and does not report errors of renewals. Here one loop with an owner
// orders, and a handshake gets the present certificate.
package certs

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/netaddr"
)

// Status is the state of one name's certificate.
type Status struct {
	Name    string
	Expires time.Time // zero without a certificate
	Issuer  string    // its issuer, "" without a certificate
	// Err is the error of the last attempt to get one, nil if it succeeded; Next is the
	// time of the next attempt.
	Err  error
	Next time.Time
}

// maxFile bounds a file with a key and a chain.
const maxFile = 256 << 10

// OpenFolder opens a folder of keys for its owner only, and creates it if necessary. A
// link in its place, or a folder that others can read, is refused.
func OpenFolder(root *os.Root, name string) (*os.Root, error) {
	if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	st, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	path := root.Name() + "/" + name
	if !st.IsDir() {
		return nil, fmt.Errorf("%s: it is %v, and keys lie in a folder of their own", path, st.Mode().Type())
	}
	dir, err := root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if err := ownersAlone(dir, st); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), dir.Close())
	}
	return dir, nil
}

// ownersAlone refuses a folder that others can read, or that is not the one that was looked at.
func ownersAlone(dir *os.Root, was fs.FileInfo) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err != nil || !os.SameFile(st, was) {
		return errors.Join(errors.New("it has been replaced meanwhile"), err)
	}
	how, fix, err := hostfile.Exposed(f)
	if err == nil && how != "" {
		err = fmt.Errorf("it has %s, and others can get at the keys in it: %s, and remove them if others may have read them", how, fix)
	}
	return err
}

// read reads a small file that only its owner can read: a regular file, not a link, with
// one name.
func read(dir *os.Root, name string) ([]byte, error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%s/%s: %s", dir.Name(), name, fmt.Sprintf(format, args...))
	}
	st, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, bad("it is %v and not a regular file: remove it", st.Mode().Type())
	}
	f, err := hostfile.OpenNoLink(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st, err = f.Stat(); err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, bad("it is not a regular file: remove it")
	}
	how, _, err := hostfile.Exposed(f)
	_, names, ierr := hostfile.Identify(f, st)
	owner, known := hostfile.Owner(st)
	switch {
	case errors.Join(err, ierr) != nil:
		return nil, bad("%v", errors.Join(err, ierr))
	case how != "":
		return nil, bad("it has %s, and others can get at the key in it: remove it, and a new one is made", how)
	case names != 1:
		return nil, bad("it has %d names, and whoever has another one can get at the key in it: remove it, and a new one is made", names)
	case known && owner != os.Geteuid():
		return nil, bad("it belongs to user %d and not to user %d: remove it, and a new one is made", owner, os.Geteuid())
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1)) //nolint:forbidigo // bounded
	if err == nil && len(data) > maxFile {
		err = bad("it is larger than %d bytes", maxFile)
	}
	return data, err
}

// readPair reads a private key and the chain of its certificate from one file.
func readPair(dir *os.Root, name string) (*tls.Certificate, error) {
	data, err := read(dir, name)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(data, data)
	if err != nil {
		return nil, fmt.Errorf("%s/%s is damaged: %w", dir.Name(), name, err)
	}
	return &pair, nil
}

// writePair stores them, all or nothing.
func writePair(dir *os.Root, name string, pair *tls.Certificate) error {
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return err
	}
	data := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	for _, c := range pair.Certificate {
		data = append(data, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c})...)
	}
	_, err = atomicfile.Write(dir, name, data)
	return err
}

// pairOf builds a pair from a chain, and refuses a chain that is not for that key and
// name, or not valid now.
func pairOf(chain [][]byte, key crypto.Signer, name string, now time.Time) (*tls.Certificate, error) {
	if len(chain) == 0 {
		return nil, errors.New("the chain is empty")
	}
	leaf, err := x509.ParseCertificate(chain[0])
	if err != nil {
		return nil, err
	}
	pub, ok := leaf.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	if !ok || !pub.Equal(key.Public()) {
		return nil, errors.New("the certificate is for another key")
	}
	if err := good(leaf, name, now); err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: chain, PrivateKey: key, Leaf: leaf}, nil
}

// good reports whether a certificate is for a name and has not expired.
func good(leaf *x509.Certificate, name string, now time.Time) error {
	if err := leaf.VerifyHostname(name); err != nil {
		return err
	}
	if !now.Before(leaf.NotAfter) {
		return fmt.Errorf("the certificate was good until %s", leaf.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// private are suffixes of names that no public authority certifies, because they belong to
// private networks (RFC 6762, RFC 8375 and suffixes of home routers); reserved are those
// that RFC 6761 reserves, with their purpose.
var (
	private  = []string{".local", ".internal", ".lan", ".home", ".home.arpa"}
	reserved = map[string]string{".example": "documentation", ".test": "tests", ".invalid": "names that do not exist"}
)

// CheckName returns an error if no authority can certify a name through the
// challenges that yaya answers; public reports whether the authority is one that
// browsers trust.
func CheckName(name string, public bool) error {
	lower := strings.ToLower(name)
	_, ipErr := netip.ParseAddr(strings.Trim(name, "[]"))
	switch {
	case name == "":
		return errors.New("the name is empty")
	case ipErr == nil:
		return fmt.Errorf("%s is an address, and certificates are for names: use a name that leads there, or --tls-self-signed", name)
	case strings.Contains(name, "*"):
		return fmt.Errorf("%s: a certificate with a wildcard needs a challenge in the DNS, which yaya does not answer: name each host", name)
	case lower == "localhost" || strings.HasSuffix(lower, ".localhost"):
		return fmt.Errorf("%s is this machine to everybody, so nobody certifies it: on this machine yaya needs no TLS", name)
	case !netaddr.IsHostName(lower):
		return fmt.Errorf("%.100q is not the name of a host: letters, digits, hyphens and dots (names of other scripts as xn--…)", name)
	case public && !strings.Contains(name, "."):
		return fmt.Errorf("%s has no domain, so no public authority certifies it: give its whole name, or use --tls-self-signed", name)
	case public && slices.ContainsFunc(private, func(end string) bool { return strings.HasSuffix(lower, end) }):
		return fmt.Errorf("%s is a name of private networks, so no public authority certifies it: use --tls-self-signed, or your own authority with --acme-directory", name)
	}
	for end, use := range reserved {
		if public && strings.HasSuffix(lower, end) {
			return fmt.Errorf("%s: names that end in %s are reserved for %s, so no public authority certifies them: give the name of yours", name, end, use)
		}
	}
	return nil
}

// hostOf returns the name in a Host header or a flag, without its port.
func hostOf(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// clean returns foreign text in a form for logs: one short line of printable
// characters.
func clean(s string) string {
	const most = 500
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r == '\r' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, s[:min(len(s), 4*most)])
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return s
}
