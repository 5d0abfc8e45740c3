package secrets

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"syscall"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/chacha20poly1305"

	"github.com/yaya-ai/yaya/internal/hostfile"
)

// maxFile bounds the sealed file, in bytes.
const maxFile = 32 << 20

const version = 1

// Kinds of keys.
const (
	keyFile       = "file"
	keyKeychain   = "keychain"
	keyPassphrase = "passphrase"
)

// header is the clear part of the file. All of it is authenticated with the sealed part.
type header struct {
	Version int    `json:"version"`
	Key     string `json:"key"`
	// ID tells keys apart, so that another key is not taken for a damaged file.
	ID  []byte `json:"key_id"`
	KDF *kdf   `json:"argon2id,omitempty"`
}

// kdf are the parameters of argon2id (RFC 9106).
type kdf struct {
	Salt   []byte `json:"salt"`
	Passes uint32 `json:"passes"`
	Memory uint32 `json:"memory_kib"`
	Lanes  uint8  `json:"lanes"`
}

// Bounds of the parameters in a file: a writer of the file must not make yaya use up
// the machine.
const (
	maxPasses = 10
	minMemory = 8 << 10   // KiB
	maxMemory = 256 << 10 // KiB
	maxLanes  = 8
)

// file is the document that is written.
type file struct {
	header
	Nonce  []byte `json:"nonce"`
	Sealed []byte `json:"sealed"`
}

// document is the sealed content.
type document struct {
	header header

	Secrets map[string]secret `json:"secrets"`
	Records map[string]record `json:"records"`
}

type secret struct {
	Value string    `json:"value"`
	Set   time.Time `json:"set"`
}

type record struct {
	Data    []byte    `json:"data"`
	Changed time.Time `json:"changed"`
}

func newDocument() *document {
	return &document{Secrets: map[string]secret{}, Records: map[string]record{}}
}

func (d *document) clone() *document {
	return &document{d.header, maps.Clone(d.Secrets), maps.Clone(d.Records)}
}

func (d *document) empty() bool { return len(d.Secrets)+len(d.Records) == 0 }

var errNewer = errors.New("it was written by a newer yaya: use that one")

// parse reads the clear part of a file.
func parse(data []byte) (header, file, error) {
	var v struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return header{}, file{}, fmt.Errorf("it is not JSON: %w", err)
	}
	if v.Version != version {
		return header{}, file{}, fmt.Errorf("version %d is not known: %w", v.Version, errNewer)
	}
	var f file
	if err := strict(data, &f); err != nil {
		return header{}, file{}, err
	}
	h := f.header
	switch {
	case h.Key != keyFile && h.Key != keyKeychain && h.Key != keyPassphrase:
		return header{}, file{}, fmt.Errorf("its kind of key is %q, which is not known", clip(h.Key))
	case len(h.ID) != idSize:
		return header{}, file{}, errors.New("its key has no id")
	case len(f.Nonce) != chacha20poly1305.NonceSizeX:
		return header{}, file{}, errors.New("its nonce has another length")
	case (h.Key == keyPassphrase) != (h.KDF != nil):
		return header{}, file{}, errors.New("its parameters of argon2id do not belong to its kind of key")
	}
	if k := h.KDF; k != nil && (len(k.Salt) < 16 || len(k.Salt) > 64 || k.Passes < 1 || k.Passes > maxPasses || k.Memory < minMemory || k.Memory > maxMemory || k.Lanes < 1 || k.Lanes > maxLanes) {
		return header{}, file{}, errors.New("its parameters of argon2id are out of bounds")
	}
	return h, f, nil
}

// strict decodes one document of JSON without unknown members.
func strict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the document")
	}
	return nil
}

// bound returns the data that is authenticated with the sealed part.
func (h header) bound() ([]byte, error) {
	raw, err := json.Marshal(h)
	return append([]byte("yaya secrets\x00"), raw...), err
}

// open returns the sealed content of a file.
func open(h header, f file, key []byte) (*document, error) {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	ad, err := h.bound()
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, f.Nonce, f.Sealed, ad)
	if err != nil {
		return nil, errors.New("its seal is broken")
	}
	d := newDocument()
	if err := strict(plain, d); err != nil { // what was sealed was whole
		return nil, fmt.Errorf("what is sealed cannot be read: %w", err)
	}
	if d.Secrets == nil || d.Records == nil {
		return nil, errors.New("what is sealed is not whole")
	}
	return d, nil
}

// seal returns the file that holds a document.
func seal(h header, d *document, key []byte) ([]byte, error) {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		return nil, err
	}
	ad, err := h.bound()
	if err != nil {
		return nil, err
	}
	plain, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	f := file{header: h, Nonce: make([]byte, aead.NonceSize())}
	if _, err := rand.Read(f.Nonce); err != nil {
		return nil, err
	}
	f.Sealed = aead.Seal(nil, f.Nonce, plain, ad)
	out, err := json.Marshal(f)
	if err == nil && len(out) > maxFile {
		err = fmt.Errorf("it would have %d bytes, %d at most", len(out), maxFile)
	}
	return append(out, '\n'), err
}

const idSize = 8

// idOf returns an id that distinguishes keys and reveals nothing else about them.
func idOf(key []byte) []byte {
	sum := sha256.Sum256(append([]byte("yaya secrets key id\x00"), key...))
	return sum[:idSize]
}

// recommended are the parameters of RFC 9106 for machines with little memory.
var recommended = kdf{Passes: 3, Memory: 64 << 10, Lanes: 4}

// salted returns the parameters with a fresh salt.
func (k kdf) salted() (*kdf, error) {
	k.Salt = make([]byte, 16)
	_, err := rand.Read(k.Salt)
	return &k, err
}

func (k kdf) key(passphrase []byte) []byte {
	return argon2.IDKey(passphrase, k.Salt, k.Passes, k.Memory, k.Lanes, chacha20poly1305.KeySize)
}

// readRegular reads a file of at most limit bytes that is neither a link nor a
// pipe.
func readRegular(root *os.Root, name string, limit int64) ([]byte, fs.FileInfo, error) {
	return readChecked(root, name, limit, func(*os.File) error { return nil })
}

// readPrivate is readRegular for a file that others cannot get at.
func readPrivate(root *os.Root, name string, limit int64) ([]byte, error) {
	data, _, err := readChecked(root, name, limit, func(f *os.File) error {
		how, fix, err := hostfile.Exposed(f)
		if err == nil && how != "" {
			err = fmt.Errorf("it has %s, and others can get at it: %s, and change the secrets if somebody may have read it", how, fix)
		}
		return err
	})
	return data, err
}

// readChecked is readRegular for a file that passes a check.
func readChecked(root *os.Root, name string, limit int64, check func(*os.File) error) ([]byte, fs.FileInfo, error) {
	f, err := hostfile.OpenNoLink(root, name)
	if errors.Is(err, syscall.ELOOP) {
		err = errors.New("it is a link")
	}
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = f.Close() }()
	st, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, nil, errors.New("it is not a regular file")
	}
	if err := check(f); err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) //nolint:forbidigo // bounded by the reader
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data, st, err
}
