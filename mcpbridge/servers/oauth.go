package servers

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/yaya-ai/yaya/internal/members"
)

// The OAuth grants for access to a server.
const (
	AuthorizationCode = "authorization_code" // a person signs in
	ClientCredentials = "client_credentials" // yaya itself, with a secret or a key
	JWTBearer         = "jwt_bearer"         // a workload's identity (SEP-1933)
	Enterprise        = "enterprise"         // an identity provider's assertion (SEP-990)
)

// OAuth is the configuration for authorization at a server.
type OAuth struct {
	Grant        string   `json:"grant,omitempty"` // default authorization_code
	ClientID     string   `json:"clientId,omitempty"`
	ClientSecret string   `json:"clientSecret,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
	// ClientMetadataURL is the URL of a client id metadata document that stands
	// for yaya (CIMD).
	ClientMetadataURL string `json:"clientMetadataUrl,omitempty"`
	// Issuer binds ClientID and ClientSecret to one authorization server.
	Issuer       string `json:"issuer,omitempty"`
	RedirectURI  string `json:"redirectUri,omitempty"`
	CallbackPort int    `json:"callbackPort,omitempty"`
	// PrivateKeyFile is a PEM file (PKCS #8) with the key that signs client
	// assertions.
	PrivateKeyFile   string `json:"privateKeyFile,omitempty"`
	SigningAlgorithm string `json:"signingAlgorithm,omitempty"` // default ES256
	// AssertionFile contains the JWT of the workload, or the id token of the enterprise's
	// identity provider; it is read again for every token.
	AssertionFile string `json:"assertionFile,omitempty"`
	IdPIssuer     string `json:"idpIssuer,omitempty"`
	IdPClientID   string `json:"idpClientId,omitempty"`
	IdPSecret     string `json:"idpClientSecret,omitempty"`
}

// check returns an error if the configuration is unusable.
func (c *OAuth) check() error {
	switch cmp.Or(c.Grant, AuthorizationCode) {
	case AuthorizationCode:
	case ClientCredentials:
		if c.ClientID == "" || (c.ClientSecret == "") == (c.PrivateKeyFile == "") {
			return errors.New("oauth: the grant client_credentials needs clientId, and clientSecret or privateKeyFile")
		}
	case JWTBearer:
		if c.ClientID == "" || c.AssertionFile == "" {
			return errors.New("oauth: the grant jwt_bearer needs clientId and assertionFile")
		}
	case Enterprise:
		if c.ClientID == "" || c.AssertionFile == "" || c.IdPIssuer == "" || c.IdPClientID == "" {
			return errors.New("oauth: the grant enterprise needs clientId, assertionFile, idpIssuer and idpClientId")
		}
	default:
		return fmt.Errorf("oauth: unknown grant %q", c.Grant)
	}
	if c.CallbackPort < 0 || c.CallbackPort > 65535 {
		return errors.New("oauth: callbackPort is not a port")
	}
	return nil
}

// strings returns the members that may contain variables.
func (c *OAuth) strings() []*string {
	out := []*string{
		&c.ClientID, &c.ClientSecret, &c.ClientMetadataURL, &c.Issuer, &c.RedirectURI, &c.PrivateKeyFile, &c.AssertionFile,
		&c.IdPIssuer, &c.IdPClientID, &c.IdPSecret,
	}
	for i := range c.Scopes {
		out = append(out, &c.Scopes[i])
	}
	return out
}

// oauth reads "oauth" and its foreign spellings; false switches it off.
func (e *entry) oauth() (c *OAuth, off bool) {
	v, key := e.get("oauth", "auth")
	if e.format == FormatCline {
		// There, "oauth" contains the client's tokens, which are not imported.
		v, key = e.get("oauthClient")
	}
	if v == "oauth" || v == "dynamic" { // it is discovered
		v = true
	}
	obj, ok := v.(map[string]any)
	switch {
	case v == false:
		return nil, true
	case key != "" && v != nil && v != true && !ok:
		e.bad(key, "an object, or false", v)
		return nil, false
	}
	in := &entry{obj: obj, used: map[string]bool{}, format: e.format}
	c = &OAuth{
		Grant: in.str("grant"), ClientID: in.str("clientId", "client_id", "CLIENT_ID"), ClientSecret: in.str("clientSecret", "client_secret", "CLIENT_SECRET"),
		ClientMetadataURL: in.str("clientMetadataUrl"), Issuer: in.str("issuer"), RedirectURI: in.str("redirectUri", "redirect_uri"),
		PrivateKeyFile: in.str("privateKeyFile"), SigningAlgorithm: in.str("signingAlgorithm"), AssertionFile: in.str("assertionFile"),
		IdPIssuer: in.str("idpIssuer"), IdPClientID: in.str("idpClientId"), IdPSecret: in.str("idpClientSecret"),
	}
	if v, ok := in.flag("enabled"); ok && !v {
		return nil, true
	}
	c.Scopes = scopes(in, "scopes", "scope", "oauthScopes")
	if beside := scopes(e, "scopes", "oauthScopes"); len(c.Scopes) == 0 {
		c.Scopes = beside
	}
	c.ClientID = cmp.Or(c.ClientID, e.str("oauth_client_id"))
	c.ClientSecret = cmp.Or(c.ClientSecret, e.str("oauth_client_secret"))
	c.CallbackPort = cmp.Or(in.whole("callbackPort"), e.whole("oauth_callback_port"))
	// Discovery finds the other members that clients configure.
	in.get("authServerMetadataUrl", "authorizationUrl", "tokenUrl", "tokenParamName", "xaa", "resource")
	e.get("oauth_resource")
	for _, k := range slices.Sorted(maps.Keys(obj)) {
		switch {
		case in.used[k]:
		case e.format == FormatYaya:
			in.errs = append(in.errs, fmt.Errorf("unknown key %q%s", "oauth."+k, members.Known(k, new(OAuth))))
		default:
			e.warn("unknown key %q is left out", "oauth."+k)
		}
	}
	e.rewrote = e.rewrote || in.rewrote
	e.errs = append(e.errs, in.errs...)
	if c.isZero() {
		return nil, false
	}
	if err := c.check(); err != nil {
		e.errs = append(e.errs, err)
	}
	return c, false
}

func (c *OAuth) isZero() bool {
	for _, s := range c.strings() {
		if *s != "" {
			return false
		}
	}
	return c.Grant == "" && c.CallbackPort == 0
}

// scopes reads a list, or a string of words.
func scopes(e *entry, keys ...string) []string {
	v, key := e.get(keys...)
	if s, ok := v.(string); ok {
		return strings.Fields(s)
	}
	if key == "" {
		return nil
	}
	return e.list(key)
}
