package gateway_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/yaya-ai/yaya/auth"
	"github.com/yaya-ai/yaya/gateway"
)

// The MCP endpoint as a protected resource (RFC 9728): whoever brings a token is
// judged by it and by nothing else, and learns where to get a good one (AU-39,
// AU-40).
func TestBearer(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var as *httptest.Server
	as = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/jwks" {
			_ = json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]string{{"kid": "k", "kty": "RSA",
				"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()), "e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())}}})
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"issuer": as.URL, "jwks_uri": as.URL + "/jwks"})
	}))
	defer as.Close()
	const audience = "https://yaya.example/mcp"
	v, err := auth.NewVerifier(auth.Config{Issuer: as.URL, Audience: audience, Client: as.Client()})
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, gateway.Config{Tokens: v, MCP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "from "+auth.FromContext(r.Context()).Name())
	})})
	base := "http://" + r.srv.Addr()
	token := func(aud string) string {
		tok := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
			"iss": as.URL, "aud": aud, "sub": "ada", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		})
		tok.Header["kid"] = "k"
		s, err := tok.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	bearer := func(values ...string) func(*http.Request) {
		return func(req *http.Request) { req.Header["Authorization"] = values }
	}
	for name, c := range map[string]struct {
		edit   func(*http.Request)
		status int
		body   string
		code   string
	}{
		"the owner":       {nil, 200, "from owner", ""},
		"a token":         {bearer("Bearer " + token(audience)), 200, "from issuer:ada", ""},
		"in lower case":   {bearer("bearer " + token(audience)), 200, "from issuer:ada", ""},
		"not for us":      {bearer("Bearer " + token("https://other.example/mcp")), 401, "not acceptable", "invalid_token"},
		"two headers":     {bearer("Bearer "+token(audience), "Bearer x"), 401, "one bearer token", "invalid_request"},
		"a list":          {bearer("Bearer " + token(audience) + ", Bearer x"), 401, "one bearer token", "invalid_request"},
		"another scheme":  {bearer("Basic eDp5"), 401, "one bearer token", "invalid_request"},
		"a megabyte":      {bearer("Bearer " + strings.Repeat(".", 20<<10)), 401, "not acceptable", "invalid_token"},
		"an empty header": {bearer(""), 401, "one bearer token", "invalid_request"},
	} {
		status, body, h := get(t, http.DefaultClient, base+"/mcp", c.edit)
		if status != c.status || !strings.Contains(body, c.body) {
			t.Errorf("%s: got %d %q, want status %v, %v in it", name, status, body, c.status, c.body)
		}
		challenge := h.Get("WWW-Authenticate")
		if c.code != "" && challenge != `Bearer resource_metadata="https://yaya.example/.well-known/oauth-protected-resource/mcp", error="`+c.code+`"` {
			t.Errorf("%s: challenge %q", name, challenge)
		}
	}
	// A token opens nothing else.
	if status, _, _ := get(t, http.DefaultClient, base+"/metrics", bearer("Bearer "+token(audience))); status == http.StatusUnauthorized {
		t.Errorf("metrics: %d", status)
	}
	status, body, h := get(t, http.DefaultClient, base+"/.well-known/oauth-protected-resource/mcp", nil)
	if status != 200 || h.Get("Content-Type") != "application/json" || !strings.Contains(body, `"resource":"https://yaya.example/mcp"`) {
		t.Errorf("metadata: %d %s", status, body)
	}
	as.Close() // keys are cached; a token of an unknown key cannot be verified now
	if status, _, _ := get(t, http.DefaultClient, base+"/mcp", bearer("Bearer "+token(audience))); status != 200 {
		t.Errorf("with the issuer away: %d", status)
	}
}

// While an issuer's keys are not known, a request with one of its tokens is told when to
// come again.
func TestBearerWithoutKeys(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	as := httptest.NewServer(http.NotFoundHandler())
	as.Close()
	const audience = "https://yaya.example/mcp"
	v, err := auth.NewVerifier(auth.Config{Issuer: as.URL, Audience: audience})
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, gateway.Config{Tokens: v})
	tok := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{"iss": as.URL, "aud": audience, "sub": "ada", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()})
	tok.Header["kid"] = "k"
	token, err := tok.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		status, _, h := get(t, http.DefaultClient, "http://"+r.srv.Addr()+"/mcp", func(req *http.Request) { req.Header.Set("Authorization", "Bearer "+token) })
		if status != http.StatusServiceUnavailable || h.Get("Retry-After") != "1" {
			t.Errorf("got %d and Retry-After %q, want 503 and 1", status, h.Get("Retry-After"))
		}
	}
}

// Without an issuer, tokens mean nothing: they are ignored.
func TestNoBearer(t *testing.T) {
	r := run(t, gateway.Config{})
	if status, _, _ := get(t, http.DefaultClient, "http://"+r.srv.Addr()+"/.well-known/oauth-protected-resource", nil); status != http.StatusNotFound {
		t.Errorf("metadata: %d", status)
	}
	if status, body, _ := get(t, http.DefaultClient, "http://"+r.srv.Addr()+"/mcp", func(req *http.Request) { req.Header.Set("Authorization", "Bearer x") }); status != 200 || body != "mcp" {
		t.Errorf(`got %d %q, want status 200, body "mcp"`, status, body)
	}
}
