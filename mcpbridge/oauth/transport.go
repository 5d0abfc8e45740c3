package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Transport carries the requests to one protected server. It is safe for
// concurrent use.
type Transport struct {
	Next   http.RoundTripper
	Server string // URL
	Name   string // as configured, for messages
	Config Config
	Store  *Store

	parse  sync.Once
	origin *url.URL // of Server; nil when it is none

	mu     sync.Mutex // held for a moment, never while a server is asked
	turn   chan struct{}
	loaded time.Time // the file's time
	known  bool
	grant  Grant
	proof  *proof

	// Those of the turn's holder, who alone changes the grant.
	failed time.Time // the last time that a token could not be had
	why    error
	tired  time.Time // the last time that one could not be renewed
}

// enter waits for the turn to look for a better token: one request at a time does,
// and the others use what it has found. leave ends it.
func (t *Transport) enter(ctx context.Context) (leave func(), err error) {
	t.mu.Lock()
	if t.turn == nil {
		t.turn = make(chan struct{}, 1)
	}
	turn := t.turn
	t.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// retryAfter bounds how often a grant that is refused is asked for.
const retryAfter = 30 * time.Second

// LoginError says that a person has to agree first.
type LoginError struct {
	Server string
	Scope  string // that was asked for, "" when it is not about scopes
	Cause  error
}

func (e *LoginError) Error() string {
	msg := "it wants authorization"
	if e.Scope != "" {
		msg = fmt.Sprintf("it wants authorization for %q", e.Scope)
	}
	msg += "; run: yaya mcp login " + e.Server
	if e.Cause != nil {
		msg += fmt.Sprintf(" (%v)", e.Cause)
	}
	return msg
}

func (e *LoginError) Unwrap() error { return e.Cause }

// RetryAfter keeps a provider from being restarted in vain.
func (e *LoginError) RetryAfter() time.Duration { return time.Minute }

// refreshEarly is how long before its end a token is renewed.
const refreshEarly = 30 * time.Second

// RoundTrip implements [http.RoundTripper]. Requests to another origin than the
// server's are sent as they are.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.parse.Do(func() { t.origin, _ = url.Parse(t.Server) }) // a Server that is not a URL has no origin
	if t.origin == nil || req.URL.Scheme != t.origin.Scheme || req.URL.Host != t.origin.Host {
		return t.Next.RoundTrip(req)
	}
	token, p, err := t.token(req.Context())
	if err != nil {
		return nil, err
	}
	for again, renewed := false, false; ; {
		r, err := t.sign(req, token, p, again)
		if err != nil {
			return nil, err
		}
		var resp *http.Response
		var from netip.Addr
		if again {
			resp, from, err = traced(t.Next, r)
		} else {
			resp, err = t.Next.RoundTrip(r)
		}
		if err != nil {
			return nil, err
		}
		if p != nil {
			p.learn(req.URL, resp)
		}
		refused := resp.StatusCode == http.StatusUnauthorized || (resp.StatusCode == http.StatusForbidden && insufficient(resp.Header))
		if !refused || req.Header.Get("Authorization") != "" {
			return resp, nil
		}
		switch {
		case !again:
			// A refusal counts with the address that it comes from, which is found out
			// only now, so that no other request pays for it. A nonce is answered, too.
			again = true
		case renewed:
			t.note(req.Context(), resp, from)
			return resp, nil
		default:
			next, nextProof, err := t.renew(req.Context(), token, resp, from)
			if err != nil {
				_ = resp.Body.Close()
				return nil, err
			}
			if next == nil {
				return resp, nil
			}
			token, p, renewed = next, nextProof, true
		}
		_ = resp.Body.Close()
	}
}

// sign returns the request with a token, the request itself without one.
func (t *Transport) sign(req *http.Request, token *oauth2.Token, p *proof, again bool) (*http.Request, error) {
	if (token == nil && !again) || req.Header.Get("Authorization") != "" {
		return req, nil
	}
	r := req.WithContext(req.Context())
	r.Header = req.Header.Clone()
	if again && req.GetBody != nil {
		var err error
		if r.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	if token == nil {
		return r, nil
	}
	if p == nil || !strings.EqualFold(token.TokenType, "DPoP") {
		r.Header.Set("Authorization", "Bearer "+token.AccessToken)
		return r, nil
	}
	proof, err := p.sign(req.Method, req.URL, token.AccessToken)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "DPoP "+token.AccessToken)
	r.Header.Set("DPoP", proof)
	return r, nil
}

func insufficient(h http.Header) bool {
	return strings.Contains(strings.Join(h.Values("WWW-Authenticate"), ","), "insufficient_scope")
}

// token returns the token to use, renewed if its time is near.
func (t *Transport) token(ctx context.Context) (*oauth2.Token, *proof, error) {
	t.mu.Lock()
	known, tok, p := t.known, t.grant.Token, t.proof
	t.mu.Unlock()
	if known && fresh(tok) {
		return tok, p, nil
	}
	leave, err := t.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	if !t.known {
		if err := t.load(); err != nil {
			return nil, nil, err
		}
	}
	if fresh(t.grant.Token) {
		return t.grant.Token, t.proof, nil
	}
	if err := t.refresh(ctx); err != nil {
		return t.grant.Token, t.proof, nil //nolint:nilerr // the server says whether it still takes it
	}
	return t.grant.Token, t.proof, nil
}

// fresh reports whether a token's end is not near; there may be none.
func fresh(tok *oauth2.Token) bool {
	return tok == nil || tok.Expiry.IsZero() || time.Until(tok.Expiry) > refreshEarly
}

// load reads the grant that is stored; the turn is held.
func (t *Transport) load() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := t.Store.changed(t.Server)
	g, err := t.Store.Load(t.Server)
	if err != nil {
		return err
	}
	t.grant, t.loaded, t.known, t.proof, t.tired = g, changed, true, nil, time.Time{}
	if len(g.DPoPKey) > 0 {
		t.proof, err = newProof(g.DPoPKey)
	}
	return err
}

// refresh renews the token with its refresh token; the turn is held. Another
// process may have done it already.
func (t *Transport) refresh(ctx context.Context) error {
	old := t.grant.Token
	if changed := t.Store.changed(t.Server); changed != t.loaded {
		if err := t.load(); err != nil {
			return err
		}
		if tok := t.grant.Token; tok != nil && (old == nil || tok.AccessToken != old.AccessToken) {
			return nil
		}
	}
	g := t.grant
	if g.Token == nil || g.Token.RefreshToken == "" {
		return errors.New("there is no refresh token")
	}
	if time.Since(t.tired) < retryAfter {
		return errors.New("the token could not be renewed a moment ago")
	}
	cfg := &oauth2.Config{ClientID: g.ClientID, ClientSecret: g.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: g.TokenURL, AuthStyle: g.AuthStyle}}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, newGuard(t.Server, g.From, t.Config).client(t.proof))
	opts := []oauth2.AuthCodeOption{
		oauth2.SetAuthURLParam("grant_type", "refresh_token"), oauth2.SetAuthURLParam("refresh_token", g.Token.RefreshToken),
	}
	if g.Resource != "" {
		opts = append(opts, oauth2.SetAuthURLParam("resource", g.Resource))
	}
	tok, err := cfg.Exchange(ctx, "", opts...)
	if err != nil {
		if ctx.Err() == nil { // else it is the caller who went away
			t.tired = time.Now()
		}
		return fmt.Errorf("the token could not be renewed: %w", err)
	}
	tok.RefreshToken = cmp.Or(tok.RefreshToken, g.Token.RefreshToken)
	g.Token = tok
	return t.keep(g)
}

// keep stores a grant; the turn is held.
func (t *Transport) keep(g Grant) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.Store.Save(g); err != nil {
		return err
	}
	t.grant, t.loaded = g, t.Store.changed(t.Server)
	return nil
}

// renew finds a better token than the one that was refused. A nil one without an
// error means that there is nothing to be done here.
func (t *Transport) renew(ctx context.Context, used *oauth2.Token, resp *http.Response, from netip.Addr) (*oauth2.Token, *proof, error) {
	leave, err := t.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer leave()
	differs := func() bool {
		tok := t.grant.Token
		return tok != nil && (used == nil || tok.AccessToken != used.AccessToken)
	}
	// Another request, or another process, may have been faster.
	if !differs() && t.Store.changed(t.Server) != t.loaded {
		if err := t.load(); err != nil {
			return nil, nil, err
		}
	}
	if differs() {
		return t.grant.Token, t.proof, nil
	}
	person := cmp.Or(t.Config.Grant, servers.AuthorizationCode) == servers.AuthorizationCode
	if person {
		var cause error
		if resp.StatusCode == http.StatusUnauthorized && used != nil && used.RefreshToken != "" {
			if cause = t.refresh(ctx); cause == nil && differs() {
				return t.grant.Token, t.proof, nil
			}
		}
		g := t.grant
		g.Challenge = &Challenge{resp.StatusCode, resp.Header.Values("WWW-Authenticate"), from}
		if err := t.keep(g); err != nil {
			return nil, nil, err
		}
		return nil, nil, &LoginError{t.Name, scopeOf(resp.Header), cause}
	}
	if time.Since(t.failed) < retryAfter {
		return nil, nil, t.why
	}
	g, err := t.Config.obtain(ctx, newGuard(t.Server, from, t.Config).client(nil), t.Server, resp.Header)
	g.From = from
	if err == nil && used != nil && resp.StatusCode == http.StatusForbidden && slices.Equal(g.Scopes, t.grant.Scopes) {
		err = errors.New("the server wants more than it is granted")
	}
	if err == nil {
		err = t.keep(g)
	}
	if err != nil {
		err = fmt.Errorf("authorization failed: %w", err)
		if ctx.Err() == nil { // else it is the caller who went away
			t.failed, t.why = time.Now(), err
		}
		return nil, nil, err
	}
	return t.grant.Token, nil, nil
}

// Renewed reports whether there is a grant that has not been used yet: somebody
// has logged in.
func (t *Transport) Renewed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := t.Store.changed(t.Server)
	return t.known && changed != t.loaded && !changed.IsZero()
}

// note keeps the challenge of a refusal that no token at hand answers.
func (t *Transport) note(ctx context.Context, resp *http.Response, from netip.Addr) {
	leave, err := t.enter(ctx)
	if err != nil {
		return // the refusal itself is what counts
	}
	defer leave()
	g := t.grant
	g.Challenge = &Challenge{resp.StatusCode, resp.Header.Values("WWW-Authenticate"), from}
	_ = t.keep(g) // the refusal itself is what counts
}

func scopeOf(h http.Header) string {
	for _, v := range h.Values("WWW-Authenticate") {
		if _, rest, ok := strings.Cut(v, `scope="`); ok {
			s, _, _ := strings.Cut(rest, `"`)
			return s[:min(len(s), 200)]
		}
	}
	return ""
}
