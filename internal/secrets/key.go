package secrets

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/yaya-ai/yaya/internal/secretfile"
)

// KeyFile is the name of the file of the key, in the configuration folder.
const KeyFile = "secrets.key"

// PassphraseVariable is the environment variable with the path of the passphrase.
const PassphraseVariable = "YAYA_PASSPHRASE_FILE"

// Keychain is the keychain of the operating system. Its methods do not wait for ever.
type Keychain interface {
	// Get returns what is kept for an account. Without anything the error wraps
	// [fs.ErrNotExist]; any other says that there is no keychain that answers.
	Get(account string) (string, error)
	Set(account, value string) error
	Delete(account string) error
}

// maxPhrase bounds a passphrase, and minPhrase is the shortest, in bytes.
const (
	maxPhrase = 4096
	minPhrase = 8
)

// Kind says where the key of the file lies, in words; "" without a file. The file is not
// opened.
func (s *Store) Kind() (string, error) {
	data, _, err := readRegular(s.o.Data, File, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.Path(), err)
	}
	h, _, err := parse(data)
	if err != nil {
		return "", s.damaged(err)
	}
	return map[string]string{keyFile: s.keyPath(), keyKeychain: "the keychain", keyPassphrase: "the passphrase"}[h.Key], nil
}

func (s *Store) keyPath() string { return filepath.Join(s.o.KeyDir, KeyFile) }

// account is the name of this store in a keychain.
func (s *Store) account() string { return "secrets of " + s.o.Data.Name() }

// keyOf returns the key that a file was sealed with; mu is held.
func (s *Store) keyOf(h header) ([]byte, error) {
	id := string(h.ID)
	if key := s.keys[id]; key != nil {
		return key, nil
	}
	var key []byte
	var err error
	var other string // of another key
	switch h.Key {
	case keyPassphrase:
		if s.o.Passphrase == "" {
			return nil, fmt.Errorf("%s is sealed with a passphrase: set %s to the path of a file that has it", s.Path(), PassphraseVariable)
		}
		var phrase []byte
		if phrase, err = s.passphrase(); err == nil {
			key = h.KDF.key(phrase)
		}
		other = fmt.Sprintf("the passphrase in %s is not the one that %s is sealed with: put the right one there", s.o.Passphrase, s.Path())
	case keyKeychain:
		key, err = s.fromKeychain()
		other = fmt.Sprintf("the keychain has another key (%q) than %s is sealed with: restore the keychain, or move the file away and set the secrets again", s.account(), s.Path())
	default:
		key, err = s.readKey()
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s is sealed with the key %s, which is not there: restore it, or give the folder that has it with --config-dir; without it the secrets are lost: move %s away and set them again", s.Path(), s.keyPath(), File)
		}
		other = fmt.Sprintf("the key %s is not the one that %s is sealed with: restore the right one, or move %s away and set the secrets again", s.keyPath(), s.Path(), File)
	}
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(idOf(key), h.ID) != 1 {
		return nil, errors.New(other)
	}
	s.keys[id] = key
	return key, nil
}

// sealWith returns the header and the key for the next content of the file, whose header
// is was, nil without a file; mu is held, and the lock of the data folder.
func (s *Store) sealWith(was *header) (header, []byte, error) {
	if was != nil && (was.Key == keyPassphrase || s.o.Passphrase == "") {
		key, err := s.keyOf(*was)
		return *was, key, err
	}
	h := header{Version: version}
	var key []byte
	var err error
	if s.o.Passphrase != "" {
		var phrase []byte
		if phrase, err = s.passphrase(); err != nil {
			return header{}, nil, err
		}
		h.Key = keyPassphrase
		if h.KDF, err = s.o.cost.salted(); err != nil {
			return header{}, nil, err
		}
		key = h.KDF.key(phrase)
	} else if h.Key, key, err = s.newKey(); err != nil {
		return header{}, nil, err
	}
	h.ID = idOf(key)
	s.keys[string(h.ID)] = key
	return h, key, nil
}

// newKey returns a key for a file that is made: one that is there, or a fresh one.
func (s *Store) newKey() (kind string, key []byte, err error) {
	fresh := make([]byte, chacha20poly1305.KeySize)
	if _, err := rand.Read(fresh); err != nil {
		return "", nil, err
	}
	if key, err := s.readKey(); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return keyFile, key, err
	}
	if s.probe() {
		key, err := s.fromKeychain()
		if errors.Is(err, fs.ErrNotExist) {
			if err = s.o.Keychain.Set(s.account(), base64.StdEncoding.EncodeToString(fresh)); err == nil {
				key, err = s.fromKeychain()
			}
		}
		return keyKeychain, key, err
	}
	key, err = s.makeKey(fresh)
	return keyFile, key, err
}

// probe reports whether there is a keychain that keeps what it is given.
func (s *Store) probe() bool {
	if s.o.Keychain == nil {
		return false
	}
	account, value := "probe "+rand.Text(), rand.Text()
	if s.o.Keychain.Set(account, value) != nil {
		return false
	}
	got, err := s.o.Keychain.Get(account)
	return s.o.Keychain.Delete(account) == nil && err == nil && got == value
}

func (s *Store) fromKeychain() ([]byte, error) {
	if s.o.Keychain == nil {
		return nil, fmt.Errorf("%s is sealed with a key in the keychain, and this yaya uses none: the keychain is that of the default data folder, without --data-dir", s.Path())
	}
	text, err := s.o.Keychain.Get(s.account())
	if err != nil {
		return nil, fmt.Errorf("the key of %s lies in the keychain (%q), which does not give it: %w; unlock the keychain, or sign in to the desktop", s.Path(), s.account(), err)
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != chacha20poly1305.KeySize {
		return nil, fmt.Errorf("what the keychain has for %q is not a key of yaya", s.account())
	}
	return key, nil
}

func (s *Store) passphrase() ([]byte, error) {
	if s.phrase != nil { // a pipe gives it once
		return s.phrase, nil
	}
	raw, err := secretfile.Read(context.Background(), s.o.Passphrase, maxPhrase)
	if err != nil {
		return nil, fmt.Errorf("the passphrase (%s): %w", PassphraseVariable, err)
	}
	raw = bytes.TrimRight(raw, "\r\n")
	if len(raw) < minPhrase {
		return nil, fmt.Errorf("the passphrase in %s (%s) has %d bytes, %d at least", s.o.Passphrase, PassphraseVariable, len(raw), minPhrase)
	}
	s.phrase = raw
	return raw, nil
}

// readKey reads the file of the key. Without it the error wraps [fs.ErrNotExist].
func (s *Store) readKey() ([]byte, error) {
	root, err := os.OpenRoot(s.o.KeyDir)
	if err != nil {
		return nil, fmt.Errorf("the key of the secrets: %w", err)
	}
	defer func() { _ = root.Close() }()
	data, st, err := readRegular(root, KeyFile, 256)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.keyPath(), err)
	}
	if mode := st.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %v, and others can get at it: chmod 600 %[1]s, and change the secrets if somebody may have read it", s.keyPath(), mode)
	}
	key, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(data)))
	if err != nil || len(key) != chacha20poly1305.KeySize {
		return nil, fmt.Errorf("%s is damaged: restore it from a backup", s.keyPath())
	}
	return key, nil
}

// makeKey writes a key down, unless another process has just done so, and returns the one
// that is there then.
func (s *Store) makeKey(key []byte) ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, fmt.Errorf("the secrets need a key, and it cannot be made: %s: %w; let yaya write to that folder, name another with --config-dir, or give a passphrase (%s)", s.keyPath(), err, PassphraseVariable)
	}
	if err := os.MkdirAll(s.o.KeyDir, 0o700); err != nil { //nolint:forbidigo // the user names it
		return fail(err)
	}
	root, err := os.OpenRoot(s.o.KeyDir)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = root.Close() }()
	tmp := "." + KeyFile + "." + rand.Text()
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fail(err)
	}
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(key) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		// Unlike a rename a link never replaces: the folder may serve several data folders.
		if err = root.Link(tmp, KeyFile); errors.Is(err, fs.ErrExist) {
			err = nil
		}
	}
	if err = errors.Join(err, root.Remove(tmp)); err != nil {
		return fail(err)
	}
	dir, err := root.Open(".")
	if err != nil {
		return fail(err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fail(err)
	}
	return s.readKey()
}
