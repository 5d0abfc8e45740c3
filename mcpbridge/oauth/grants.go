package oauth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/yaya-ai/yaya/internal/secretfile"
	"github.com/yaya-ai/yaya/mcpbridge/servers"
)

// Config says how to get authorization for a server. The zero value means: discover the
// authorization server, register, and let a person sign in.
type Config struct{ servers.OAuth }

// found is the result of discovery.
type found struct {
	resource string
	meta     *oauthex.AuthServerMeta
	scopes   []string // to request
}

// discover finds the authorization server of a protected resource (RFC 9728, RFC
// 8414).
func discover(ctx context.Context, client *http.Client, server string, header http.Header, configured []string) (found, error) {
	challenges, err := oauthex.ParseWWWAuthenticate(header.Values("WWW-Authenticate"))
	if err != nil {
		return found{}, fmt.Errorf("WWW-Authenticate: %w", err)
	}
	u, err := url.Parse(server)
	if err != nil {
		return found{}, err
	}
	at := func(path string) string { return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}).String() }
	root := (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
	const known = "/.well-known/oauth-protected-resource"
	tries := [][2]string{{at(known + "/" + strings.TrimLeft(u.Path, "/")), server}, {at(known), root}}
	f := found{resource: server, scopes: configured}
	for _, c := range challenges {
		if m := c.Params["resource_metadata"]; m != "" {
			tries = append([][2]string{{m, server}}, tries...)
		}
		if s := c.Params["scope"]; s != "" && len(f.scopes) == 0 {
			f.scopes = strings.Fields(s)
		}
	}
	issuer := root
	for _, try := range tries {
		prm, err := oauthex.GetProtectedResourceMetadata(ctx, try[0], try[1], client)
		if errors.Is(err, ErrPrivate) {
			return found{}, err
		}
		if err != nil || prm == nil {
			continue
		}
		if len(prm.AuthorizationServers) == 0 {
			return found{}, errors.New("the server's metadata names no authorization server")
		}
		issuer = prm.AuthorizationServers[0]
		f.resource = prm.Resource
		if len(f.scopes) == 0 {
			f.scopes = prm.ScopesSupported
		}
		break
	}
	if f.meta, err = auth.GetAuthServerMetadata(ctx, issuer, client); err != nil {
		return found{}, fmt.Errorf("the metadata of the authorization server %s: %w", issuer, err)
	}
	if f.meta == nil { // before 2025-06-18
		f.meta = &oauthex.AuthServerMeta{Issuer: issuer, AuthorizationEndpoint: issuer + "/authorize", TokenEndpoint: issuer + "/token"}
	}
	return f, nil
}

// obtain gets a token without a person.
func (c Config) obtain(ctx context.Context, client *http.Client, server string, header http.Header) (Grant, error) {
	f, err := discover(ctx, client, server, header, c.Scopes)
	if err != nil {
		return Grant{}, err
	}
	if c.Issuer != "" && strings.TrimSuffix(c.Issuer, "/") != strings.TrimSuffix(f.meta.Issuer, "/") {
		return Grant{}, fmt.Errorf("the server's authorization server is %s, but its credentials are for %s", f.meta.Issuer, c.Issuer)
	}
	style := oauth2.AuthStyleInHeader
	if methods := f.meta.TokenEndpointAuthMethodsSupported; c.ClientSecret == "" || (slices.Contains(methods, "client_secret_post") && !slices.Contains(methods, "client_secret_basic")) {
		style = oauth2.AuthStyleInParams
	}
	cfg := &oauth2.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: f.meta.TokenEndpoint, AuthStyle: style}}
	params := map[string]string{"resource": f.resource}
	if len(f.scopes) > 0 {
		params["scope"] = strings.Join(f.scopes, " ")
	}
	const bearerGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer" //nolint:gosec // a name
	switch c.Grant {
	case servers.ClientCredentials:
		params["grant_type"] = servers.ClientCredentials
		if c.PrivateKeyFile != "" {
			params["client_assertion_type"] = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
			if params["client_assertion"], err = c.assertion(ctx, f.meta.Issuer); err != nil {
				return Grant{}, err
			}
		}
	case servers.JWTBearer:
		params["grant_type"] = bearerGrant
		if params["assertion"], err = readSecret(ctx, c.AssertionFile); err != nil {
			return Grant{}, err
		}
	case servers.Enterprise:
		params["grant_type"] = bearerGrant
		if params["assertion"], err = c.identity(ctx, client, f); err != nil {
			return Grant{}, err
		}
	default:
		return Grant{}, fmt.Errorf("the grant %q needs a person", c.Grant)
	}
	opts := make([]oauth2.AuthCodeOption, 0, len(params))
	for k, v := range params {
		opts = append(opts, oauth2.SetAuthURLParam(k, v))
	}
	token, err := cfg.Exchange(context.WithValue(ctx, oauth2.HTTPClient, client), "", opts...)
	if err != nil {
		return Grant{}, fmt.Errorf("the token request failed: %w", err)
	}
	return Grant{
		Server: server, Issuer: f.meta.Issuer, Resource: f.resource, ClientID: c.ClientID, TokenURL: f.meta.TokenEndpoint, AuthStyle: style,
		Scopes: f.scopes, Token: token,
	}, nil
}

// assertion signs a JWT that authenticates the client (RFC 7523).
func (c Config) assertion(ctx context.Context, audience string) (string, error) {
	text, err := readSecret(ctx, c.PrivateKeyFile)
	if err != nil {
		return "", err
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return "", fmt.Errorf("%s is not a PEM file", c.PrivateKeyFile)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.PrivateKeyFile, err)
	}
	method := jwt.GetSigningMethod(cmp.Or(c.SigningAlgorithm, "ES256"))
	if method == nil || method == jwt.SigningMethodNone {
		return "", fmt.Errorf("oauth: unknown signing algorithm %q", c.SigningAlgorithm)
	}
	now := time.Now()
	return jwt.NewWithClaims(method, jwt.RegisteredClaims{
		Issuer: c.ClientID, Subject: c.ClientID, Audience: jwt.ClaimStrings{audience}, ID: rand.Text(),
		IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(now.Add(time.Minute)),
	}).SignedString(key)
}

// identity exchanges the id token of the enterprise's identity provider for an
// assertion that the server's authorization server takes (SEP-990).
func (c Config) identity(ctx context.Context, client *http.Client, f found) (string, error) {
	idToken, err := readSecret(ctx, c.AssertionFile)
	if err != nil {
		return "", err
	}
	endpoint, err := tokenEndpoint(ctx, client, c.IdPIssuer)
	if err != nil {
		return "", fmt.Errorf("the identity provider %s: %w", c.IdPIssuer, err)
	}
	creds := &oauthex.ClientCredentials{ClientID: c.IdPClientID}
	if c.IdPSecret != "" {
		creds.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: c.IdPSecret}
	}
	t, err := oauthex.ExchangeToken(ctx, endpoint, &oauthex.TokenExchangeRequest{
		RequestedTokenType: oauthex.TokenTypeIDJAG, Audience: f.meta.Issuer, Resource: f.resource, Scope: f.scopes,
		SubjectToken: idToken, SubjectTokenType: oauthex.TokenTypeIDToken,
	}, creds, client)
	if err != nil {
		return "", fmt.Errorf("the identity provider %s: %w", c.IdPIssuer, err)
	}
	return t.AccessToken, nil
}

// tokenEndpoint finds the token endpoint of an identity provider (OpenID Connect
// Discovery 1.0, RFC 8414). The SDK's discovery asks for PKCE, which has no
// meaning where no browser is involved.
func tokenEndpoint(ctx context.Context, client *http.Client, issuer string) (string, error) {
	var failed error
	for _, path := range []string{"/.well-known/openid-configuration", "/.well-known/oauth-authorization-server"} {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(issuer, "/")+path, nil)
		if err != nil {
			return "", err
		}
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		var meta struct {
			Issuer        string `json:"issuer"`
			TokenEndpoint string `json:"token_endpoint"`
		}
		err = json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&meta)
		_ = resp.Body.Close()
		switch {
		case resp.StatusCode != http.StatusOK:
			failed = fmt.Errorf("its metadata: HTTP %s", resp.Status)
			continue
		case err != nil:
			return "", fmt.Errorf("its metadata: %w", err)
		case strings.TrimSuffix(meta.Issuer, "/") != strings.TrimSuffix(issuer, "/"):
			return "", fmt.Errorf("its metadata is that of %q", clean(meta.Issuer))
		}
		return meta.TokenEndpoint, CheckPage(meta.TokenEndpoint)
	}
	return "", failed
}

func readSecret(ctx context.Context, path string) (string, error) {
	data, err := secretfile.Read(ctx, path, 64<<10)
	return strings.TrimSpace(string(data)), err
}
