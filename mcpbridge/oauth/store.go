package oauth

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/oauth2"
)

// Grant is the authorization from a server's authorization server, with the data to renew it.
type Grant struct {
	Server       string           `json:"server"` // URL of the MCP server
	Issuer       string           `json:"issuer,omitempty"`
	Resource     string           `json:"resource,omitempty"`
	ClientID     string           `json:"client_id,omitempty"`
	ClientSecret string           `json:"client_secret,omitempty"`
	TokenURL     string           `json:"token_url,omitempty"`
	AuthStyle    oauth2.AuthStyle `json:"auth_style,omitempty"`
	Scopes       []string         `json:"scopes,omitempty"`
	Token        *oauth2.Token    `json:"token,omitempty"`
	// From is the address that the server had when it named TokenURL, for the guard
	// of renewals; it is zero when the server is reached through a proxy.
	From netip.Addr `json:"from,omitzero"`
	// DPoPKey is the private key that the token is bound to, in PKCS #8; empty for
	// a bearer token (RFC 9449).
	DPoPKey []byte `json:"dpop_key,omitempty"`
	// Challenge is the server's most recent refusal, for the next sign-in to answer.
	Challenge *Challenge `json:"challenge,omitempty"`
}

// Challenge is a refusal of a server.
type Challenge struct {
	Status          int      `json:"status"`
	WWWAuthenticate []string `json:"www_authenticate,omitempty"`
	// From is the address that the refusal came from, as in [Grant].
	From netip.Addr `json:"from,omitzero"`
}

// Vault stores sealed records. Its methods are safe for concurrent use, even by several
// processes.
type Vault interface {
	// Record returns the record under a key, and when it was written; nil if there is none.
	Record(key string) ([]byte, time.Time, error)
	PutRecord(key string, data []byte) error
	DeleteRecord(key string) (found bool, err error)
}

// Store keeps grants in a vault. Earlier versions of yaya kept them in separate files, which
// stay valid until [Store.Migrate] has moved them. Its methods are safe for concurrent use,
// even by several processes.
type Store struct {
	// Learn receives the secrets of the grants that are loaded and saved, so that they are
	// never shown. Optional; set it before the store is used.
	Learn func(secrets ...string)

	vault Vault
	files *files
}

// NewStore returns a store in a vault. root is the data folder, which may contain files of
// earlier versions; the caller closes it.
func NewStore(root *os.Root, vault Vault) *Store { return &Store{vault: vault, files: newFiles(root)} }

// id returns the id under which a server's grant is stored.
func id(server string) string {
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:16])
}

// recordPrefix begins the keys of grants in a vault.
const recordPrefix = "oauth/"

const maxGrant = 256 << 10

// Load returns the grant for a server, an empty one when there is none.
func (s *Store) Load(server string) (Grant, error) {
	none := Grant{Server: server}
	data, at, err := s.vault.Record(recordPrefix + id(server))
	file, changed, ferr := s.files.read(id(server))
	switch {
	case ferr != nil:
		return none, ferr
	case file != nil && (data == nil || changed.After(at)):
		data = file
	case err != nil:
		return none, fmt.Errorf("the stored grant for %s: %w", server, err)
	}
	if data == nil {
		return none, nil
	}
	g, err := parseGrant(data)
	if err == nil && g.Server != server {
		err = errors.New("it belongs to another server")
	}
	if err != nil {
		return none, fmt.Errorf("the stored grant for %s: %w (sign out with yaya mcp logout and sign in again)", server, err)
	}
	s.learn(g)
	return g, nil
}

func parseGrant(data []byte) (g Grant, err error) {
	err = json.Unmarshal(data, &g)
	return g, err
}

func (s *Store) learn(g Grant) {
	if s.Learn == nil {
		return
	}
	s.Learn(g.ClientSecret)
	if g.Token != nil {
		s.Learn(g.Token.AccessToken, g.Token.RefreshToken)
	}
}

// Save replaces the grant for a server.
func (s *Store) Save(g Grant) error {
	s.learn(g)
	data, err := json.Marshal(g) //nolint:gosec // the vault seals it
	if err != nil {
		return err
	}
	err = s.vault.PutRecord(recordPrefix+id(g.Server), data)
	if err == nil {
		_, err = s.files.remove(id(g.Server))
	} else if ok, ferr := s.files.replace(id(g.Server), data); ok {
		err = ferr // a grant that could not be moved stays in its file
	}
	if err != nil {
		return fmt.Errorf("keep the grant: %w", err)
	}
	return nil
}

// Forget deletes the grant for a server. It reports whether there was one.
func (s *Store) Forget(server string) (bool, error) {
	file, ferr := s.files.remove(id(server))
	kept, err := s.vault.DeleteRecord(recordPrefix + id(server))
	return file || kept, errors.Join(ferr, err)
}

// changed returns when the grant for a server was last written; zero when there
// is none.
func (s *Store) changed(server string) time.Time {
	_, at, err := s.vault.Record(recordPrefix + id(server))
	if err != nil {
		at = time.Time{}
	}
	if _, file, err := s.files.read(id(server)); err == nil && file.After(at) {
		return file
	}
	return at
}
