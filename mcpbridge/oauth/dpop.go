package oauth

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// proof creates DPoP proofs (RFC 9449) with one key. It is safe for concurrent use.
type proof struct {
	key *ecdsa.PrivateKey
	jwk map[string]string

	mu     sync.Mutex
	nonces map[string]string // by origin
}

func newProof(pkcs8 []byte) (*proof, error) {
	var key *ecdsa.PrivateKey
	if len(pkcs8) == 0 {
		var err error
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, err
		}
	} else {
		k, err := x509.ParsePKCS8PrivateKey(pkcs8)
		if err != nil {
			return nil, err
		}
		ec, ok := k.(*ecdsa.PrivateKey)
		if !ok || ec.Curve != elliptic.P256() {
			return nil, errors.New("the stored DPoP key is not a P-256 key")
		}
		key = ec
	}
	pub, err := key.PublicKey.ECDH()
	if err != nil {
		return nil, err
	}
	point := pub.Bytes() // 4, x, y
	b64 := base64.RawURLEncoding.EncodeToString
	return &proof{key: key, nonces: map[string]string{}, jwk: map[string]string{"kty": "EC", "crv": "P-256", "x": b64(point[1:33]), "y": b64(point[33:])}}, nil
}

func (p *proof) marshal() ([]byte, error) { return x509.MarshalPKCS8PrivateKey(p.key) }

// sign returns a proof for one request; token is the access token of the request, or "".
func (p *proof) sign(method string, u *url.URL, token string) (string, error) {
	htu := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	claims := jwt.MapClaims{"jti": rand.Text(), "htm": method, "htu": htu.String(), "iat": time.Now().Unix()}
	if token != "" {
		sum := sha256.Sum256([]byte(token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(sum[:])
	}
	p.mu.Lock()
	if n := p.nonces[origin(u)]; n != "" {
		claims["nonce"] = n
	}
	p.mu.Unlock()
	t := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	t.Header["typ"] = "dpop+jwt"
	t.Header["jwk"] = p.jwk
	return t.SignedString(p.key)
}

func origin(u *url.URL) string { return u.Scheme + "://" + u.Host }

// learn stores the nonce of a response. It reports whether the nonce is new.
func (p *proof) learn(u *url.URL, resp *http.Response) bool {
	n := resp.Header.Get("DPoP-Nonce")
	if n == "" || len(n) > 1024 {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.nonces[origin(u)] == n {
		return false
	}
	if len(p.nonces) > 16 {
		clear(p.nonces)
	}
	p.nonces[origin(u)] = n
	return true
}

// proving adds proofs to token requests, and repeats a request that lacked the nonce.
type proving struct {
	next http.RoundTripper
	p    *proof
}

const maxTokenRequest = 64 << 10

// RoundTrip implements [http.RoundTripper].
func (t *proving) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || !strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-www-form-urlencoded") || req.Body == nil {
		return t.next.RoundTrip(req)
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxTokenRequest)) //nolint:forbidigo // bounded by the reader
	_ = req.Body.Close()
	if err != nil {
		return nil, err
	}
	for again := false; ; again = true {
		p, err := t.p.sign(req.Method, req.URL, "")
		if err != nil {
			return nil, err
		}
		r := req.Clone(req.Context())
		r.Header.Set("DPoP", p)
		r.Body = io.NopCloser(bytes.NewReader(body))
		resp, err := t.next.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		if !t.p.learn(req.URL, resp) || again || resp.StatusCode/100 == 2 {
			return resp, nil
		}
		_ = resp.Body.Close()
	}
}
