package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/oauth2"

	"github.com/yaya-ai/yaya/internal/secrets"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func store(t *testing.T) (*Store, string) {
	t.Helper()
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return NewStore(root, secrets.New(secrets.Options{Data: root, KeyDir: t.TempDir()})), dir
}

// A grant is sealed, and kept by its server.
func TestStore(t *testing.T) {
	s, dir := store(t)
	if g, err := s.Load("https://x/mcp"); err != nil || g.Token != nil || g.Server != "https://x/mcp" {
		t.Fatalf("at first: %+v %v", g, err)
	}
	if err := s.Save(Grant{Server: "https://x/mcp", Issuer: "https://as", Token: &oauth2.Token{AccessToken: "canary-token"}}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("the files are %v, %v, want the sealed one and its lock", files, err)
	}
	for _, f := range files {
		if data, err := os.ReadFile(f); err != nil || bytes.Contains(data, []byte("canary")) {
			t.Errorf("%s has %s, %v", f, data, err)
		}
		if st, err := os.Stat(f); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("mode %v %v", st.Mode(), err)
		}
	}
	if g, err := s.Load("https://x/mcp"); err != nil || g.Token.AccessToken != "canary-token" || g.Issuer != "https://as" {
		t.Errorf("got %+v %v; want the saved token, of https://as", g, err)
	}
	if g, err := s.Load("https://y/mcp"); err != nil || g.Token != nil {
		t.Errorf("another server's grant is %+v, %v", g, err)
	}
	if found, err := s.Forget("https://x/mcp"); !found || err != nil {
		t.Errorf("forget: %v %v", found, err)
	}
	if found, err := s.Forget("https://x/mcp"); found || err != nil {
		t.Errorf("forget twice: %v %v", found, err)
	}
}

// UP-27: a page is shown only if it is one.
func TestCheckPage(t *testing.T) {
	for _, u := range []string{"https://as.example/authorize?x=1", "http://127.0.0.1:1/a", "http://localhost:1/a", "http://[::1]:1/a"} {
		if err := CheckPage(u); err != nil {
			t.Errorf("CheckPage(%s) = %v, want nil", u, err)
		}
	}
	for _, u := range []string{"", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "--flag", "http://as.example/authorize", "https://user:pass@as.example/", "https:///x", "ftp://x/", "http://127.0.0.1.evil.example/"} {
		if CheckPage(u) == nil {
			t.Errorf("%q is shown", u)
		}
	}
}

// UP-28: the answer of a browser.
func TestReadAnswer(t *testing.T) {
	read := func(s string) (Answer, error) {
		u, err := url.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return ReadAnswer(u)
	}
	if a, err := read("http://127.0.0.1/callback?code=c&state=s&iss=i"); err != nil || a != (Answer{"c", "s", "i"}) {
		t.Errorf("got %+v, %v, want the code c, the state s and the issuer i", a, err)
	}
	if _, err := read("http://127.0.0.1/callback?state=s"); err == nil {
		t.Error("no code")
	}
	if _, err := read("http://127.0.0.1/callback?error=access_denied&error_description=no%1b%5b31m"); err == nil || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("got %v, want an error without an escape character", err)
	}
}

// protected is an MCP server that wants a token, and its authorization server.
type protected struct {
	*httptest.Server
	valid     atomic.Value // the token that it takes
	refreshes atomic.Int64
	refuse    atomic.Bool // refresh tokens
	refused   atomic.Int64
	scope     atomic.Bool // it wants more
	bodies    sync.Map
}

func newProtected(t *testing.T) *protected {
	t.Helper()
	p := new(protected)
	p.valid.Store("first")
	mux := http.NewServeMux()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.Header.Get("Authorization") != "Bearer "+p.valid.Load().(string):
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+p.URL+`/prm", scope="a b"`)
			w.WriteHeader(http.StatusUnauthorized)
		case p.scope.Load():
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="more"`)
			w.WriteHeader(http.StatusForbidden)
		default:
			p.bodies.Store(string(body), true)
			_, _ = io.WriteString(w, "welcome")
		}
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil || r.PostForm.Get("grant_type") != "refresh_token" || r.PostForm.Get("resource") == "" || p.refuse.Load() {
			p.refused.Add(1)
			http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return
		}
		n := p.refreshes.Add(1)
		next := fmt.Sprintf("fresh%d", n)
		p.valid.Store(next)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": next, "token_type": "Bearer", "expires_in": 3600, "refresh_token": fmt.Sprintf("r%d", n)})
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *protected) transport(t *testing.T, s *Store) *Transport {
	t.Helper()
	next := &http.Transport{}
	t.Cleanup(next.CloseIdleConnections)
	return &Transport{Next: next, Server: p.URL + "/mcp", Name: "srv", Store: s}
}

func (p *protected) grant(token, refresh string, expiry time.Time) Grant {
	return Grant{Server: p.URL + "/mcp", TokenURL: p.URL + "/token", ClientID: "c", Resource: p.URL + "/mcp", Scopes: []string{"a"},
		AuthStyle: oauth2.AuthStyleInParams, Token: &oauth2.Token{AccessToken: token, TokenType: "Bearer", RefreshToken: refresh, Expiry: expiry}}
}

func post(ctx context.Context, rt http.RoundTripper, u, body string, edit func(*http.Request)) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	if edit != nil {
		edit(req)
	}
	resp, err := rt.RoundTrip(req)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

// A token is used, renewed when its time is near or it is refused, and kept for
// the next process; rotation keeps the newest refresh token.
func TestTransport(t *testing.T) {
	p := newProtected(t)
	s, _ := store(t)
	u := p.URL + "/mcp"
	if err := s.Save(p.grant("first", "r0", time.Now().Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	if code, err := post(t.Context(), p.transport(t, s), u, "one", nil); err != nil || code != 200 {
		t.Fatalf("got %d %v, want code 200", code, err)
	}
	p.valid.Store("revoked") // the server no longer takes it
	if code, err := post(t.Context(), p.transport(t, s), u, "two", nil); err != nil || code != 200 {
		t.Fatalf("after a refusal: %d %v", code, err)
	}
	if _, ok := p.bodies.Load("two"); !ok {
		t.Error("the request came without its body")
	}
	g, err := s.Load(u)
	if err != nil || g.Token.AccessToken != "fresh1" || g.Token.RefreshToken != "r1" {
		t.Errorf("kept: %+v %v", g.Token, err)
	}
	g.Token.Expiry = time.Now().Add(10 * time.Second)
	if err := s.Save(g); err != nil {
		t.Fatal(err)
	}
	tr := p.transport(t, s)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if code, err := post(t.Context(), tr, u, fmt.Sprint("many", i), nil); err != nil || code != 200 {
				t.Errorf("got %d %v, want code 200", code, err)
			}
		})
	}
	wg.Wait()
	if n := p.refreshes.Load(); n != 2 {
		t.Errorf("%d refreshes for 20 calls", n)
	}
	// No other origin gets a token (R21).
	var leaked atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		leaked.Store(r.Header.Get("Authorization") != "")
	}))
	defer other.Close()
	if code, err := post(t.Context(), tr, other.URL+"/mcp", "", nil); err != nil || code != 200 || leaked.Load() {
		t.Errorf("another origin: %d %v, and it got a token: %v", code, err, leaked.Load())
	}
	// A credential of the caller's own is left alone.
	if code, err := post(t.Context(), tr, u, "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer mine") }); err != nil || code != 401 {
		t.Errorf("got %d %v, want code 401", code, err)
	}
}

// An error that only a person can fix says so, with the remedy, and its challenge is kept
// for the login. The transport notices a login by another process.
func TestLoginIsNeeded(t *testing.T) {
	p := newProtected(t)
	s, _ := store(t)
	tr := p.transport(t, s)
	u := p.URL + "/mcp"
	_, err := post(t.Context(), tr, u, "", nil)
	login, ok := errors.AsType[*LoginError](err)
	if !ok || login.Scope != "a b" || !strings.Contains(err.Error(), "yaya mcp login srv") || login.RetryAfter() == 0 {
		t.Fatalf(`got %v; want a LoginError with the scope "a b", a time to retry and the command yaya mcp login srv`, err)
	}
	g, lerr := s.Load(u)
	if lerr != nil || g.Challenge == nil || g.Challenge.Status != 401 || !strings.Contains(g.Challenge.WWWAuthenticate[0], "/prm") {
		t.Errorf("kept: %+v %v", g.Challenge, lerr)
	}
	if tr.Renewed() {
		t.Error("nobody has logged in")
	}
	if err := s.Save(p.grant("first", "r0", time.Time{})); err != nil {
		t.Fatal(err)
	}
	if !tr.Renewed() {
		t.Error("the login is not noticed")
	}
	if code, err := post(t.Context(), tr, u, "", nil); err != nil || code != 200 {
		t.Errorf("after the login: %d %v", code, err)
	}
	p.scope.Store(true)
	if _, err := post(t.Context(), tr, u, "", nil); err == nil || !strings.Contains(err.Error(), `"more"`) {
		t.Errorf("a step up: %v", err)
	}
	p.scope.Store(false)
	p.valid.Store("other")
	p.refuse.Store(true)
	for range 5 {
		if _, err := post(t.Context(), tr, u, "", nil); err == nil || !strings.Contains(err.Error(), "could not be renewed") {
			t.Errorf("a refresh token that is refused: %v", err)
		}
	}
	if n := p.refused.Load(); n != 1 {
		t.Errorf("a refused refresh token was sent %d times", n)
	}
}

// A grant without a person is asked for seldom when it is refused.
func TestRefusedGrantIsNotHammered(t *testing.T) {
	var asked atomic.Int64
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/mcp":
			w.Header().Set("WWW-Authenticate", "Bearer")
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server"):
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]any{"issuer": srv.URL, "token_endpoint": srv.URL + "/token", "authorization_endpoint": srv.URL + "/a",
				"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}})
		case r.URL.Path == "/token":
			asked.Add(1)
			http.Error(w, `{"error":"invalid_client"}`, http.StatusUnauthorized)
		default:
			http.NotFound(w, r)
		}
	}))
	defer srv.Close()
	s, _ := store(t)
	next := &http.Transport{}
	defer next.CloseIdleConnections()
	tr := &Transport{Next: next, Server: srv.URL + "/mcp", Name: "srv", Store: s, Config: Config{servers.OAuth{Grant: servers.ClientCredentials, ClientID: "c", ClientSecret: "s"}}}
	for range 10 {
		if _, err := post(t.Context(), tr, srv.URL+"/mcp", "", nil); err == nil || !strings.Contains(err.Error(), "authorization failed") {
			t.Fatalf(`got %v, want "authorization failed" in it`, err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	tr.Config.Issuer, tr.failed = "https://another.example", time.Time{}
	if _, err := post(t.Context(), tr, srv.URL+"/mcp", "", nil); err == nil || !strings.Contains(err.Error(), "credentials are for https://another.example") || asked.Load() != 1 {
		t.Errorf("credentials of another issuer: %v", err)
	}
}

// USE-9: a caller that goes away while a token is asked for says nothing about the
// authorization server; the next one asks again, and none waits behind another
// once it is cancelled.
func TestCallerThatGoesAwayIsNoRefusal(t *testing.T) {
	for name, c := range map[string]struct {
		grant string
		token *oauth2.Token
	}{
		"client credentials": {servers.ClientCredentials, nil},
		"refresh":            {servers.AuthorizationCode, &oauth2.Token{AccessToken: "old", TokenType: "Bearer", RefreshToken: "r", Expiry: time.Unix(1, 0)}},
	} {
		t.Run(name, func(t *testing.T) {
			asked, answer := make(chan struct{}, 10), make(chan struct{})
			var srv *httptest.Server
			srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				switch {
				case r.URL.Path == "/mcp" && r.Header.Get("Authorization") == "Bearer new":
				case r.URL.Path == "/mcp":
					w.Header().Set("WWW-Authenticate", "Bearer")
					w.WriteHeader(http.StatusUnauthorized)
				case strings.HasPrefix(r.URL.Path, "/.well-known/oauth-authorization-server"):
					_ = json.NewEncoder(w).Encode(map[string]any{"issuer": srv.URL, "token_endpoint": srv.URL + "/token", "authorization_endpoint": srv.URL + "/a",
						"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}})
				case r.URL.Path == "/token":
					_, _ = io.Copy(io.Discard, r.Body) // else it does not notice that the client is gone
					asked <- struct{}{}
					select {
					case <-answer:
						_, _ = io.WriteString(w, `{"access_token":"new","token_type":"Bearer","expires_in":3600}`)
					case <-r.Context().Done():
					}
				default:
					http.NotFound(w, r)
				}
			}))
			defer srv.Close()
			s, _ := store(t)
			u := srv.URL + "/mcp"
			if err := s.Save(Grant{Server: u, TokenURL: srv.URL + "/token", ClientID: "c", Resource: u, AuthStyle: oauth2.AuthStyleInParams, Token: c.token}); err != nil {
				t.Fatal(err)
			}
			next := &http.Transport{}
			defer next.CloseIdleConnections()
			tr := &Transport{Next: next, Server: u, Name: "srv", Store: s, Config: Config{servers.OAuth{Grant: c.grant, ClientID: "c", ClientSecret: "s"}}}
			var wg sync.WaitGroup
			first, leave := context.WithCancel(t.Context())
			defer leave()
			wg.Go(func() {
				if _, err := post(first, tr, u, "", nil); !errors.Is(err, context.Canceled) {
					t.Errorf("the caller that went away got %v, want %v", err, context.Canceled)
				}
			})
			<-asked
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := post(gone, tr, u, "", nil); !errors.Is(err, context.Canceled) {
				t.Errorf("one that was cancelled got %v, want %v", err, context.Canceled)
			}
			leave()
			wg.Wait()
			close(answer)
			if code, err := post(t.Context(), tr, u, "", nil); err != nil || code != http.StatusOK {
				t.Errorf("the next one got %d, %v, want 200", code, err)
			}
		})
	}
}

// A login at a server that wants no authorization says so, while requests go on.
func TestLoginIsNotWanted(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer srv.Close()
	s, _ := store(t)
	next := &http.Transport{}
	defer next.CloseIdleConnections()
	tr := &Transport{Next: next, Server: srv.URL + "/mcp", Name: "srv", Store: s}
	for range 2 {
		if done, err := (Login{Transport: tr}).Run(t.Context()); done || err != nil {
			t.Errorf("Run = %v, %v, want false", done, err)
		}
		if code, err := post(t.Context(), tr, tr.Server, "", nil); err != nil || code != http.StatusOK {
			t.Errorf("a request got %d, %v, want 200", code, err)
		}
	}
}
