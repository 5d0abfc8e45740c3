// Package keyfile reads private keys: PKCS #8 in PEM, one key a file,
// which nobody but its owner can read.
package keyfile

import (
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"

	"github.com/yaya-ai/yaya/internal/hostfile"
	"github.com/yaya-ai/yaya/internal/unread"
)

const (
	maxFile = 64 << 10
	block   = "PRIVATE KEY"
)

// CheckFolder refuses a folder that others can read.
func CheckFolder(root *os.Root) error {
	f, err := root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	how, fix, err := hostfile.Exposed(f)
	if err == nil && how != "" {
		err = fmt.Errorf("the folder of keys %s has %s, and others can get at it: %s", root.Name(), how, fix)
	}
	return err
}

// Read reads a private key. It refuses files that others can read, links, and
// incomplete keys; only the last are damaged. Without the file the error wraps fs.ErrNotExist.
func Read(root *os.Root, name string) (crypto.PrivateKey, error) {
	data, err := ReadFile(root, name)
	if err != nil {
		return nil, err
	}
	b, rest := pem.Decode(data)
	if b == nil || b.Type != block || len(rest) != 0 {
		return nil, bad(root, name, "it is damaged: restore it from a backup")
	}
	key, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	if err != nil {
		return nil, bad(root, name, "it is damaged: %v", err)
	}
	return key, nil
}

// ReadFile reads a file that holds secrets, of at most 64 KiB. It refuses files that others can
// read, and links.
func ReadFile(root *os.Root, name string) ([]byte, error) {
	st, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, unread.Error(bad(root, name, "it is not a regular file"))
	}
	f, err := hostfile.OpenNoLink(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st, err = f.Stat(); err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, unread.Error(bad(root, name, "it is not a regular file"))
	}
	how, fix, err := hostfile.Exposed(f)
	if err != nil {
		return nil, unread.Error(err)
	}
	if how != "" {
		return nil, unread.Error(bad(root, name, "it has %s, and others can get at it: %s, or replace the key if they may have", how, fix))
	}
	return io.ReadAll(io.LimitReader(f, maxFile)) //nolint:forbidigo // bounded
}

func bad(root *os.Root, name, why string, args ...any) error {
	return fmt.Errorf("key file %s/%s: %s", root.Name(), name, fmt.Sprintf(why, args...))
}

// Marshal returns the content of a key's file.
func Marshal(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der}), nil
}
