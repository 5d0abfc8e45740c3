package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// Answer is the result that the authorization server's redirect carries.
type Answer struct{ Code, State, Iss string }

// ReadAnswer reads the answer from the URL that the browser was redirected to.
func ReadAnswer(u *url.URL) (Answer, error) {
	q := u.Query()
	if e := q.Get("error"); e != "" {
		return Answer{}, fmt.Errorf("the authorization server refused: %s %s", clean(e), clean(q.Get("error_description")))
	}
	if q.Get("code") == "" {
		return Answer{}, errors.New("the URL contains no code")
	}
	return Answer{q.Get("code"), q.Get("state"), q.Get("iss")}, nil
}

// clean makes text from a server safe to show.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return -1
		}
		return r
	}, s)
	return s[:min(len(s), 200)]
}

// Login lets a person sign in. ask shows the page at the URL, and returns the answer with which
// the browser is redirected to redirect.
type Login struct {
	Transport *Transport
	Redirect  string
	Ask       func(ctx context.Context, page string) (Answer, error)
	// Version introduces yaya when it registers.
	Version string
}

// Run signs in: it asks the server for its requirements, unless they are known from an earlier
// refusal, and stores the grant. It returns false if the server requires no authorization.
func (l Login) Run(ctx context.Context) (bool, error) {
	t := l.Transport
	leave, err := t.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	if err := t.load(); err != nil {
		return false, err
	}
	old := t.grant
	challenge := old.Challenge
	if challenge == nil || !challenge.From.IsValid() {
		fresh, err := l.probe(ctx)
		switch {
		case err != nil:
			return false, err
		case fresh != nil:
			challenge = fresh
		case challenge == nil:
			return false, nil
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Server, nil)
	if err != nil {
		return false, err
	}
	resp := &http.Response{
		StatusCode: challenge.Status, Header: http.Header{"Www-Authenticate": challenge.WWWAuthenticate}, Body: io.NopCloser(strings.NewReader("")), Request: req,
	}
	var p *proof
	if slices.ContainsFunc(challenge.WWWAuthenticate, func(s string) bool { return strings.HasPrefix(strings.ToLower(s), "dpop") }) {
		if p, err = newProof(old.DPoPKey); err != nil {
			return false, err
		}
	}
	client := newGuard(t.Server, challenge.From, t.Config).client(p)
	g := Grant{Server: t.Server, From: challenge.From}
	h, err := l.handler(client, old, &g)
	if err != nil {
		return false, err
	}
	if err := h.Authorize(ctx, req, resp); err != nil {
		return false, err
	}
	if g.Token == nil {
		return false, errors.New("the authorization server granted nothing")
	}
	if f, err := discover(ctx, client, t.Server, resp.Header, nil); err == nil {
		g.Issuer, g.Resource = f.meta.Issuer, f.resource
	}
	if p != nil {
		if g.DPoPKey, err = p.marshal(); err != nil {
			return false, err
		}
	}
	if err := t.keep(g); err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.proof = p
	return true, nil
}

// handler returns the official SDK's flow, which fills g.
func (l Login) handler(client *http.Client, old Grant, g *Grant) (*auth.AuthorizationCodeHandler, error) {
	c := l.Transport.Config
	cfg := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: cmp.Or(c.RedirectURI, l.Redirect), RequestRefreshToken: true, Client: client,
		AuthorizationCodeFetcher: func(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			if err := CheckPage(args.URL); err != nil {
				return nil, err
			}
			a, err := l.Ask(ctx, args.URL)
			return &auth.AuthorizationResult{Code: a.Code, State: a.State, Iss: a.Iss}, err
		},
		ScopeFilter: func(found []string) []string {
			if len(c.Scopes) > 0 {
				found = c.Scopes
			}
			// Request the scopes granted before, too: a new grant adds scopes and replaces
			// none.
			for _, s := range old.Scopes {
				if old.Challenge != nil && old.Challenge.Status == http.StatusForbidden && !slices.Contains(found, s) {
					found = append(found, s)
				}
			}
			return found
		},
		NewTokenSource: func(_ context.Context, o *oauth2.Config, tok *oauth2.Token) (oauth2.TokenSource, error) {
			g.ClientID, g.ClientSecret, g.TokenURL, g.AuthStyle = o.ClientID, o.ClientSecret, o.Endpoint.TokenURL, o.Endpoint.AuthStyle
			g.Scopes, g.Token = o.Scopes, tok
			if s, ok := tok.Extra("scope").(string); ok && s != "" {
				g.Scopes = strings.Fields(s)
			}
			return oauth2.StaticTokenSource(tok), nil
		},
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "yaya", SoftwareID: "github.com/yaya-ai/yaya", SoftwareVersion: l.Version,
			RedirectURIs: []string{cmp.Or(c.RedirectURI, l.Redirect)}, GrantTypes: []string{"authorization_code", "refresh_token"},
			ResponseTypes: []string{"code"}, TokenEndpointAuthMethod: "none",
		}},
	}
	if c.ClientMetadataURL != "" {
		cfg.ClientIDMetadataDocumentConfig = &auth.ClientIDMetadataDocumentConfig{URL: c.ClientMetadataURL}
	}
	if c.ClientID != "" {
		cfg.PreregisteredClient = &oauthex.ClientCredentials{ClientID: c.ClientID, Issuer: c.Issuer}
		if c.ClientSecret != "" {
			cfg.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: c.ClientSecret}
		}
	}
	return auth.NewAuthorizationCodeHandler(cfg)
}

// probe sends the server any request, to learn its requirements from the refusal.
func (l Login) probe(ctx context.Context) (*Challenge, error) {
	const body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"yaya","version":"0"}}}`
	t := l.Transport
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Server, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if tok := t.grant.Token; tok != nil && t.proof == nil {
		req.Header.Set("Authorization", "Bearer "+tok.AccessToken)
	}
	resp, from, err := traced(t.Next, req)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized && resp.StatusCode != http.StatusForbidden {
		return nil, nil //nolint:nilnil // the server requires no authorization
	}
	return &Challenge{resp.StatusCode, resp.Header.Values("WWW-Authenticate"), from}, nil
}
