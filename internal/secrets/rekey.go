package secrets

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"

	"golang.org/x/crypto/chacha20poly1305"
)

// NewPassphraseVariable is the environment variable with the path of the passphrase that
// [Store.Rekey] moves the secrets to.
const NewPassphraseVariable = "YAYA_NEW_PASSPHRASE_FILE" //nolint:gosec // a name

// A key that Rekey makes has its id in its name, so that it lies beside the old one until
// that is no longer needed.
func (s *Store) accountOf(h header) string { return s.account() + " " + hex.EncodeToString(h.ID) }

// rekeyedFile is the name of the file with the key of a header, if Rekey made it.
func rekeyedFile(h header) string { return "secrets-" + hex.EncodeToString(h.ID) + ".key" }

// keyFileOf returns the name of the file with the key of a header.
func (s *Store) keyFileOf(h header) string {
	name := rekeyedFile(h)
	if _, err := os.Lstat(s.keyPath(name)); err == nil { //nolint:forbidigo // the user names the folder
		return name
	}
	return KeyFile
}

// Rekey seals the secrets with another key: one made of the passphrase in a file, or a
// fresh one if file is "". The new key exists before the sealed file is replaced
// atomically, and the old key is removed once the file was read back with the new one; a
// process that dies in between leaves a file that opens. left is the path of an old key
// that stays, since other data folders may use it.
func (s *Store) Rekey(ctx context.Context, file string) (left string, err error) {
	if _, h, err := s.current(ctx); err != nil || h == nil { // waits for the key
		return "", errors.Join(err, noneSealed(h, err))
	}
	h, key, phrase, err := s.nextKey(ctx, file)
	if err != nil {
		return "", err
	}
	drop := h // the key that is not needed in the end
	defer func() {
		if derr := s.dropKey(ctx, drop); derr != nil {
			err = errors.Join(err, fmt.Errorf("a key that is no longer needed stays: %w", derr))
		}
	}()
	unlock, err := s.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	now, was, err := s.current(ctx)
	if err != nil || was == nil {
		return "", errors.Join(err, noneSealed(was, err))
	}
	old := *was
	drop = header{} // from here on the file may need either
	if err := s.replace(now.clone(), h, key); err != nil {
		if data, _, rerr := readRegular(s.o.Data, File, maxFile); rerr == nil {
			if is, _, perr := parse(data); perr == nil && bytes.Equal(is.ID, old.ID) {
				drop = h
			}
		}
		return "", err
	}
	o := s.o
	o.Passphrase, o.Learn = file, nil
	back := New(o)
	back.phrase = phrase
	read, _, err := back.current(ctx)
	if err == nil && (!reflect.DeepEqual(read.Secrets, now.Secrets) || !reflect.DeepEqual(read.Records, now.Records)) {
		err = errors.New("it has something else")
	}
	if err != nil {
		return "", fmt.Errorf("%s is sealed with the new key and cannot be read back, so the old key stays: %w", s.Path(), err)
	}
	if old.Key == keyFile && s.keyFileOf(old) == KeyFile {
		return s.keyPath(KeyFile), nil
	}
	drop = old
	return "", nil
}

func noneSealed(h *header, err error) error {
	if h == nil && err == nil {
		return errors.New("nothing is sealed: set a secret first (yaya secret set NAME)")
	}
	return nil
}

// nextKey creates the key to which the secrets move, and stores it.
func (s *Store) nextKey(ctx context.Context, file string) (h header, key, phrase []byte, err error) {
	h.Version = version
	if file != "" {
		if phrase, err = readPhrase(ctx, file, NewPassphraseVariable); err != nil {
			return h, nil, nil, err
		}
		if h.KDF, err = s.o.cost.salted(); err != nil {
			return h, nil, nil, err
		}
		h.Key, key = keyPassphrase, h.KDF.key(phrase)
		h.ID = idOf(key)
		return h, key, phrase, nil
	}
	key = make([]byte, chacha20poly1305.KeySize)
	if _, err := rand.Read(key); err != nil {
		return h, nil, nil, err
	}
	h.Key, h.ID = keyFile, idOf(key)
	if s.probe(ctx) {
		h.Key = keyKeychain
		if err = s.o.Keychain.Set(ctx, s.accountOf(h), base64.StdEncoding.EncodeToString(key)); err == nil {
			key, err = s.fromKeychain(ctx, s.accountOf(h))
		}
		return h, key, nil, err
	}
	key, err = s.makeKey("secrets-"+hex.EncodeToString(h.ID)+".key", key)
	return h, key, nil, err
}

// dropKey removes a key that is kept for this store alone; of a passphrase, and of the
// zero header, there is none.
func (s *Store) dropKey(ctx context.Context, h header) error {
	var err error
	switch h.Key {
	case keyKeychain:
		for _, account := range []string{s.accountOf(h), s.account()} {
			text, gerr := s.o.Keychain.Get(ctx, account)
			if gerr != nil {
				continue
			}
			if key, derr := base64.StdEncoding.DecodeString(text); derr == nil && string(idOf(key)) == string(h.ID) {
				err = errors.Join(err, s.o.Keychain.Delete(ctx, account))
			}
		}
	case keyFile:
		if name := s.keyFileOf(h); name != KeyFile {
			if err = os.Remove(s.keyPath(name)); errors.Is(err, fs.ErrNotExist) { //nolint:forbidigo // the user names the folder
				err = nil
			}
		}
	}
	return err
}
