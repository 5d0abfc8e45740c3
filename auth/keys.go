package auth

import (
	"context"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"time"

	"github.com/yaya-ai/yaya/control"
	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/keyfile"
)

// Keys that yaya generates for itself.
const (
	tokenKeyBits = 3072
	// ServerKeyFile is the name of this yaya's identity key.
	ServerKeyFile = "server.key"
)

// remedyTokenKey is the remedy for a damaged key that signs tokens.
const remedyTokenKey = "move the file away, and yaya makes another key (yaya repair does so if the file is damaged); devices and tokens stay valid"

const (
	evSigningKey = "signing_key_added"
)

// signingKey is a key that verifies tokens.
type signingKey struct {
	public *rsa.PublicKey
	until  time.Time // zero for one that signs
	node   string    // that it signs for
}

// signingKeyAdded is the payload of evSigningKey.
type signingKeyAdded struct {
	KeyID     string `json:"kid"`
	PublicKey []byte `json:"public_key"` // PKIX
	// Node is the node that signs with it.
	Node string `json:"node,omitempty"`
	// All retires the keys of other nodes, too, which make new ones.
	All bool `json:"all_nodes,omitempty"`
	// Drop retires earlier keys at once; else they verify tokens until the last one
	// signed with them has expired.
	Drop bool `json:"drop_earlier,omitempty"`
}

func tokenFile(kid string) string { return "token-" + kid + ".key" }

// writeKey stores a private key durably.
func writeKey(root *os.Root, name string, key any) error {
	data, err := keyfile.Marshal(key)
	if err != nil {
		return err
	}
	_, err = atomicfile.Write(root, name, data)
	return err
}

// loadServerKey reads this yaya's identity key, or creates it unless there must be
// one: with a new key, devices would take this yaya for another.
func loadServerKey(root *os.Root, mustExist bool) (ed25519.PrivateKey, error) {
	if err := keyfile.CheckFolder(root); err != nil {
		return nil, err
	}
	key, err := keyfile.Read(root, ServerKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		if mustExist {
			return nil, fmt.Errorf("the key %s/%s is missing, and this yaya has data that depends on it: restore it from a backup; to begin again without one, move the folders control and keys out of the data directory, and enroll every device again", root.Name(), ServerKeyFile)
		}
		_, private, gerr := ed25519.GenerateKey(rand.Reader)
		if gerr != nil {
			return nil, gerr
		}
		return private, writeKey(root, ServerKeyFile, private)
	}
	if err != nil {
		return nil, err
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("key file %s/%s: it is not an Ed25519 key", root.Name(), ServerKeyFile)
	}
	return private, nil
}

// ServerID returns the identity of this yaya: the SHA-256 of its long-term public
// key in hexadecimal digits.
func (a *Authority) ServerID() string { return a.serverID }

// Identity returns the identity key, which the nodes of a cluster share. It goes to nobody else.
func (a *Authority) Identity() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(a.codeKey) }

func serverID(key ed25519.PrivateKey) string {
	pub, _ := key.Public().(ed25519.PublicKey)
	sum := sha256.Sum256(pub)
	return hex.EncodeToString(sum[:])
}

// codeHash returns the form of an invitation's secret in the log. It is a keyed
// hash, because a reader of the audit could find 40 bits from a plain one.
func (a *Authority) codeHash(id, secret string) [32]byte {
	m := hmac.New(sha256.New, a.codeKey)
	m.Write(record([]byte("yaya-invite-v1"), []byte(id), []byte(secret)))
	return [32]byte(m.Sum(nil))
}

// checkSigningKey reads the private key that signs. It accepts that the file is gone: the
// next token is signed with another one, and earlier ones stay valid.
func (a *Authority) checkSigningKey() error {
	if a.signs == "" {
		return nil
	}
	name := tokenFile(a.signs)
	key, err := keyfile.Read(a.cfg.Keys, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w; %s", err, remedyTokenKey)
	}
	private, ok := key.(*rsa.PrivateKey)
	if !ok || private.N.BitLen() < tokenKeyBits {
		return fmt.Errorf("key file %s/%s: it is not an RSA key of at least %d bits; %s", a.cfg.Keys.Name(), name, tokenKeyBits, remedyTokenKey)
	}
	if !private.PublicKey.Equal(a.keys[a.signs].public) {
		return fmt.Errorf("key file %s/%s: it is another key than the one of that name; %s", a.cfg.Keys.Name(), name, remedyTokenKey)
	}
	a.private = private
	return nil
}

// signer returns the key that signs. It creates the first one when it is needed, and
// another one if the file is missing.
func (a *Authority) signer(ctx context.Context) (string, *rsa.PrivateKey, error) {
	a.making.Lock()
	defer a.making.Unlock()
	a.mu.RLock()
	kid, private := a.signs, a.private // nil if its file is missing
	a.mu.RUnlock()
	if private != nil {
		return kid, private, nil
	}
	return a.makeKey(ctx, control.Owner, false, false)
}

// makeKey creates a signing key for this node; making is held. It writes the file first: a
// log that names a key without a file would stop the next start. If it rotates, other nodes make
// new keys as well.
func (a *Authority) makeKey(ctx context.Context, actor string, rotates, drop bool) (string, *rsa.PrivateKey, error) {
	private, err := a.cfg.GenerateKey()
	if err != nil {
		return "", nil, err
	}
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		return "", nil, err
	}
	sum := sha256.Sum256(der)
	kid := hex.EncodeToString(sum[:8])
	if err := writeKey(a.cfg.Keys, tokenFile(kid), private); err != nil {
		return "", nil, fmt.Errorf("%w: %w", control.ErrUnavailable, err)
	}
	payload := signingKeyAdded{kid, der, a.cfg.Node, rotates && a.cfg.Node != "", drop}
	if _, err := a.log.Append(ctx, control.Change{Event: evSigningKey, Actor: actor, Target: kid, Payload: payload}, nil); err != nil {
		return "", nil, errors.Join(err, a.cfg.Keys.Remove(tokenFile(kid)))
	}
	a.mu.Lock()
	if a.signs == kid { // no other node has retired it yet
		a.private = private
	}
	a.mu.Unlock()
	return kid, private, a.removeOldKeys(kid)
}

// removeOldKeys removes the files of the keys that this node no longer signs with.
func (a *Authority) removeOldKeys(signs string) error {
	files, err := fs.Glob(a.cfg.Keys.FS(), tokenFile("*"))
	for _, name := range files {
		if name != tokenFile(signs) {
			err = errors.Join(err, a.cfg.Keys.Remove(name))
		}
	}
	if err != nil {
		return fmt.Errorf("an old signing key signs no more, but its file is still there: %w", err)
	}
	return nil
}

// RotateKeys creates a new signing key, on each node. Tokens of earlier keys stay valid until
// they expire, unless drop invalidates all of them at once. It needs
// [DevicesManage].
func (a *Authority) RotateKeys(ctx context.Context, actor Principal, drop bool) (kid string, err error) {
	if err := Allow(actor, DevicesManage); err != nil {
		return "", err
	}
	a.making.Lock()
	defer a.making.Unlock()
	kid, _, err = a.makeKey(ctx, actor.Actor(), true, drop)
	return kid, err
}

// applyKey applies evSigningKey; mu is held.
func (a *Authority) applyKey(e control.Entry) error {
	var p signingKeyAdded
	if err := e.Decode(&p); err != nil {
		return err
	}
	public, err := rsaKey(p.PublicKey)
	if err != nil {
		return fmt.Errorf("signing key %s: %w", p.KeyID, err)
	}
	if p.Drop {
		clear(a.keys)
		a.newest = time.Time{}
		a.clock.reset() // no token of it is left that could become valid again
	}
	all := p.All || p.Node == "" // who is alone has no others
	for kid, k := range a.keys {
		if k.until.IsZero() && (all || k.node == p.Node || k.node == "") {
			k.until = e.Time.Add(a.cfg.TokenLife + leeway)
			a.keys[kid] = k
		}
	}
	a.keys[p.KeyID] = signingKey{public: public, node: p.Node}
	if p.Node == a.cfg.Node {
		a.signs, a.private = p.KeyID, nil
	} else if k, ok := a.keys[a.signs]; !ok || !k.until.IsZero() {
		a.signs, a.private = "", nil
	}
	return nil
}

// JWKS returns the keys that verify tokens of this yaya (RFC 7517).
func (a *Authority) JWKS() []byte {
	type entry struct {
		Type string `json:"kty"`
		Use  string `json:"use"`
		Alg  string `json:"alg"`
		ID   string `json:"kid"`
		N    string `json:"n"`
		E    string `json:"e"`
	}
	set := struct {
		Keys []entry `json:"keys"`
	}{[]entry{}}
	now := a.cfg.Now()
	a.mu.RLock()
	for kid, k := range a.keys {
		if k.until.IsZero() || now.Before(k.until) {
			b64 := base64.RawURLEncoding.EncodeToString
			set.Keys = append(set.Keys, entry{"RSA", "sig", "RS256", kid, b64(k.public.N.Bytes()), b64(big.NewInt(int64(k.public.E)).Bytes())})
		}
	}
	a.mu.RUnlock()
	out, err := json.Marshal(set)
	if err != nil { // strings can always be marshalled
		return []byte(`{"keys":[]}`)
	}
	return out
}
