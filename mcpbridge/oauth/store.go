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

// Grant is what a server's authorization server has granted, and how to renew
// it.
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
	// Challenge is what the server last refused a request with, for the next
	// login to answer.
	Challenge *Challenge `json:"challenge,omitempty"`
}

// Challenge is a refusal of a server.
type Challenge struct {
	Status          int      `json:"status"`
	WWWAuthenticate []string `json:"www_authenticate,omitempty"`
	// From is the address that the refusal came from, as in [Grant].
	From netip.Addr `json:"from,omitzero"`
}

// Vault keeps what is sealed. Its methods are safe for concurrent use, also by several
// processes.
type Vault interface {
	// Record returns what is kept under a key, and when it was written; nil without one.
	Record(key string) ([]byte, time.Time, error)
	PutRecord(key string, data []byte) error
	DeleteRecord(key string) (found bool, err error)
}

// Store keeps grants in a vault. An earlier yaya has kept them in files of their own:
// [Store.Migrate] moves them, and until it has, they count. Its methods are safe for
// concurrent use, also by several processes.
type Store struct {
	// Learn is told the secrets of the grants that are loaded and saved, so that
	// they are shown nowhere. Optional; set before the store is used.
	Learn func(secrets ...string)

	vault Vault
	files *files
}

// NewStore keeps grants in a vault. root is the data folder, where files may be from
// before; the caller closes it.
func NewStore(root *os.Root, vault Vault) *Store { return &Store{vault: vault, files: newFiles(root)} }

// id is what a server's grant is kept by.
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
		err = errors.New("it is another server's")
	}
	if err != nil {
		return none, fmt.Errorf("the stored grant for %s: %w; forget it with yaya mcp logout, and log in again", server, err)
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
	data, err := json.Marshal(g) //nolint:gosec // it is sealed
	if err != nil {
		return err
	}
	err = s.vault.PutRecord(recordPrefix+id(g.Server), data)
	if err == nil {
		_, err = s.files.remove(id(g.Server))
	} else if ok, ferr := s.files.replace(id(g.Server), data); ok {
		err = ferr // what could not be moved goes on where it is
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
