package auth

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/yaya-ai/yaya/internal/netaddr"
)

// Limits of tokens and keys (RFC 9068).
const (
	maxToken    = 16 << 10
	maxLifetime = 24 * time.Hour
	leeway      = 60 * time.Second
	maxKeys     = 64
	maxDocument = 1 << 20
	keysKept    = 10 * time.Minute
	keysAsked   = time.Minute // minimum between two fetches for an unknown key
	tokenKept   = 5 * time.Minute
	maxVerified = 4096
)

// Config names an external authorization server and the audience of its tokens.
type Config struct {
	Issuer   string // exact, as in iss
	Audience string // exact, as in aud: the URL of this yaya's MCP endpoint
	// Client fetches the issuer's metadata and keys. Default: one with deadlines
	// that follows no redirects.
	Client *http.Client
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Identity is the subject of a token.
type Identity struct {
	Issuer  string
	Subject string
	Scopes  []string
}

// ErrToken reports that a token is not acceptable; the reason is for the log.
var ErrToken = errors.New("the token is not acceptable")

// Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	cfg    Config
	parser *jwt.Parser

	mu       sync.Mutex
	keys     map[string]any // by kid
	fetched  time.Time      // time of the last fetch of keys
	fetching chan struct{}  // closed when the fetch in progress has ended; nil without one
	failures int            // failed fetches since then
	retry    time.Time      // earliest time of the next fetch
	failed   error          // why the last fetch failed
	verified map[[32]byte]verified
}

type verified struct {
	id    Identity
	until time.Time
}

// NewVerifier returns a verifier; it fetches keys when it needs them.
func NewVerifier(cfg Config) (*Verifier, error) {
	if err := cmp.Or(CheckURL(cfg.Issuer), CheckURL(cfg.Audience)); err != nil {
		return nil, err
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: 15 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Verifier{cfg: cfg, verified: map[[32]byte]verified{}, parser: jwt.NewParser(
		jwt.WithValidMethods([]string{"RS256", "ES256"}), jwt.WithIssuer(cfg.Issuer), jwt.WithAudience(cfg.Audience),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(cfg.Now), jwt.WithStrictDecoding(),
	)}, nil
}

// CheckURL returns an error if u cannot be the issuer or the audience of a [Config].
func CheckURL(u string) error {
	p, err := url.Parse(u)
	if err != nil || p.Host == "" || (p.Scheme != "https" && (p.Scheme != "http" || !netaddr.Loopback(p.Hostname()))) || p.Fragment != "" {
		return fmt.Errorf("%q must be an https URL (or http on this machine)", u)
	}
	return nil
}

type claims struct {
	jwt.RegisteredClaims
	Scope string `json:"scope"`
}

// Verify returns the subject of a token. An error wraps [ErrToken], or is an
// [*UnavailableError].
func (v *Verifier) Verify(ctx context.Context, token string) (Identity, error) {
	if token == "" || len(token) > maxToken || strings.Count(token, ".") != 2 {
		return Identity{}, fmt.Errorf("%w: it is not a JWT", ErrToken)
	}
	sum := sha256.Sum256([]byte(token))
	now := v.cfg.Now()
	v.mu.Lock()
	known, ok := v.verified[sum]
	v.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.id, nil
	}
	var c claims
	var unavailable error
	_, err := v.parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		if typ, _ := t.Header["typ"].(string); typ != "" && !strings.EqualFold(typ, "JWT") && !strings.EqualFold(typ, "at+jwt") && !strings.EqualFold(typ, "application/at+jwt") {
			return nil, fmt.Errorf("the token's typ is %q", typ)
		}
		if t.Header["crit"] != nil {
			return nil, errors.New("the token has critical extensions")
		}
		if c.Issuer != v.cfg.Issuer { // no request to the issuer for a stranger's token
			return nil, jwt.ErrTokenInvalidIssuer
		}
		kid, _ := t.Header["kid"].(string)
		key, err := v.key(ctx, kid)
		if err != nil {
			unavailable = err
			return nil, err
		}
		if key == nil {
			return nil, errors.New("the token's key is unknown")
		}
		return key, nil // the signing method refuses a key of the wrong kind
	})
	switch {
	case unavailable != nil:
		return Identity{}, unavailable
	case err != nil:
		return Identity{}, fmt.Errorf("%w: %w", ErrToken, err)
	case c.Subject == "" || len(c.Subject) > 256:
		return Identity{}, fmt.Errorf("%w: it has no subject", ErrToken)
	case c.IssuedAt == nil || c.ExpiresAt.Sub(c.IssuedAt.Time) > maxLifetime:
		return Identity{}, fmt.Errorf("%w: it lives for longer than %v", ErrToken, maxLifetime)
	}
	id := Identity{Issuer: c.Issuer, Subject: c.Subject, Scopes: strings.Fields(c.Scope)}
	until := now.Add(tokenKept)
	if c.ExpiresAt.Before(until) {
		until = c.ExpiresAt.Time
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.verified) >= maxVerified {
		clear(v.verified)
	}
	v.verified[sum] = verified{id, until}
	return id, nil
}

// Knows reports whether a token was verified recently, so that verifying it again
// costs nothing.
func (v *Verifier) Knows(token string) bool {
	if len(token) > maxToken {
		return false
	}
	sum := sha256.Sum256([]byte(token))
	v.mu.Lock()
	defer v.mu.Unlock()
	_, ok := v.verified[sum]
	return ok
}

// fetch gets the issuer's keys through its metadata (RFC 8414, OpenID Connect
// Discovery 1.0, RFC 7517).
func (v *Verifier) fetch(ctx context.Context) (map[string]any, error) {
	var meta struct {
		Issuer string `json:"issuer"`
		JWKS   string `json:"jwks_uri"`
	}
	u, err := url.Parse(v.cfg.Issuer)
	if err != nil {
		return nil, err
	}
	path := strings.TrimSuffix(u.Path, "/")
	err = errors.New("it has no metadata")
	for _, p := range []string{"/.well-known/oauth-authorization-server" + path, path + "/.well-known/openid-configuration"} {
		if err = v.get(ctx, (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: p}).String(), &meta); err == nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if meta.Issuer != v.cfg.Issuer {
		return nil, fmt.Errorf("the issuer's metadata is that of %q", meta.Issuer)
	}
	jwks, err := url.Parse(meta.JWKS)
	if err != nil || (jwks.Scheme != "https" && (u.Scheme != "http" || jwks.Scheme != "http" || !netaddr.Loopback(jwks.Hostname()))) {
		return nil, errors.New("the issuer's jwks_uri is not an https URL")
	}
	var set struct {
		Keys []jwk `json:"keys"`
	}
	if err := v.get(ctx, meta.JWKS, &set); err != nil {
		return nil, err
	}
	keys := map[string]any{}
	for _, k := range set.Keys {
		if pub := k.public(); pub != nil && len(keys) < maxKeys {
			keys[k.ID] = pub
		}
	}
	return keys, nil
}

func (v *Verifier) get(ctx context.Context, u string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u, nil)
	if err != nil {
		return err
	}
	resp, err := v.cfg.Client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: HTTP %s", u, resp.Status)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxDocument)).Decode(into)
}

// jwk is a public key (RFC 7517).
type jwk struct {
	ID    string `json:"kid"`
	Type  string `json:"kty"`
	Use   string `json:"use"`
	Curve string `json:"crv"`
	N     string `json:"n"`
	E     string `json:"e"`
	X     string `json:"x"`
	Y     string `json:"y"`
}

const minRSA = 2048

// public returns the key, nil for an unsupported one.
func (k jwk) public() any {
	num := func(s string) *big.Int {
		b, err := base64.RawURLEncoding.DecodeString(s)
		if err != nil {
			return new(big.Int)
		}
		return new(big.Int).SetBytes(b)
	}
	switch {
	case k.ID == "" || (k.Use != "" && k.Use != "sig"):
		return nil
	case k.Type == "RSA":
		n, e := num(k.N), num(k.E)
		if n.BitLen() < minRSA || n.BitLen() > 8192 || !e.IsInt64() || e.Int64() < 3 || e.Int64() > 1<<31-1 {
			return nil
		}
		return &rsa.PublicKey{N: n, E: int(e.Int64())}
	case k.Type == "EC" && k.Curve == "P-256":
		x, y := num(k.X), num(k.Y)
		if x.BitLen() > 256 || y.BitLen() > 256 {
			return nil
		}
		point := append([]byte{4}, make([]byte, 64)...)
		x.FillBytes(point[1:33])
		y.FillBytes(point[33:])
		pub, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
		if err != nil { // not on the curve
			return nil
		}
		return pub
	}
	return nil
}

// ResourceMetadata returns the document in which clients find the authorization
// server (RFC 9728). No part of it comes from a request.
func (v *Verifier) ResourceMetadata() []byte {
	out, err := json.Marshal(map[string]any{
		"resource": v.cfg.Audience, "authorization_servers": []string{v.cfg.Issuer},
		"bearer_methods_supported": []string{"header"}, "resource_name": "yaya",
	})
	if err != nil { // strings can always be marshalled
		return []byte("{}")
	}
	return out
}

// MetadataURL returns the address at which clients find
// [Verifier.ResourceMetadata].
func (v *Verifier) MetadataURL() string {
	u, err := url.Parse(v.cfg.Audience)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/.well-known/oauth-protected-resource" + strings.TrimSuffix(u.Path, "/")}).String()
}
