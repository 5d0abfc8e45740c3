package auth_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"github.com/yaya-ai/yaya/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const audience = "https://yaya.example/mcp"

// issuer is an authorization server with one RSA and one EC key.
type issuer struct {
	*httptest.Server
	rsa     *rsa.PrivateKey
	weak    *rsa.PrivateKey
	ec      *ecdsa.PrivateKey
	fetches atomic.Int64
	broken  atomic.Bool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := new(issuer)
	var err error
	if i.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if i.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	if i.weak, err = rsa.GenerateKey(rand.Reader, 1024); err != nil {
		t.Fatal(err)
	}
	b64 := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		if i.broken.Load() {
			http.Error(w, "no", http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/jwks"})
	})
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		i.fetches.Add(1)
		pub, err := i.ec.PublicKey.ECDH()
		if err != nil {
			t.Errorf("ECDH of the public key = %v, want no error", err)
		}
		xy := pub.Bytes()
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]string{
			{"kid": "r", "kty": "RSA", "use": "sig", "n": b64(i.rsa.N), "e": b64(big.NewInt(int64(i.rsa.E)))},
			{"kid": "e", "kty": "EC", "crv": "P-256", "x": base64.RawURLEncoding.EncodeToString(xy[1:33]), "y": base64.RawURLEncoding.EncodeToString(xy[33:])},
			{"kid": "weak", "kty": "RSA", "n": b64(i.weak.N), "e": b64(big.NewInt(int64(i.weak.E)))},
			{"kid": "enc", "kty": "RSA", "use": "enc", "n": b64(i.rsa.N), "e": b64(big.NewInt(int64(i.rsa.E)))},
			{"kid": "oct", "kty": "oct"},
		}})
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		i.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return i
}

func (i *issuer) verifier(t *testing.T, now func() time.Time) *auth.Verifier {
	t.Helper()
	v, err := auth.NewVerifier(auth.Config{Issuer: i.URL, Audience: audience, Client: i.Client(), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (i *issuer) claims() jwt.MapClaims {
	now := time.Now()
	return jwt.MapClaims{"iss": i.URL, "aud": audience, "sub": "ada", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "scope": "a b"}
}

func sign(t *testing.T, method jwt.SigningMethod, key any, header map[string]any, c jwt.MapClaims) string {
	t.Helper()
	tok := jwt.NewWithClaims(method, c)
	for k, v := range header {
		tok.Header[k] = v
	}
	s, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVerify(t *testing.T) {
	i := newIssuer(t)
	v := i.verifier(t, nil)
	for name, token := range map[string]string{
		"RSA": sign(t, jwt.SigningMethodRS256, i.rsa, map[string]any{"kid": "r"}, i.claims()),
		"EC":  sign(t, jwt.SigningMethodES256, i.ec, map[string]any{"kid": "e", "typ": "at+jwt"}, i.claims()),
	} {
		for range 2 { // and from memory
			id, err := v.Verify(t.Context(), token)
			if err != nil || id.Subject != "ada" || id.Issuer != i.URL || strings.Join(id.Scopes, " ") != "a b" {
				t.Errorf(`%s: got %+v, %v, want Subject "ada", Issuer %v, Scopes "a b"`, name, id, err, i.URL)
			}
		}
	}
}

// AU-01…AU-08: bad tokens are refused, and no address in one is fetched.
func TestBadTokens(t *testing.T) {
	i := newIssuer(t)
	other := newIssuer(t)
	canary := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("something that a token names was fetched") }))
	defer canary.Close()
	der, err := x509.MarshalPKIXPublicKey(&i.rsa.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	pub := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	good := map[string]any{"kid": "r"}
	with := func(k string, val any) jwt.MapClaims {
		c := i.claims()
		if c[k] = val; val == nil {
			delete(c, k)
		}
		return c
	}
	rs := func(h map[string]any, c jwt.MapClaims) string { return sign(t, jwt.SigningMethodRS256, i.rsa, h, c) }
	none := func(alg string) string {
		h := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"` + alg + `","kid":"r"}`))
		body, err := json.Marshal(i.claims())
		if err != nil {
			t.Fatal(err)
		}
		return h + "." + base64.RawURLEncoding.EncodeToString(body) + "."
	}
	now := time.Now()
	for name, token := range map[string]string{
		"empty": "", "no JWT": "abc", "dots": strings.Repeat(".", 1<<16), "large": strings.Repeat("a", 20<<10) + ".b.c",
		"alg none": none("none"), "alg None": none("None"), "alg nOnE": none("nOnE"), "no alg": none(""),
		"HMAC with the public key":    sign(t, jwt.SigningMethodHS256, pub, good, i.claims()),
		"RS384":                       sign(t, jwt.SigningMethodRS384, i.rsa, good, i.claims()),
		"PS256":                       sign(t, jwt.SigningMethodPS256, i.rsa, good, i.claims()),
		"ES256 under the RSA key":     sign(t, jwt.SigningMethodES256, i.ec, good, i.claims()),
		"RS256 under the EC key":      rs(map[string]any{"kid": "e"}, i.claims()),
		"ES256, key of RSA":           sign(t, jwt.SigningMethodES256, i.ec, map[string]any{"kid": "r", "typ": "JWT"}, i.claims()),
		"without kid":                 rs(nil, i.claims()),
		"kid is a path":               rs(map[string]any{"kid": "../../dev/null"}, i.claims()),
		"kid is large":                rs(map[string]any{"kid": strings.Repeat("k", 8<<10)}, i.claims()),
		"a weak key":                  sign(t, jwt.SigningMethodRS256, i.weak, map[string]any{"kid": "weak"}, i.claims()),
		"a key for encryption":        rs(map[string]any{"kid": "enc"}, i.claims()),
		"a symmetric key":             rs(map[string]any{"kid": "oct"}, i.claims()),
		"another issuer's key":        sign(t, jwt.SigningMethodRS256, other.rsa, good, i.claims()),
		"its own key":                 rs(map[string]any{"kid": "x", "jku": canary.URL, "x5u": canary.URL, "jwk": map[string]string{"kty": "RSA"}}, i.claims()),
		"critical extensions":         rs(map[string]any{"kid": "r", "crit": []string{"x"}}, i.claims()),
		"another type":                rs(map[string]any{"kid": "r", "typ": "dpop+jwt"}, i.claims()),
		"no exp":                      rs(good, with("exp", nil)),
		"exp in a year":               rs(good, with("exp", now.AddDate(1, 0, 0).Unix())),
		"no iat":                      rs(good, with("iat", nil)),
		"expired":                     rs(good, with("exp", now.Add(-2*time.Minute).Unix())),
		"not yet":                     rs(good, with("nbf", now.Add(10*time.Minute).Unix())),
		"issued in the future":        rs(good, with("iat", now.Add(10*time.Minute).Unix())),
		"no aud":                      rs(good, with("aud", nil)),
		"another audience":            rs(good, with("aud", "https://other.example/mcp")),
		"audience with a slash":       rs(good, with("aud", audience+"/")),
		"audience in capitals":        rs(good, with("aud", strings.ToUpper(audience))),
		"no iss":                      rs(good, with("iss", nil)),
		"another issuer":              rs(good, with("iss", other.URL)),
		"no sub":                      rs(good, with("sub", nil)),
		"changed after it was signed": rs(good, i.claims())[:40] + "A" + rs(good, i.claims())[41:],
	} {
		if id, err := i.verifier(t, nil).Verify(t.Context(), token); !errors.Is(err, auth.ErrToken) {
			t.Errorf("%s: got %+v, %v, want error %v", name, id, err, auth.ErrToken)
		}
	}
	within := rs(good, with("exp", now.Add(-30*time.Second).Unix()))
	if _, err := i.verifier(t, nil).Verify(t.Context(), within); err != nil {
		t.Errorf("within the leeway: %v", err)
	}
}

// Keys are fetched when they are needed, seldom, and kept while their issuer is
// away; a token that was verified does not outlive itself.
func TestKeys(t *testing.T) {
	i := newIssuer(t)
	now := time.Now()
	v := i.verifier(t, func() time.Time { return now })
	unknown := sign(t, jwt.SigningMethodRS256, i.rsa, map[string]any{"kid": "new"}, i.claims())
	for range 20 {
		if _, err := v.Verify(t.Context(), unknown); !errors.Is(err, auth.ErrToken) {
			t.Fatalf("got %v, want error %v", err, auth.ErrToken)
		}
	}
	if n := i.fetches.Load(); n != 1 {
		t.Errorf("fetched %d times for a key that there is not", n)
	}
	token := sign(t, jwt.SigningMethodRS256, i.rsa, map[string]any{"kid": "r"}, i.claims())
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	i.broken.Store(true)
	now = now.Add(20 * time.Minute)
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Errorf("while the issuer is away: %v", err)
	}
	if _, err := v.Verify(t.Context(), unknown); err == nil || errors.Is(err, auth.ErrToken) {
		t.Errorf("an unknown key while the issuer is away: %v", err)
	}
	now = now.Add(time.Hour)
	if _, err := v.Verify(t.Context(), token); !errors.Is(err, auth.ErrToken) {
		t.Errorf("after its end: %v", err)
	}
	i.broken.Store(false)
	if _, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodRS256, crypto.PrivateKey(i.rsa), map[string]any{"kid": "r"}, i.claims())); !errors.Is(err, auth.ErrToken) {
		t.Errorf("from the past: %v", err)
	}
}

// The issuer's metadata must be its own.
func TestForeignMetadata(t *testing.T) {
	i := newIssuer(t)
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/jwks"})
	}))
	defer liar.Close()
	v, err := auth.NewVerifier(auth.Config{Issuer: liar.URL, Audience: audience, Client: liar.Client()})
	if err != nil {
		t.Fatal(err)
	}
	c := i.claims()
	c["iss"] = liar.URL
	if _, err := v.Verify(t.Context(), sign(t, jwt.SigningMethodRS256, i.rsa, map[string]any{"kid": "r"}, c)); err == nil || i.fetches.Load() != 0 {
		t.Errorf("got %v, and %d fetches", err, i.fetches.Load())
	}
}

// AU-40: the metadata for clients comes from the configuration.
func TestResourceMetadata(t *testing.T) {
	v, err := auth.NewVerifier(auth.Config{Issuer: "https://as.example", Audience: audience})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(v.ResourceMetadata()), `{"authorization_servers":["https://as.example"],"bearer_methods_supported":["header"],"resource":"https://yaya.example/mcp","resource_name":"yaya"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := v.MetadataURL(); got != "https://yaya.example/.well-known/oauth-protected-resource/mcp" {
		t.Errorf("got %s, want https://yaya.example/.well-known/oauth-protected-resource/mcp", got)
	}
	for _, bad := range []auth.Config{{}, {Issuer: "http://as.example", Audience: audience}, {Issuer: "https://as.example", Audience: "ftp://x"}, {Issuer: "https://as.example", Audience: audience + "#x"}} {
		if _, err := auth.NewVerifier(bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
