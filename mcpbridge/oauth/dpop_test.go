package oauth

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/oauth2"
)

// prover checks DPoP proofs as RFC 9449, section 4.3, demands.
type prover struct {
	mu    sync.Mutex
	seen  map[string]bool // jti
	key   string          // the key of the first proof; others must have the same
	nonce string
}

func (c *prover) check(r *http.Request, htu, token string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	claims := jwt.MapClaims{}
	_, err := jwt.ParseWithClaims(r.Header.Get("DPoP"), claims, func(t *jwt.Token) (any, error) {
		j, _ := t.Header["jwk"].(map[string]any)
		if t.Header["typ"] != "dpop+jwt" || j["d"] != nil {
			return nil, fmt.Errorf("its header is %v", t.Header)
		}
		point := []byte{4}
		for _, k := range []string{"x", "y"} {
			s, _ := j[k].(string)
			b, err := base64.RawURLEncoding.DecodeString(s)
			if err != nil {
				return nil, err
			}
			point = append(point, b...)
		}
		if c.key == "" {
			c.key = string(point)
		}
		if c.key != string(point) {
			return nil, errors.New("it is of another key")
		}
		return ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	}, jwt.WithValidMethods([]string{"ES256"}), jwt.WithIssuedAt())
	if err != nil {
		return err
	}
	jti, _ := claims["jti"].(string)
	ath := sha256.Sum256([]byte(token))
	switch {
	case jti == "" || c.seen[jti]:
		return errors.New("its jti was seen before")
	case claims["htm"] != r.Method || claims["htu"] != htu:
		return fmt.Errorf("it is for %v %v", claims["htm"], claims["htu"])
	case token != "" && claims["ath"] != base64.RawURLEncoding.EncodeToString(ath[:]):
		return errors.New("it is for another token")
	}
	c.seen[jti] = true
	if n, _ := claims["nonce"].(string); n != c.nonce {
		return errNonce
	}
	return nil
}

var errNonce = errors.New("use_dpop_nonce")

// Tokens that are bound to a key come with a proof of it for each request; a nonce
// that a server asks for costs one repetition, and neither a renewal nor a login.
func TestDPoP(t *testing.T) {
	resource := &prover{seen: map[string]bool{}, nonce: "n1"}
	issuer := &prover{seen: map[string]bool{}, nonce: "t1"}
	var calls, renewals int
	refuse := func(w http.ResponseWriter, c *prover, err error, status int) {
		if errors.Is(err, errNonce) {
			w.Header().Set("DPoP-Nonce", c.nonce)
		} else {
			t.Errorf("the proof of a request: %v, want a valid one", err)
		}
		w.Header().Set("WWW-Authenticate", `DPoP error="use_dpop_nonce"`)
		w.WriteHeader(status)
	}
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	defer srv.Close()
	valid := "first"
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		calls++
		if r.Header.Get("Authorization") != "DPoP "+valid {
			t.Errorf("it comes with %q", r.Header.Get("Authorization"))
		}
		if err := resource.check(r, srv.URL+"/mcp", valid); err != nil {
			refuse(w, resource, err, http.StatusUnauthorized)
		}
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		renewals++
		if err := issuer.check(r, srv.URL+"/token", ""); err != nil {
			refuse(w, issuer, err, http.StatusBadRequest)
			return
		}
		valid = "second"
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": valid, "token_type": "DPoP", "expires_in": 3600})
	})
	p, err := newProof(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := p.marshal()
	if err != nil {
		t.Fatal(err)
	}
	s, _ := store(t)
	grant := Grant{Server: srv.URL + "/mcp", TokenURL: srv.URL + "/token", ClientID: "c", Resource: srv.URL + "/mcp", AuthStyle: oauth2.AuthStyleInParams,
		DPoPKey: key, Token: &oauth2.Token{AccessToken: "first", TokenType: "DPoP", RefreshToken: "r", Expiry: time.Now().Add(time.Hour)}}
	if err := s.Save(grant); err != nil {
		t.Fatal(err)
	}
	next := &http.Transport{}
	defer next.CloseIdleConnections()
	tr := &Transport{Next: next, Server: srv.URL + "/mcp", Name: "srv", Store: s}
	for _, want := range []int{2, 3} { // the nonce is learnt once
		if code, err := post(t.Context(), tr, srv.URL+"/mcp?q=1", "x", nil); err != nil || code != 200 || calls != want || renewals != 0 {
			t.Fatalf("%d %v after %d calls and %d renewals", code, err, calls, renewals)
		}
	}
	if grant.Token.Expiry = time.Now(); s.Save(grant) != nil {
		t.Fatal("not saved")
	}
	tr = &Transport{Next: next, Server: srv.URL + "/mcp", Name: "srv", Store: s}
	if code, err := post(t.Context(), tr, srv.URL+"/mcp", "x", nil); err != nil || code != 200 || renewals != 2 {
		t.Fatalf("%d %v after %d renewals", code, err, renewals)
	}
	if resource.key == "" || resource.key != issuer.key {
		t.Error("the proofs are of two keys")
	}
}
