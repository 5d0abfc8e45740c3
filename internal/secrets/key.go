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
	"github.com/yaya-ai/yaya/internal/worded"
)

// KeyFile is the name of the file of the key, in the configuration folder.
const KeyFile = "secrets.key"

// PassphraseVariable is the environment variable with the path of the passphrase.
const PassphraseVariable = "YAYA_PASSPHRASE_FILE"

// Keychain is the keychain of the operating system. Its methods do not wait forever, and
// end when ctx does.
type Keychain interface {
	// Get returns the value of an account. If there is none, the error wraps
	// [fs.ErrNotExist]; any other error means that no keychain answers.
	Get(ctx context.Context, account string) (string, error)
	Set(ctx context.Context, account, value string) error
	Delete(ctx context.Context, account string) error
}

// maxPhrase bounds a passphrase, and minPhrase is the shortest, in bytes.
const (
	maxPhrase = 4096
	minPhrase = 8
)

// ByPassphrase is the kind of a file that a passphrase seals.
const ByPassphrase = "the passphrase"

// SealedWith says with what a file is sealed, whose kind that is.
func SealedWith(kind string) string {
	if kind == ByPassphrase {
		return "sealed with " + kind
	}
	return "sealed with the key in " + kind
}

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
	return map[string]string{keyFile: s.keyPath(s.keyFileOf(h)), keyKeychain: "the keychain", keyPassphrase: ByPassphrase}[h.Key], nil
}

func (s *Store) keyPath(name string) string { return filepath.Join(s.o.KeyDir, name) }

// account is the name of this store in a keychain.
func (s *Store) account() string { return "secrets of " + s.o.Data.Name() }

// keyOf returns the key that a file was sealed with. Concurrent callers share one request:
// a keychain that hangs delays them once, not one after the other. Each waits until its
// own ctx ends, and the request ends when nobody waits.
func (s *Store) keyOf(ctx context.Context, h header) ([]byte, error) {
	id := string(h.ID)
	s.mu.Lock()
	if key := s.keys[id]; key != nil {
		s.mu.Unlock()
		return key, nil
	}
	f := s.fetching[id]
	if f == nil {
		asked, cancel := context.WithCancel(context.WithoutCancel(ctx))
		f = &fetch{done: make(chan struct{}), cancel: cancel}
		s.fetching[id] = f
		go func() {
			defer cancel()
			key, err := s.fetchKey(asked, h)
			s.fetched(id, f, key, err)
		}()
	}
	f.waiting++
	s.mu.Unlock()
	select {
	case <-f.done:
		return f.key, f.err
	case <-ctx.Done():
	}
	if s.leave(id, f) {
		return nil, worded.Error(ctx.Err(), "the key of %s has not come in time: it may wait for you to unlock it", s.Path())
	}
	if <-f.done; f.err != nil {
		return nil, fmt.Errorf("%w: %w", ctx.Err(), f.err)
	}
	return f.key, nil
}

// leave takes one off those that wait for a key, and reports whether others do. The last
// one ends the question, and waits for its end.
func (s *Store) leave(id string, f *fetch) (others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.waiting--; f.waiting > 0 {
		return true
	}
	f.cancel()
	if s.fetching[id] == f { // who comes now asks again
		delete(s.fetching, id)
	}
	return false
}

// fetched gives waiting callers the result of a request.
func (s *Store) fetched(id string, f *fetch, key []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.keys[id] = key
	}
	if s.fetching[id] == f {
		delete(s.fetching, id)
	}
	f.key, f.err = key, err
	close(f.done)
}

// fetchKey is keyOf without a memory.
func (s *Store) fetchKey(ctx context.Context, h header) ([]byte, error) {
	var key []byte
	var err error
	var other string // of another key
	switch h.Key {
	case keyPassphrase:
		if s.o.Passphrase == "" {
			return nil, fmt.Errorf("%s is sealed with a passphrase; set %s to the path of a file that has it", s.Path(), PassphraseVariable)
		}
		var phrase []byte
		if phrase, err = s.passphrase(ctx); err == nil {
			key = h.KDF.key(phrase)
		}
		other = fmt.Sprintf("the passphrase in %s is not the one that %s is sealed with: put the right one there", s.o.Passphrase, s.Path())
	case keyKeychain:
		account := s.account()
		key, err = s.fromKeychain(ctx, account)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !bytes.Equal(idOf(key), h.ID) { // it was rekeyed
			next, nerr := s.fromKeychain(ctx, s.accountOf(h))
			if nerr == nil || !errors.Is(nerr, fs.ErrNotExist) {
				key, err = next, nerr
			}
		}
		other = fmt.Sprintf("the keychain has another key (%q) than %s is sealed with: restore the keychain, or move the file away and set the secrets again", account, s.Path())
	default:
		name := s.keyFileOf(h)
		path := s.keyPath(name)
		key, err = s.readKey(name)
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s is sealed with the key %s, which is not there: restore it (%s, if yaya secret rekey made it), or give the folder that has it with --config-dir; without it the secrets are lost: move %s away and set them again", s.Path(), path, rekeyedFile(h), File)
		}
		other = fmt.Sprintf("the key %s is not the one that %s is sealed with: restore the right one (%s, if yaya secret rekey made it), or move %s away and set the secrets again", path, s.Path(), rekeyedFile(h), File)
	}
	if err != nil {
		return nil, err
	}
	if subtle.ConstantTimeCompare(idOf(key), h.ID) != 1 {
		return nil, errors.New(other)
	}
	return key, nil
}

// sealWith returns the header and the key for the next content of the file, whose header
// is was, nil without a file; the lock of the data folder is held.
func (s *Store) sealWith(ctx context.Context, was *header) (header, []byte, error) {
	if was != nil && (was.Key == keyPassphrase || s.o.Passphrase == "") {
		key, err := s.keyOf(ctx, *was)
		return *was, key, err
	}
	h, key, err := s.freshHeader(ctx)
	if err != nil {
		return header{}, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[string(h.ID)] = key
	return h, key, nil
}

// freshHeader returns the header and the key of a file that is sealed with the
// passphrase, or else with a key of its own.
func (s *Store) freshHeader(ctx context.Context) (header, []byte, error) {
	h := header{Version: version}
	var key []byte
	var err error
	if s.o.Passphrase != "" {
		var phrase []byte
		if phrase, err = s.passphrase(ctx); err != nil {
			return header{}, nil, err
		}
		h.Key = keyPassphrase
		if h.KDF, err = s.o.cost.salted(); err != nil {
			return header{}, nil, err
		}
		key = h.KDF.key(phrase)
	} else if h.Key, key, err = s.newKey(ctx); err != nil {
		return header{}, nil, err
	}
	h.ID = idOf(key)
	return h, key, nil
}

// newKey returns a key for a file that is made: one that is there, or a fresh one.
func (s *Store) newKey(ctx context.Context) (kind string, key []byte, err error) {
	fresh := make([]byte, chacha20poly1305.KeySize)
	if _, err := rand.Read(fresh); err != nil {
		return "", nil, err
	}
	if key, err := s.readKey(KeyFile); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return keyFile, key, err
	}
	if s.probe(ctx) {
		key, err := s.fromKeychain(ctx, s.account())
		if errors.Is(err, fs.ErrNotExist) {
			if err = s.o.Keychain.Set(ctx, s.account(), base64.StdEncoding.EncodeToString(fresh)); err == nil {
				key, err = s.fromKeychain(ctx, s.account())
			}
		}
		return keyKeychain, key, err
	}
	key, err = s.makeKey(KeyFile, fresh)
	return keyFile, key, err
}

// probe reports whether there is a keychain that keeps what it is given.
func (s *Store) probe(ctx context.Context) bool {
	if s.o.Keychain == nil {
		return false
	}
	account, value := "probe "+rand.Text(), rand.Text()
	if s.o.Keychain.Set(ctx, account, value) != nil {
		return false
	}
	got, err := s.o.Keychain.Get(ctx, account)
	return s.o.Keychain.Delete(ctx, account) == nil && err == nil && got == value
}

func (s *Store) fromKeychain(ctx context.Context, account string) ([]byte, error) {
	if s.o.Keychain == nil {
		return nil, fmt.Errorf("%s is sealed with a key in the keychain, and this yaya uses none: the keychain is that of the default data folder, without --data-dir", s.Path())
	}
	text, err := s.o.Keychain.Get(ctx, account)
	if err != nil {
		return nil, fmt.Errorf("the key of %s lies in the keychain (%q), which does not give it: %w; unlock the keychain, or sign in to the desktop", s.Path(), account, err)
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != chacha20poly1305.KeySize {
		return nil, fmt.Errorf("what the keychain has for %q is not a key of yaya", account)
	}
	return key, nil
}

// passphrase returns the passphrase. A pipe is waited for as long as [secretfile.Patience].
func (s *Store) passphrase(ctx context.Context) ([]byte, error) {
	s.phrasing.Lock()
	defer s.phrasing.Unlock()
	if s.phrase != nil { // a pipe gives it once
		return s.phrase, nil
	}
	raw, err := readPhrase(ctx, s.o.Passphrase, PassphraseVariable)
	if err == nil {
		s.phrase = raw
	}
	return raw, err
}

// readPhrase reads the passphrase from the file that a variable names.
func readPhrase(ctx context.Context, file, variable string) ([]byte, error) {
	raw, err := secretfile.ReadPrivate(ctx, file, maxPhrase)
	if err != nil {
		return nil, fmt.Errorf("the passphrase (%s): %w", variable, err)
	}
	raw = bytes.TrimRight(raw, "\r\n")
	if len(raw) < minPhrase {
		return nil, fmt.Errorf("the passphrase in %s (%s) has %d bytes, %d at least", file, variable, len(raw), minPhrase)
	}
	return raw, nil
}

// readKey reads a file of a key. Without it the error wraps [fs.ErrNotExist].
func (s *Store) readKey(name string) ([]byte, error) {
	root, err := os.OpenRoot(s.o.KeyDir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of %s: %w", KeyFile, err)
	}
	defer func() { _ = root.Close() }()
	data, err := readPrivate(root, name, 256)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.keyPath(name), err)
	}
	key, err := base64.StdEncoding.DecodeString(string(bytes.TrimSpace(data)))
	if err != nil || len(key) != chacha20poly1305.KeySize {
		return nil, fmt.Errorf("%s is damaged: restore it from a backup", s.keyPath(name))
	}
	return key, nil
}

// makeKey writes a key down, unless another process has just done so, and returns the one
// that is there then.
func (s *Store) makeKey(name string, key []byte) ([]byte, error) {
	fail := func(err error) ([]byte, error) {
		return nil, fmt.Errorf("the secrets need a key, and it cannot be made: %s: %w; let yaya write to that folder, name another with --config-dir, or give a passphrase (%s)", s.keyPath(name), err, PassphraseVariable)
	}
	if err := os.MkdirAll(s.o.KeyDir, 0o700); err != nil { //nolint:forbidigo // the user names it
		return fail(err)
	}
	root, err := os.OpenRoot(s.o.KeyDir)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = root.Close() }()
	tmp := "." + name + "." + rand.Text()
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fail(err)
	}
	_, err = f.WriteString(base64.StdEncoding.EncodeToString(key) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		// Unlike a rename a link never replaces: the folder may serve several data folders.
		if err = root.Link(tmp, name); errors.Is(err, fs.ErrExist) {
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
	return s.readKey(name)
}
