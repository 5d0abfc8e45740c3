// Package certstest is a small certification authority that speaks ACME (RFC 8555), for
// tests: it checks signatures, nonces and challenges as a real one does, and can be told
// to misbehave. Nothing but tests imports it.
package certstest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Check reports whether a host has answered a challenge: kind is tls-alpn-01 or
// http-01.
type Check func(kind, name, token, keyAuth string) error

// CA is the authority. Its handler is for an https server at Base.
type CA struct {
	Base  string // https://host:port
	Life  time.Duration
	Check Check
	// Kinds are the challenges on offer. Default: both.
	Kinds []string

	key  *ecdsa.PrivateKey
	root *x509.Certificate

	mu       sync.Mutex
	tamper   func(w http.ResponseWriter, r *http.Request) bool
	nonces   map[string]bool
	accounts map[string]*ecdsa.PublicKey // by URL
	contacts []string
	orders   []*order
	requests int
}

type order struct {
	name, token string
	status      string // pending, ready, valid, invalid
	problem     string
	cert        []byte
}

// New returns an authority with its own root.
func New(base string, check Check) (*CA, error) {
	ca := &CA{Base: base, Life: 90 * 24 * time.Hour, Check: check, Kinds: []string{"tls-alpn-01", "http-01"}, nonces: map[string]bool{}, accounts: map[string]*ecdsa.PublicKey{}}
	var err error
	if ca.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test Root"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(20 * 365 * 24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, ca.key.Public(), ca.key)
	if err != nil {
		return nil, err
	}
	ca.root, err = x509.ParseCertificate(der)
	return ca, err
}

// Roots returns the roots that clients have to trust.
func (ca *CA) Roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(ca.root)
	return pool
}

// Directory returns the address with which clients begin.
func (ca *CA) Directory() string { return ca.Base + "/dir" }

// Orders returns the number of orders and requests.
func (ca *CA) Orders() (orders, requests int) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	return len(ca.orders), ca.requests
}

// Accounts returns the number of accounts, and their contacts.
func (ca *CA) Accounts() (n int, contacts []string) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	return len(ca.accounts), ca.contacts
}

// Tamper sets a function that can answer instead of the authority; it returns true if it
// did. nil removes it.
func (ca *CA) Tamper(f func(w http.ResponseWriter, r *http.Request) bool) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	ca.tamper = f
}

// problem is an error in the words of the protocol.
type problem struct {
	status int
	kind   string
	detail string
}

func (p *problem) Error() string { return p.detail }

// Refuse answers with a problem, for [CA.Tamper].
func Refuse(w http.ResponseWriter, status int, kind, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "urn:ietf:params:acme:error:" + kind, "detail": detail, "status": status})
}

// ServeHTTP implements [http.Handler].
func (ca *CA) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ca.mu.Lock()
	ca.requests++
	nonce := rand.Text()
	ca.nonces[nonce] = true
	tamper := ca.tamper
	ca.mu.Unlock()
	w.Header().Set("Replay-Nonce", nonce)
	if tamper != nil && tamper(w, r) {
		return
	}
	switch r.URL.Path {
	case "/dir":
		ca.send(w, http.StatusOK, map[string]any{
			"newNonce": ca.Base + "/nonce", "newAccount": ca.Base + "/account", "newOrder": ca.Base + "/order",
			"revokeCert": ca.Base + "/revoke", "keyChange": ca.Base + "/change", "meta": map[string]any{"termsOfService": ca.Base + "/terms"},
		})
		return
	case "/nonce":
		return
	}
	if err := ca.post(w, r); err != nil {
		var p *problem
		if !errors.As(err, &p) {
			p = &problem{status: http.StatusBadRequest, kind: "malformed", detail: err.Error()}
		}
		Refuse(w, p.status, p.kind, p.detail)
	}
}

func (ca *CA) send(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// signed is a verified request with its account.
type signed struct {
	payload []byte
	key     *ecdsa.PublicKey
	kid     string
}

var b64 = base64.RawURLEncoding

// open checks a request's signature (RFC 8555 section 6.2).
func (ca *CA) open(r *http.Request) (*signed, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64<<10)) //nolint:forbidigo // bounded
	if err != nil {
		return nil, err
	}
	var jws struct {
		Protected string `json:"protected"`
		Payload   string `json:"payload"`
		Signature string `json:"signature"`
	}
	if err := json.Unmarshal(body, &jws); err != nil {
		return nil, err
	}
	raw, err := b64.DecodeString(jws.Protected)
	if err != nil {
		return nil, err
	}
	var head struct {
		Alg   string `json:"alg"`
		Nonce string `json:"nonce"`
		URL   string `json:"url"`
		KID   string `json:"kid"`
		JWK   *struct {
			X string `json:"x"`
			Y string `json:"y"`
		} `json:"jwk"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	ca.mu.Lock()
	fresh := ca.nonces[head.Nonce]
	delete(ca.nonces, head.Nonce)
	s := &signed{kid: head.KID, key: ca.accounts[head.KID]}
	ca.mu.Unlock()
	switch {
	case !fresh:
		return nil, &problem{status: http.StatusBadRequest, kind: "badNonce", detail: "the nonce is not fresh"}
	case head.URL != ca.Base+r.URL.Path:
		return nil, fmt.Errorf("signed for %s, sent to %s", head.URL, ca.Base+r.URL.Path)
	case head.Alg != "ES256":
		return nil, fmt.Errorf("algorithm %s", head.Alg)
	}
	if head.JWK != nil {
		x, xerr := b64.DecodeString(head.JWK.X)
		y, yerr := b64.DecodeString(head.JWK.Y)
		if err := errors.Join(xerr, yerr); err != nil {
			return nil, err
		}
		if s.key, err = ecdsa.ParseUncompressedPublicKey(elliptic.P256(), append(append([]byte{4}, x...), y...)); err != nil {
			return nil, err
		}
	}
	if s.key == nil {
		return nil, &problem{status: http.StatusBadRequest, kind: "accountDoesNotExist", detail: "no such account"}
	}
	sig, err := b64.DecodeString(jws.Signature)
	if err != nil || len(sig) != 64 {
		return nil, errors.New("the signature is damaged")
	}
	sum := sha256.Sum256([]byte(jws.Protected + "." + jws.Payload))
	if !ecdsa.Verify(s.key, sum[:], new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:])) {
		return nil, errors.New("the signature is wrong")
	}
	s.payload, err = b64.DecodeString(jws.Payload)
	return s, err
}

// thumbprint is that of a key (RFC 7638).
func thumbprint(key *ecdsa.PublicKey) (string, error) {
	raw, err := key.Bytes()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, `{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}`, b64.EncodeToString(raw[1:33]), b64.EncodeToString(raw[33:])))
	return b64.EncodeToString(sum[:]), nil
}

func (ca *CA) post(w http.ResponseWriter, r *http.Request) error {
	s, err := ca.open(r)
	if err != nil {
		return err
	}
	what, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case what == "account":
		return ca.account(w, s)
	case s.kid == "":
		return errors.New("signed with a key instead of an account")
	case what == "order" && rest == "":
		return ca.newOrder(w, s)
	}
	id, kind, _ := strings.Cut(rest, "/")
	var n int
	if _, err := fmt.Sscan(id, &n); err != nil {
		return err
	}
	ca.mu.Lock()
	if n < 0 || n >= len(ca.orders) {
		ca.mu.Unlock()
		return errors.New("no such order")
	}
	o := ca.orders[n]
	ca.mu.Unlock()
	switch what {
	case "order":
	case "authz":
		ca.mu.Lock()
		defer ca.mu.Unlock()
		status := map[string]string{"pending": "pending", "invalid": "invalid"}[o.status]
		if status == "" {
			status = "valid"
		}
		challenges := []map[string]any{}
		for _, k := range ca.Kinds {
			c := map[string]any{"type": k, "url": fmt.Sprintf("%s/chal/%d/%s", ca.Base, n, k), "token": o.token, "status": status}
			if status == "invalid" {
				c["error"] = map[string]any{"type": "urn:ietf:params:acme:error:unauthorized", "detail": o.problem, "status": 403}
			}
			challenges = append(challenges, c)
		}
		ca.send(w, http.StatusOK, map[string]any{"status": status, "identifier": map[string]string{"type": "dns", "value": o.name}, "challenges": challenges})
		return nil
	case "chal":
		return ca.challenge(w, s, o, kind)
	case "finalize":
		if err := ca.issue(s, o); err != nil {
			return err
		}
	case "cert":
		w.Header().Set("Content-Type", "application/pem-certificate-chain")
		_, _ = w.Write(o.cert)
		return nil
	default:
		return errors.New("no such resource")
	}
	w.Header().Set("Location", fmt.Sprintf("%s/order/%d", ca.Base, n))
	ca.sendOrder(w, http.StatusOK, n, o)
	return nil
}

func (ca *CA) account(w http.ResponseWriter, s *signed) error {
	var in struct {
		Terms   bool     `json:"termsOfServiceAgreed"`
		Only    bool     `json:"onlyReturnExisting"`
		Contact []string `json:"contact"`
	}
	if err := json.Unmarshal(s.payload, &in); err != nil {
		return err
	}
	print, err := thumbprint(s.key)
	if err != nil {
		return err
	}
	at := ca.Base + "/acct/" + print
	ca.mu.Lock()
	known := ca.accounts[at] != nil
	if !known && !in.Only && in.Terms {
		ca.accounts[at] = s.key
		ca.contacts = append(ca.contacts, in.Contact...)
	}
	ca.mu.Unlock()
	switch {
	case !known && in.Only:
		return &problem{status: http.StatusBadRequest, kind: "accountDoesNotExist", detail: "no such account"}
	case !known && !in.Terms:
		return &problem{status: http.StatusForbidden, kind: "userActionRequired", detail: "the terms were not agreed to"}
	}
	w.Header().Set("Location", at)
	ca.send(w, map[bool]int{true: http.StatusOK, false: http.StatusCreated}[known], map[string]any{"status": "valid"})
	return nil
}

func (ca *CA) newOrder(w http.ResponseWriter, s *signed) error {
	var in struct {
		Identifiers []struct {
			Type  string `json:"type"`
			Value string `json:"value"`
		} `json:"identifiers"`
	}
	if err := json.Unmarshal(s.payload, &in); err != nil {
		return err
	}
	if len(in.Identifiers) != 1 || in.Identifiers[0].Type != "dns" {
		return errors.New("one name is wanted")
	}
	ca.mu.Lock()
	o := &order{name: in.Identifiers[0].Value, token: rand.Text(), status: "pending"}
	ca.orders = append(ca.orders, o)
	n := len(ca.orders) - 1
	ca.mu.Unlock()
	w.Header().Set("Location", fmt.Sprintf("%s/order/%d", ca.Base, n))
	ca.sendOrder(w, http.StatusCreated, n, o)
	return nil
}

func (ca *CA) sendOrder(w http.ResponseWriter, status, n int, o *order) {
	ca.mu.Lock()
	defer ca.mu.Unlock()
	v := map[string]any{
		"status": o.status, "identifiers": []map[string]string{{"type": "dns", "value": o.name}},
		"authorizations": []string{fmt.Sprintf("%s/authz/%d", ca.Base, n)}, "finalize": fmt.Sprintf("%s/finalize/%d", ca.Base, n),
	}
	if o.status == "valid" {
		v["certificate"] = fmt.Sprintf("%s/cert/%d", ca.Base, n)
	}
	ca.send(w, status, v)
}

func (ca *CA) challenge(w http.ResponseWriter, s *signed, o *order, kind string) error {
	print, err := thumbprint(s.key)
	if err != nil {
		return err
	}
	err = ca.Check(kind, o.name, o.token, o.token+"."+print)
	ca.mu.Lock()
	if o.status = "ready"; err != nil {
		o.status, o.problem = "invalid", err.Error()
	}
	ca.mu.Unlock()
	ca.send(w, http.StatusOK, map[string]any{"type": kind, "url": ca.Base, "token": o.token, "status": "processing"})
	return nil
}

// issue signs a certificate.
func (ca *CA) issue(s *signed, o *order) error {
	var in struct {
		CSR string `json:"csr"`
	}
	if err := json.Unmarshal(s.payload, &in); err != nil {
		return err
	}
	der, err := b64.DecodeString(in.CSR)
	if err != nil {
		return err
	}
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return err
	}
	ca.mu.Lock()
	defer ca.mu.Unlock()
	if err := csr.CheckSignature(); err != nil || o.status != "ready" || len(csr.DNSNames) != 1 || csr.DNSNames[0] != o.name {
		return &problem{status: http.StatusForbidden, kind: "badCSR", detail: fmt.Sprintf("%v for %v, %s", err, csr.DNSNames, o.status)}
	}
	cert, err := ca.Sign(o.name, csr.PublicKey)
	if err != nil {
		return err
	}
	o.cert, o.status = append(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.root.Raw})...), "valid"
	return nil
}

// Sign makes a certificate as PEM.
func (ca *CA) Sign(name string, key crypto.PublicKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	if err != nil {
		return nil, err
	}
	tmpl := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(ca.Life),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, ca.root, key, ca.key)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), err
}
