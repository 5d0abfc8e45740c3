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
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"os"
	"syscall"
	"time"

	"github.com/yaya-ai/yaya/internal/atomicfile"
	"github.com/yaya-ai/yaya/internal/control"
)

// Keys (DESIGN 4, AU-42).
const (
	tokenKeyBits = 3072
	serverFile   = "server.key"
	maxKeyFile   = 16 << 10
)

const (
	evSigningKey = "signing_key_added"
)

// signingKey is a key that verifies tokens.
type signingKey struct {
	public *rsa.PublicKey
	until  time.Time // zero for the one that signs
}

// signingKeyAdded is the payload of evSigningKey.
type signingKeyAdded struct {
	KeyID     string `json:"kid"`
	PublicKey []byte `json:"public_key"` // PKIX
	// Drop says that earlier keys verify nothing any more; else they do until the
	// last token signed with them has expired.
	Drop bool `json:"drop_earlier,omitempty"`
}

func tokenFile(kid string) string { return "token-" + kid + ".key" }

// readKey reads a private key. It refuses files that others can read, links, and
// what is not a whole key (AU-42).
func readKey(root *os.Root, name string) (any, error) {
	bad := func(why string, args ...any) (any, error) {
		return nil, fmt.Errorf("key file %s/%s: %s", root.Name(), name, fmt.Sprintf(why, args...))
	}
	st, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return bad("it is no regular file")
	}
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st, err = f.Stat(); err != nil {
		return nil, err
	}
	if mode := st.Mode(); !mode.IsRegular() || mode.Perm()&0o077 != 0 {
		return bad("its mode is %v, and others can get at it: chmod 600, or replace the key if they may have", mode)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile)) //nolint:forbidigo // bounded
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" || len(rest) != 0 {
		return bad("it is damaged: restore it, or remove it to begin anew with all devices")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return bad("it is damaged: %v", err)
	}
	return key, nil
}

func writeKey(root *os.Root, name string, key any) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	_, err = atomicfile.Write(root, name, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	return err
}

// loadServerKey reads or makes the key that this yaya is known by.
func loadServerKey(root *os.Root) (ed25519.PrivateKey, error) {
	st, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	if st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the folder of keys %s has mode %v, and others can get at it: chmod 700", root.Name(), st.Mode().Perm())
	}
	key, err := readKey(root, serverFile)
	if errors.Is(err, fs.ErrNotExist) {
		_, private, gerr := ed25519.GenerateKey(rand.Reader)
		if gerr != nil {
			return nil, gerr
		}
		return private, writeKey(root, serverFile, private)
	}
	if err != nil {
		return nil, err
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("key file %s/%s: it is no Ed25519 key", root.Name(), serverFile)
	}
	return private, nil
}

// ServerID is what this yaya is known by: the SHA-256 of its long-term public key
// in hexadecimal digits.
func (a *Authority) ServerID() string { return a.serverID }

func serverID(key ed25519.PrivateKey) string {
	pub, _ := key.Public().(ed25519.PublicKey)
	sum := sha256.Sum256(pub)
	return hex.EncodeToString(sum[:])
}

// codeHash is how the log knows the secret of an invitation: 40 bits could be
// found from a plain hash by whoever may read the audit, so a key is in it.
func (a *Authority) codeHash(id, secret string) [32]byte {
	m := hmac.New(sha256.New, a.codeKey)
	m.Write(record([]byte("yaya-invite-v1"), []byte(id), []byte(secret)))
	return [32]byte(m.Sum(nil))
}

// checkSigningKey reads the private key of the one that signs; without it no
// token can be issued (R11).
func (a *Authority) checkSigningKey() error {
	if a.signs == "" {
		return nil
	}
	key, err := readKey(a.cfg.Keys, tokenFile(a.signs))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the signing key %s/%s is missing: restore it, or make another with yaya device rotate-keys", a.cfg.Keys.Name(), tokenFile(a.signs))
	}
	if err != nil {
		return err
	}
	private, ok := key.(*rsa.PrivateKey)
	if !ok || private.N.BitLen() < tokenKeyBits {
		return fmt.Errorf("key file %s/%s: it is no RSA key of at least %d bits", a.cfg.Keys.Name(), tokenFile(a.signs), tokenKeyBits)
	}
	if !private.PublicKey.Equal(a.keys[a.signs].public) {
		return fmt.Errorf("key file %s/%s: it is another key than the one of that name", a.cfg.Keys.Name(), tokenFile(a.signs))
	}
	a.private = private
	return nil
}

// signer returns the key that signs, making the first one when it is needed.
func (a *Authority) signer(ctx context.Context) (string, *rsa.PrivateKey, error) {
	a.making.Lock()
	defer a.making.Unlock()
	a.mu.RLock()
	kid, private := a.signs, a.private
	a.mu.RUnlock()
	if private != nil {
		return kid, private, nil
	}
	if kid != "" {
		return "", nil, errors.New("the signing key is missing")
	}
	return a.makeKey(ctx, control.Owner, false)
}

// makeKey makes a signing key; making is held. The file comes first: a log that
// names a key without a file would stop the next start.
func (a *Authority) makeKey(ctx context.Context, actor string, drop bool) (string, *rsa.PrivateKey, error) {
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
	old := a.signs // changes under making only
	if _, err := a.log.Append(ctx, control.Change{Event: evSigningKey, Actor: actor, Target: kid, Payload: signingKeyAdded{kid, der, drop}}, nil); err != nil {
		return "", nil, errors.Join(err, a.cfg.Keys.Remove(tokenFile(kid)))
	}
	a.mu.Lock()
	a.private = private
	a.mu.Unlock()
	if old != "" {
		if err := a.cfg.Keys.Remove(tokenFile(old)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", nil, fmt.Errorf("the old signing key signs no more, but its file is still there: %w", err)
		}
	}
	return kid, private, nil
}

// RotateKeys makes a new signing key. Tokens of earlier ones are good until they
// expire, unless drop says that none of them is good from now on (AU-17). It needs
// [DevicesManage].
func (a *Authority) RotateKeys(ctx context.Context, actor Principal, drop bool) (kid string, err error) {
	if err := Allow(actor, DevicesManage); err != nil {
		return "", err
	}
	a.making.Lock()
	defer a.making.Unlock()
	kid, _, err = a.makeKey(ctx, actor.Actor(), drop)
	return kid, err
}

// applyKey takes in evSigningKey; mu is held.
func (a *Authority) applyKey(e control.Entry) error {
	var p signingKeyAdded
	if err := e.Decode(&p); err != nil {
		return err
	}
	key, err := x509.ParsePKIXPublicKey(p.PublicKey)
	if err != nil {
		return err
	}
	public, ok := key.(*rsa.PublicKey)
	if !ok {
		return fmt.Errorf("signing key %s is no RSA key", p.KeyID)
	}
	if p.Drop {
		clear(a.keys)
	}
	for kid, k := range a.keys {
		if k.until.IsZero() {
			k.until = e.Time.Add(a.cfg.TokenLife + leeway)
			a.keys[kid] = k
		}
	}
	a.keys[p.KeyID] = signingKey{public: public}
	a.signs, a.private = p.KeyID, nil
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
	if err != nil { // strings always can be marshalled
		return []byte(`{"keys":[]}`)
	}
	return out
}
