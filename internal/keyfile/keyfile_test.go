package keyfile_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yaya-ai/yaya/internal/hosttest"
	"github.com/yaya-ai/yaya/internal/keyfile"
)

// AU-42: a key is read whole and from its own file, which nobody else can get at.
func TestRead(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good, err := keyfile.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte, mode os.FileMode) func(at string) error {
		return func(at string) error {
			if err := os.WriteFile(at, data, 0o600); err != nil {
				return err
			}
			return os.Chmod(at, mode)
		}
	}
	for name, c := range map[string]struct {
		make func(at string) error
		want string // in the error, "" for none
	}{
		"good":            {write(good, 0o600), ""},
		"read only":       {write(good, 0o400), ""},
		"group reads":     {write(good, 0o640), "others can get at it"},
		"others write":    {write(good, 0o602), "others can get at it"},
		"empty":           {write(nil, 0o600), "damaged"},
		"cut":             {write(good[:len(good)/2], 0o600), "damaged"},
		"more behind it":  {write(append(good[:len(good):len(good)], "more"...), 0o600), "damaged"},
		"another block":   {write([]byte(strings.ReplaceAll(string(good), "PRIVATE", "PUBLIC")), 0o600), "damaged"},
		"not a key in it": {write([]byte("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"), 0o600), "damaged"},
		"link":            {func(at string) error { return os.Symlink("good", at) }, "not a regular file"},
		"folder":          {func(at string) error { return os.Mkdir(at, 0o700) }, "not a regular file"},
		"pipe":            {func(at string) error { return hosttest.MakePipe(at) }, "not a regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.make(filepath.Join(dir, name)); errors.Is(err, errors.ErrUnsupported) {
				t.Skip(err)
			} else if err != nil {
				t.Fatal(err)
			}
			got, err := keyfile.Read(root, name)
			if c.want == "" {
				if err != nil || !key.Equal(got) {
					t.Errorf("Read = %v, %v, want the key", got, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), c.want) || got != nil {
				t.Errorf("Read = %v, %v, want an error with %q", got, err, c.want)
			}
		})
	}
	if _, err := keyfile.Read(root, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: got %v, want fs.ErrNotExist", err)
	}
	for mode, ok := range map[os.FileMode]bool{0o700: true, 0o500: true, 0o750: false, 0o701: false} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := keyfile.CheckFolder(root); (err == nil) != ok {
			t.Errorf("CheckFolder with mode %v = %v, want it to be %v", mode, err, ok)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil { //nolint:gosec // a folder
		t.Fatal(err)
	}
}
