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
	origin *url.URL // of Server; nil when Server is not a URL

	mu     sync.Mutex // held only briefly, never during a request
	turn   chan struct{}
	loaded time.Time // the time of the stored grant
	known  bool
	grant  Grant
	proof  *proof

	// Owned by the holder of the turn, who alone changes the grant.
	failed time.Time // the last failure to obtain a token
	why    error
	tired  time.Time // the last failure to renew one
}

// enter waits for the turn to look for a better token: one request at a time looks, and the
// others use the token that it found. leave ends the turn.
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

// retryAfter bounds how often yaya requests a grant again after a refusal.
const retryAfter = 30 * time.Second

// LoginError says that a person has to sign in first.
type LoginError struct {
	Server string
	Scope  string // the requested scope, "" if the refusal is not about scopes
	Cause  error
}

func (e *LoginError) Error() string {
	msg := "the server requires authorization"
	if e.Scope != "" {
		msg = fmt.Sprintf("the server requires authorization for %q", e.Scope)
	}
	msg += "; to sign in: yaya mcp login " + e.Server
	if e.Cause != nil {
		msg += fmt.Sprintf(" (%v)", e.Cause)
	}
	return msg
}

func (e *LoginError) Unwrap() error { return e.Cause }

// RetryAfter prevents pointless restarts of a provider.
func (e *LoginError) RetryAfter() time.Duration { return time.Minute }

// refreshEarly is how long before its end a token is renewed.
const refreshEarly = 30 * time.Second

// RoundTrip implements [http.RoundTripper]. It sends requests to origins other than the
// server's unchanged.
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
			// A refusal counts together with the address that it comes from. The address is
			// determined only now, so that other requests do not pay for it. A nonce is
			// answered, too.
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

// token returns the token to use, renewed if it expires soon.
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
		return t.grant.Token, t.proof, nil //nolint:nilerr // the server decides whether it still accepts the token
	}
	return t.grant.Token, t.proof, nil
}

// fresh reports whether a token does not expire soon, or never.
func fresh(tok *oauth2.Token) bool {
	return tok == nil || tok.Expiry.IsZero() || time.Until(tok.Expiry) > refreshEarly
}

// load reads the stored grant; the caller holds the turn.
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

// refresh renews the token with its refresh token; the caller holds the turn. Another process
// may have renewed it already.
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
		if ctx.Err() == nil { // otherwise the caller went away
			t.tired = time.Now()
		}
		return fmt.Errorf("the token could not be renewed: %w", err)
	}
	tok.RefreshToken = cmp.Or(tok.RefreshToken, g.Token.RefreshToken)
	g.Token = tok
	return t.keep(g)
}

// keep stores a grant; the caller holds the turn.
func (t *Transport) keep(g Grant) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.Store.Save(g); err != nil {
		return err
	}
	t.grant, t.loaded = g, t.Store.changed(t.Server)
	return nil
}

// renew finds a better token than the refused one. A nil token without an error means that
// there is nothing to renew.
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
		err = errors.New("the server requires more than the grant covers")
	}
	if err == nil {
		err = t.keep(g)
	}
	if err != nil {
		err = fmt.Errorf("authorization failed: %w", err)
		if ctx.Err() == nil { // otherwise the caller went away
			t.failed, t.why = time.Now(), err
		}
		return nil, nil, err
	}
	return t.grant.Token, nil, nil
}

// Renewed reports whether there is a grant that has not been used yet, after a new sign-in.
func (t *Transport) Renewed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := t.Store.changed(t.Server)
	return t.known && changed != t.loaded && !changed.IsZero()
}

// note stores the challenge of a refusal that no available token satisfies.
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
