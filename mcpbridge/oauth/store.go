package oauth

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/yaya-ai/yaya/internal/atomicfile"
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

// Store keeps grants in files below a folder. Its methods are safe for concurrent
// use, also by several processes.
type Store struct {
	// Learn is told the secrets of the grants that are loaded and saved, so that
	// they are shown nowhere. Optional; set before the store is used.
	Learn func(secrets ...string)

	root *os.Root
	mu   sync.Mutex
}

const folder = "oauth"

// NewStore keeps grants below root, which the caller closes.
func NewStore(root *os.Root) *Store { return &Store{root: root} }

func name(server string) string {
	sum := sha256.Sum256([]byte(server))
	return hex.EncodeToString(sum[:16]) + ".json"
}

func file(server string) string { return folder + "/" + name(server) }

const maxGrant = 256 << 10

// Load returns the grant for a server, an empty one when there is none.
func (s *Store) Load(server string) (Grant, error) {
	g := Grant{Server: server}
	info, err := s.root.Stat(file(server))
	if errors.Is(err, fs.ErrNotExist) {
		return g, nil
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		return g, fmt.Errorf("%s can be read by others; make it private with chmod 600, or delete it and log in again", s.path(server))
	}
	if err == nil && info.Size() > maxGrant {
		err = errors.New("it is too large")
	}
	var data []byte
	if err == nil {
		data, err = s.root.ReadFile(file(server))
	}
	if err == nil {
		err = json.Unmarshal(data, &g)
	}
	if err == nil && g.Server != server {
		err = errors.New("it is another server's")
	}
	if err != nil {
		return Grant{Server: server}, fmt.Errorf("the stored grant %s: %w", s.path(server), err)
	}
	s.learn(g)
	return g, nil
}

func (s *Store) path(server string) string { return s.root.Name() + "/" + file(server) }

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
	s.mu.Lock()
	defer s.mu.Unlock()
	data, err := json.MarshalIndent(g, "", "  ") //nolint:gosec // this is the file where secrets lie
	if err != nil {
		return err
	}
	if err := s.root.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("keep the grant: %w", err)
	}
	dir, err := s.root.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("keep the grant: %w", err)
	}
	_, err = atomicfile.Write(dir, name(g.Server), data)
	if err = errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("keep the grant: %w", err)
	}
	return nil
}

// Forget deletes the grant for a server. It reports whether there was one.
func (s *Store) Forget(server string) (bool, error) {
	err := s.root.Remove(file(server))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// changed returns when the grant for a server was last written; zero when there
// is none.
func (s *Store) changed(server string) time.Time {
	info, err := s.root.Stat(file(server))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
